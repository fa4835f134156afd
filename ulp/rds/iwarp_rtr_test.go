package rds

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"testing"

	"urnic/internal/test/leakcheck"
)

// An rtrConn leaves one ready-to-receive indication of those that an initiator offers, and keeps
// what the initiator writes.
type rtrConn struct {
	net.Conn
	ird, ord uint16 // the flag that stays (RFC 6581 §9)
	wrote    []byte
}

const (
	mpaHeader   = 20
	mpaRequest4 = mpaHeader + 4 + 32 // with what IRD and ORD are, and RDS's private data
)

func (c *rtrConn) Write(b []byte) (int, error) {
	if len(c.wrote) == 0 {
		b = bytes.Clone(b)
		for at, keep := range map[int][2]uint16{mpaHeader: {0x4000, c.ird}, mpaHeader + 2: {0xc000, c.ord}} {
			v := binary.BigEndian.Uint16(b[at:])
			binary.BigEndian.PutUint16(b[at:], v&^keep[0]|keep[1])
		}
	}
	if len(c.wrote) < 256 {
		c.wrote = append(c.wrote, b...)
	}
	return c.Conn.Write(b)
}

// A connection begins with whatever the two sides can agree on to say that the initiator is
// ready. An empty Send takes none of the receives, which are few and counted.
func TestEachReadyToReceive(t *testing.T) {
	for name, tt := range map[string]struct {
		ird, ord uint16
		opcode   byte // of RDMAP
	}{
		"Send":  {ird: 0x4000, opcode: 3},
		"Write": {ord: 0x8000, opcode: 0},
		"Read":  {ord: 0x4000, opcode: 1},
	} {
		t.Run(name, func(t *testing.T) {
			leakcheck.Check(t)
			var made []*rtrConn
			ns := nodes(t, 2, transports["iwarp, few"], func(c *Config) {
				c.Transports[0].(*IWARP).Dial = func(ctx context.Context, peer netip.Addr) (net.Conn, error) {
					d := net.Dialer{LocalAddr: &net.TCPAddr{IP: c.Addr.AsSlice()}}
					conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(peer.String(), strconv.Itoa(RDMAPort4)))
					if err != nil {
						return nil, err
					}
					made = append(made, &rtrConn{Conn: conn, ird: tt.ird, ord: tt.ord})
					return made[len(made)-1], nil
				}
			})
			ctx := within(t)
			from, to := bind(t, ns[0], 0), bind(t, ns[1], 0)
			for range 20 {
				if err := from.SendTo(ctx, make([]byte, 20_000), to.Addr()); err != nil {
					t.Fatal(err)
				}
				msg, err := to.Receive(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := to.SendTo(ctx, msg.Data, msg.Addr); err != nil {
					t.Fatal(err)
				}
				if msg, err := from.Receive(ctx); err != nil || len(msg.Data) != 20_000 {
					t.Fatalf("%v, %v", msg, err)
				}
			}
			for _, n := range ns {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			}
			begun := 0
			for _, c := range made { // on a machine that is busy, one may be given up and made again
				if len(c.wrote) < mpaRequest4+4 {
					continue
				}
				begun++
				// The first FPDU: its length, DDP's flags, and RDMAP's version and opcode.
				if got := c.wrote[mpaRequest4+3] & 0xf; got != tt.opcode {
					t.Errorf("the initiator begins with the message %d; want %d", got, tt.opcode)
				}
			}
			if begun == 0 {
				t.Fatalf("%d connections: %+v", len(made), made)
			}
		})
	}
}
