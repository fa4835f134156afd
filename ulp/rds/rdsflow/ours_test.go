package rdsflow

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/internal/test/loopback"
	"urnic/rnic"
	"urnic/ulp/rds"
	"urnic/ulp/rds/wire"
)

// A recorded node records what it sends and receives.
type recorded struct {
	*rds.Node
	file   bytes.Buffer
	device *rnic.Device
	writer *capture.Writer
	conns  *connections
}

// connections are those of RDS over TCP that can be cut.
type connections struct {
	mu  sync.Mutex
	all []net.Conn
}

// A cutting listener keeps what it accepts.
type cutting struct {
	net.Listener
	kept *connections
}

func (l cutting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.kept.mu.Lock()
		defer l.kept.mu.Unlock()
		l.kept.all = append(l.kept.all, c)
	}
	return c, err
}

// cut resets one of the last n connections.
func (k *connections) cut(rng *rand.Rand, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) == 0 {
		return
	}
	i := len(k.all) - 1 - rng.IntN(min(n, len(k.all)))
	if c, ok := k.all[i].(*net.TCPConn); ok {
		_ = c.SetLinger(0) // at worst it ends with a FIN
		_ = c.Close()
	}
	k.all = append(k.all[:i], k.all[i+1:]...)
}

func listen(t testing.TB, addr netip.Addr, port uint16) (net.Listener, *connections) {
	t.Helper()
	l, err := net.Listen("tcp4", netip.AddrPortFrom(addr, port).String())
	if err != nil {
		t.Fatal(err)
	}
	k := &connections{}
	return cutting{l, k}, k
}

// port is that of the nodes of the tests.
const port = 28385

// close ends a node, so that its recording can be read.
func (n *recorded) close(t testing.TB) {
	t.Helper()
	err := n.Close()
	if n.device != nil {
		err = errors.Join(err, n.device.Close())
	}
	if n.writer != nil {
		err = errors.Join(err, n.writer.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

func nodeAddr(i int) netip.Addr { return loopback.Process().Addr(byte(i + 1)) }

// start makes a node over TCP that records.
func overTCP(paths int) func(testing.TB, int) *recorded {
	return func(t testing.TB, i int) *recorded {
		t.Helper()
		n := &recorded{}
		var err error
		if n.writer, err = capture.NewWriter(&n.file); err != nil {
			t.Fatal(err)
		}
		l, kept := listen(t, nodeAddr(i), port)
		n.conns = kept
		n.open(t, i, &rds.TCP{Port: port, Paths: paths, Listener: l, Record: func(local, remote net.Addr, dialled bool) rds.Recording {
			return n.writer.Stream(capture.AddrPort(local), capture.AddrPort(remote), dialled)
		}})
		return n
	}
}

// overIWARP makes a node over iWARP that records.
func overIWARP(receives int, noCredits bool) func(testing.TB, int) *recorded {
	return func(t testing.TB, i int) *recorded {
		t.Helper()
		n := &recorded{}
		var err error
		if n.device, err = rnic.Open(rnic.Config{Name: fmt.Sprintf("node%d", i), Record: &n.file}); err != nil {
			t.Fatal(err)
		}
		w := &rds.IWARP{
			Device: n.device, Receives: receives, NoCredits: noCredits,
			Address:     netip.AddrPortFrom(nodeAddr(i), port+1).String(),
			PeerAddress: func(peer netip.Addr) string { return netip.AddrPortFrom(peer, port+1).String() },
		}
		n.open(t, i, w)
		return n
	}
}

func (n *recorded) open(t testing.TB, i int, transport rds.Transport) {
	t.Helper()
	var err error
	if n.Node, err = rds.Open(t.Context(), rds.Config{Addr: nodeAddr(i), Transports: []rds.Transport{transport}, ReceiveBuffer: 64 << 10}); err != nil {
		t.Fatal(err)
	}
}

// talk has sockets of two nodes exchange messages both ways, each of which comes once. progress
// is called for each.
func talk(ctx context.Context, t *testing.T, nodes [2]*recorded, messages int, progress func(n int)) {
	t.Helper()
	const sockets = 6
	came := make(chan struct{}, 2*sockets*messages)
	for i := range uint16(2 * sockets) {
		from, err := nodes[i%2].Bind(100 + i)
		if err != nil {
			t.Fatal(err)
		}
		to, err := nodes[1-i%2].Bind(200 + i)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for k := range messages {
				data := make([]byte, 4+rng.IntN(1<<rng.IntN(17)))
				binary.BigEndian.PutUint32(data, uint32(k))
				if err := from.SendTo(ctx, data, to.Addr()); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		go func() {
			for k := range messages {
				m, err := to.Receive(ctx)
				if err != nil || binary.BigEndian.Uint32(m.Data) != uint32(k) {
					t.Errorf("socket %d, message %d: %v", i, k, err)
					return
				}
				came <- struct{}{}
			}
		}()
	}
	for n := range 2 * sockets * messages {
		select {
		case <-came:
			progress(n)
		case <-ctx.Done():
			t.Fatalf("%d messages have come", n)
		}
	}
}

// judged analyses what a node has recorded: nobody is blamed, and as many messages of sockets are
// there as were sent at least.
func judged(t *testing.T, n *recorded, messages int) found {
	t.Helper()
	f := analyze(t, n.file.Bytes())
	f.want(t)
	data := 0
	for _, m := range f.all {
		if m.Header.Kind() == wire.Data {
			data++
		}
	}
	// A connection that is replaced may end within an FPDU.
	whole := !strings.Contains(strings.Join(f.notes, "\n"), "cut short")
	if data < messages || f.Total.Undecoded > 0 && whole {
		t.Errorf("%d messages of at least %d, %d bytes not decoded, notes %q", data, messages, f.Total.Undecoded, f.notes)
	}
	return f
}

var transports = map[string]func(testing.TB, int) *recorded{
	"tcp":          overTCP(1),
	"tcp, 8 paths": overTCP(8),
	"iwarp":        overIWARP(0, false),
	"iwarp, few":   overIWARP(4, false),
	"iwarp, no FC": overIWARP(0, true),
}

// What nodes of ours do to each other breaks no rule, whichever side looks.
func TestOurNodesBreakNoRule(t *testing.T) {
	for name, node := range transports {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			const messages = 40
			nodes := [2]*recorded{node(t, 0), node(t, 1)}
			talk(ctx, t, nodes, messages, func(int) {})
			for _, n := range nodes {
				n.close(t)
			}
			for i, n := range nodes {
				f := judged(t, n, 12*messages)
				for _, c := range f.Connections {
					if c.Upper == nil || c.Transport == dissect.IWARP != (n.device != nil) {
						t.Errorf("node %d: %+v", i, c)
					}
				}
			}
		})
	}
}

// Neither do they when their connections are cut, and messages are sent again.
func TestOurNodesBreakNoRuleWhenCut(t *testing.T) {
	for name, paths := range map[string]int{"tcp": 1, "tcp, 8 paths": 8} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			const messages = 60
			nodes := [2]*recorded{overTCP(paths)(t, 0), overTCP(paths)(t, 1)}
			rng := rand.New(rand.NewPCG(7, 7))
			talk(ctx, t, nodes, messages, func(n int) {
				if n%10 == 9 { // the node with the higher address accepts
					nodes[1].conns.cut(rng, paths)
				}
			})
			for _, n := range nodes {
				n.close(t)
			}
			for _, n := range nodes {
				if f := judged(t, n, 0); len(f.Connections) <= paths {
					t.Error("no connection was cut")
				}
			}
		})
	}
}

// Neither does a node that restarts while its peer continues.
func TestOurNodesBreakNoRuleWhenRestarted(t *testing.T) {
	for name, node := range transports {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			stays := node(t, 1)
			to, err := stays.Bind(4000)
			if err != nil {
				t.Fatal(err)
			}
			for life := range byte(3) {
				n := node(t, 0)
				from, err := n.Bind(5000)
				if err != nil {
					t.Fatal(err)
				}
				for k := range byte(20) {
					if err := from.SendTo(ctx, []byte{life, k}, to.Addr()); err != nil {
						t.Fatal(err)
					}
					if m, err := to.Receive(ctx); err != nil || !bytes.Equal(m.Data, []byte{life, k}) {
						t.Fatal(m, err)
					}
					if err := to.SendTo(ctx, []byte{life, k}, from.Addr()); err != nil {
						t.Fatal(err)
					}
					if m, err := from.Receive(ctx); err != nil || !bytes.Equal(m.Data, []byte{life, k}) {
						t.Fatal(m, err)
					}
				}
				n.close(t)
			}
			stays.close(t)
			f := judged(t, stays, 3*40)
			restarts := 0
			for _, n := range f.notes {
				if strings.HasPrefix(n, "the node has restarted") {
					restarts++
				}
			}
			if restarts != 2 {
				t.Errorf("notes %q", f.notes)
			}
		})
	}
}

// Memory that is offered in a message is written and read, and the messages behind that say so.
func TestOurRDMAIsMatchedToMessages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	nodes := [2]*recorded{overIWARP(0, false)(t, 0), overIWARP(0, false)(t, 1)}
	owner, err := nodes[0].Bind(5000)
	if err != nil {
		t.Fatal(err)
	}
	user, err := nodes[1].Bind(4000)
	if err != nil {
		t.Fatal(err)
	}
	mr, err := owner.GetMR(make([]byte, 10000), rds.ReadWrite())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Send(ctx, &rds.Message{Addr: user.Addr(), Data: []byte("here"), Cookie: mr.Cookie()}); err != nil {
		t.Fatal(err)
	}
	m, err := user.Receive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []*rds.Operation{rds.Write(m.Cookie, 0, make([]byte, 9000)), rds.Read(m.Cookie, 100, make([]byte, 5000))} {
		if _, err := user.Send(ctx, &rds.Message{Addr: owner.Addr(), Data: []byte("done")}, rds.With(o)); err != nil {
			t.Fatal(err)
		}
		if _, err := owner.Receive(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes {
		n.close(t)
	}
	for _, n := range nodes {
		uses, named := 0, 0
		analyze(t, n.file.Bytes(), func(e *dissect.Event) error {
			switch {
			case e.Kind == dissect.KindMessage && e.Message.Use != "":
				uses++
			case e.Kind == dissect.KindUpper:
				if m, ok := e.Upper.(*Message); ok && !m.Part {
					x, _ := wire.ParseExtensions(m.Header.Extensions)
					if x.With(wire.ExtRDMA) {
						named++
					}
				}
			default:
			}
			return nil
		}).want(t)
		if uses < 3 || named != 2 { // a Write, a Read, and what answers it
			t.Errorf("%d RDMA messages are matched, %d messages name them", uses, named)
		}
	}
}
