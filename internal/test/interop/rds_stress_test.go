//go:build interop

package interop

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"urnic/rnic"
	"urnic/ulp/rds"
	"urnic/ulp/rds/rdsstress"
)

// The original rds-stress is our peer, as either side, over both transports. Debian 12 has no rds-tools: build
// rds-stress statically, and give its directory in URNIC_RDS_TOOLS.
func TestRDSStressOfTheOriginalOverTCP(t *testing.T) {
	stress(t, []stressCase{
		{"lower address", "modprobe rds_tcp", lowerIPv4, overTCP, "", func(*rdsstress.Params) {}},
		{"upper address", "true", upperIPv4, overTCP, "", func(*rdsstress.Params) {}},
	})
}

func TestRDSStressOfTheOriginalOverIWARP(t *testing.T) {
	stress(t, []stressCase{
		{"messages", "rdma link add siw1 type siw netdev eth1 && modprobe rds_rdma iwarp=1 credits=1", lowerIPv4, overIWARP, "", func(*rdsstress.Params) {}},
		{"RDMA Writes", "true", lowerIPv4, overIWARP, " -D 8192 -M 2", func(p *rdsstress.Params) {
			p.RDMASize, p.Flags[rdsstress.Mode] = 8192, rdsstress.WriteOnly // siw can't read
		}},
	})
}

type stressCase struct {
	name, prepare string // a command in the guest
	self          string
	transport     func(t *testing.T) rds.Transport
	options       string // of the original, and what they change of the parameters
	change        func(*rdsstress.Params)
}

func stress(t *testing.T, cases []stressCase) {
	t.Helper()
	tools := os.Getenv("URNIC_RDS_TOOLS")
	if tools == "" {
		t.Skip("URNIC_RDS_TOOLS names no directory with rds-stress of rds-tools, which Debian 12 does not have")
	}
	linked(t, func(t *testing.T) {
		upload(t, filepath.Join(tools, "rds-stress"), "/tmp/rds-stress")
		for _, test := range cases {
			t.Run(test.name, func(t *testing.T) {
				theGuest.run(t, test.prepare)
				self, peer := netip.MustParseAddr(test.self), netip.MustParseAddr(guestIPv4)
				node, err := rds.Open(t.Context(), rds.Config{Addr: self, Transports: []rds.Transport{test.transport(t)}})
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := node.Close(); err != nil {
						t.Error(err)
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				defer cancel()
				p := rdsstress.Params{Depth: 4, RequestSize: 3000, AckSize: 200, Port: 4000, Tasks: 2, Vectors: 1}
				p.Flags[rdsstress.Verify], p.Flags[rdsstress.CongestionMonitor], p.Flags[rdsstress.Fence] = 1, 1, 1
				test.change(&p)

				there := theGuest.start(t, "/tmp/rds-stress -r "+guestIPv4+" -p 4000")
				there.expect("waiting for incoming connection")
				active, err := rdsstress.Dial(ctx, self, peer, p)
				for err != nil && ctx.Err() == nil { // it says so before it listens
					active, err = rdsstress.Dial(ctx, self, peer, p)
				}
				if err != nil {
					t.Fatal(err)
				}
				stressed(ctx, t, active, node, p.RDMASize > 0)
				there.wait()

				l, err := net.Listen("tcp", net.JoinHostPort(self.String(), "4000"))
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				there = theGuest.start(t, "/tmp/rds-stress -r "+guestIPv4+" -s "+test.self+" -p 4000 -T 2 -t 2 -d 4 -q 3000 -a 200 -v"+test.options)
				passive, err := rdsstress.Accept(ctx, l)
				if err != nil {
					t.Fatal(err)
				}
				stressed(ctx, t, passive, node, p.RDMASize > 0)
				there.wait()
			})
		}
	})
}

// stressed runs one side, which must see answers, and nothing that is wrong.
func stressed(ctx context.Context, t *testing.T, c *rdsstress.Control, n *rds.Node, rdma bool) {
	t.Helper()
	r, err := c.Run(ctx, n, rdsstress.Options{Requests: 200, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("active %v: %+v, %d unanswered", c.Active, r.All, r.Unanswered)
	if r.All.AcksReceived == 0 || r.All.RequestsReceived == 0 || rdma != (r.All.RDMAIn > 0 && r.All.RDMAOut > 0) || c.Active && r.Unanswered > 0 {
		t.Errorf("active %v: %+v, %d unanswered", c.Active, r.All, r.Unanswered)
	}
}

func overTCP(*testing.T) rds.Transport { return &rds.TCP{} }

func overIWARP(t *testing.T) rds.Transport {
	dev, err := rnic.Open(rnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rds.IWARP{Device: dev}
}

// upload brings a program into the guest.
func upload(t *testing.T, file, to string) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(lowerIPv4, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sent := make(chan error, 1)
	go func() {
		sent <- func() error {
			f, err := os.Open(file)
			if err != nil {
				return err
			}
			defer f.Close()
			c, err := l.Accept()
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = io.Copy(c, f)
			return err
		}()
	}()
	theGuest.run(t, "socat -u TCP:"+l.Addr().String()+" CREATE:"+to+" && chmod +x "+to)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}
