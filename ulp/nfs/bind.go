package nfs

import (
	"context"
	"errors"
	"net"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/rpcbind"
)

// bound asks rpcbind for the port of MOUNT.
func (c *Client) bound(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, bindPatience)
	defer cancel()
	dial := oncrpc.OverTCP(net.JoinHostPort(c.target.Host, rpcbind.Port), oncrpc.TCPConfig{Dialer: c.cfg.Dialer})
	b := rpcbind.NewClient(oncrpc.NewClient(dial, oncrpc.ClientConfig{Dials: 1, Sends: 2}))
	port, err := b.GetPort(ctx, nfs3.MountProgram, nfs3.MountVersion, rpcbind.ProtocolTCP)
	return int(port), errors.Join(err, b.Close())
}
