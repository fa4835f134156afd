package nfs

import (
	"context"
	"errors"
	"fmt"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// Version 2 of rpcbind, the port mapper (RFC 1833 §3).
const (
	bindProgram = 100000
	bindVersion = 2
	bindGetPort = 3
	bindPort    = 111
	protoTCP    = 6
)

// bound asks rpcbind for the port of MOUNT.
func (c *Client) bound(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, bindPatience)
	defer cancel()
	var port uint32
	err := c.callOnce(ctx, bindPort, &oncrpc.Invocation{
		Program: bindProgram, Version: bindVersion, Procedure: bindGetPort,
		Args: func(e *xdr.Encoder) {
			for _, v := range [...]uint32{nfs3.MountProgram, nfs3.MountVersion, protoTCP, 0} {
				e.Uint32(v)
			}
		},
		Results: func(d *xdr.Decoder) error {
			port = d.Uint32()
			return d.Err()
		},
		ResultsMost: 4,
	})
	switch {
	case err != nil:
		return 0, err
	case port == 0:
		return 0, errors.New("nfs: it knows no version 3 of MOUNT over TCP")
	case port > 65535:
		return 0, fmt.Errorf("nfs: it says %d, which is no port", port)
	}
	return int(port), nil
}
