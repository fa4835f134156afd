package rpcbind

import (
	"context"
	"fmt"
	"net"

	"urnic/ulp/oncrpc"
)

// sockets are where the service listens for callers of its own host: Linux's, and BSD's.
var sockets = []string{"/run/rpcbind.sock", "/var/run/rpcbind.sock"}

// Here returns how a Client reaches the service of this host: by a socket in the
// filesystem or, where there is none, at the loopback address. By the socket the service
// knows which user calls, and lets none but that one and root remove what it registers;
// what has come over TCP anybody on the host may remove, or nobody may register.
func Here() oncrpc.Dial {
	return func(ctx context.Context) (oncrpc.Conn, error) {
		var d net.Dialer
		var first error
		for _, s := range sockets {
			conn, err := d.DialContext(ctx, "unix", s)
			if err == nil {
				return oncrpc.NewTCPConn(conn, oncrpc.TCPConfig{}), nil
			}
			if first == nil {
				first = err
			}
		}
		c, err := oncrpc.DialTCP(ctx, net.JoinHostPort("127.0.0.1", Port), oncrpc.TCPConfig{})
		if err != nil {
			return nil, fmt.Errorf("%w; %w", first, err)
		}
		return c, nil
	}
}
