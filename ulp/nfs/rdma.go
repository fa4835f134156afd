package nfs

import (
	"context"
	"errors"

	"urnic/ulp/oncrpc"
	"urnic/ulp/rpcrdma"
)

// overRDMA returns what connects to an address by RDMA.
func overRDMA(address string, cfg *Config) (oncrpc.Dial, error) {
	if cfg.Device == nil {
		return nil, errors.New("nfs: RDMA needs an RNIC: give it as Config.Device")
	}
	dev, options := cfg.Device, cfg.RDMA
	return func(ctx context.Context) (oncrpc.Conn, error) {
		conn, err := rpcrdma.Dial(ctx, dev, address, options)
		if err != nil {
			return nil, err
		}
		return conn, nil
	}, nil
}
