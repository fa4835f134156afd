package rds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/rnic"
)

// transports make the transports of a node in tests.
var transports = map[string]func(t testing.TB) Transport{
	"tcp":         func(testing.TB) Transport { return &TCP{Port: 26385, Paths: 1} },
	"tcp, 8":      func(testing.TB) Transport { return &TCP{Port: 26385} },
	"iwarp":       func(t testing.TB) Transport { return newIWARP(t, &IWARP{}) },
	"iwarp, few":  func(t testing.TB) Transport { return newIWARP(t, &IWARP{Receives: 4}) },
	"iwarp, free": func(t testing.TB) Transport { return newIWARP(t, &IWARP{NoCredits: true}) },
}

func newIWARP(t testing.TB, w *IWARP) Transport {
	t.Helper()
	dev, err := rnic.Open(rnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	w.Device = dev
	return w
}

// overAll runs a test over each transport.
func overAll(t *testing.T, test func(t *testing.T, nodes func(n int, change func(*Config)) []*Node)) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			leakcheck.Check(t)
			test(t, func(n int, change func(*Config)) []*Node { return nodes(t, n, transport, change) })
		})
	}
}

// nodes makes nodes with addresses of the loopback network.
func nodes(t testing.TB, n int, transport func(testing.TB) Transport, change func(*Config)) []*Node {
	t.Helper()
	out := make([]*Node, n)
	for i := range out {
		cfg := Config{Addr: ownAddr(byte(i + 1)), Transports: []Transport{transport(t)}}
		if change != nil {
			change(&cfg)
		}
		node, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := node.Close(); err != nil {
				t.Error(err)
			}
		})
		out[i] = node
	}
	return out
}

func bind(t testing.TB, n *Node, port uint16) *Socket {
	t.Helper()
	s, err := n.Bind(port)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // many connections, one after the other
	t.Cleanup(cancel)
	return ctx
}

func TestMessagesOfAllSizes(t *testing.T) { overAll(t, messagesOfAllSizes) }

func messagesOfAllSizes(t *testing.T, nodes func(int, func(*Config)) []*Node) {
	ns := nodes(2, nil)
	ctx := within(t)
	for _, from := range []int{0, 1} {
		a, b := bind(t, ns[from], 0), bind(t, ns[1-from], 0)
		for _, size := range []int{0, 1, 100, 4095, 4096, 4097, 65536, 200_000, 1 << 20} {
			want := bytes.Repeat([]byte{byte(size), byte(size >> 8), 7}, size/3+1)[:size]
			if err := a.SendTo(ctx, want, b.Addr()); err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
			msg, err := b.Receive(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(msg.Data, want) || msg.Addr != a.Addr() {
				t.Errorf("%d bytes from %v: %d came from %v", size, a.Addr(), len(msg.Data), msg.Addr)
			}
		}
		if err := a.Flush(ctx); err != nil {
			t.Error(err)
		}
	}
}

func TestOrderOfManySockets(t *testing.T) { overAll(t, orderOfManySockets) }

func orderOfManySockets(t *testing.T, nodes func(int, func(*Config)) []*Node) {
	ns := nodes(2, nil)
	ctx := within(t)
	const sockets, messages = 20, 200
	for i := range uint16(sockets) {
		from, to := bind(t, ns[i%2], 100+i), bind(t, ns[1-i%2], 200+i)
		go func() {
			for k := range messages {
				if err := from.SendTo(ctx, fmt.Appendf(nil, "%d %d", i, k), to.Addr()); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		defer func() {
			for k := range messages {
				msg, err := to.Receive(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if want := fmt.Sprintf("%d %d", i, k); string(msg.Data) != want {
					t.Fatalf("%q came; want %q", msg.Data, want)
				}
			}
		}()
	}
}

func TestWhatBindAndSendRefuse(t *testing.T) {
	ns := nodes(t, 1, transports["tcp"], func(c *Config) { c.Allow = []netip.Prefix{netip.PrefixFrom(ownAddr(0), 24)} })
	s := bind(t, ns[0], 4000)
	if _, err := ns[0].Bind(4000); !errors.Is(err, ErrPortInUse) {
		t.Errorf("a port twice: %v", err)
	}
	for addr, want := range map[string]error{"10.1.2.3:1": ErrNotAllowed, "[::1]:1": ErrNotAllowed} {
		a, err := ParseAddr(addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SendTo(t.Context(), nil, a); !errors.Is(err, want) {
			t.Errorf("to %s: %v; want %v", addr, err, want)
		}
	}
	if err := s.SendTo(t.Context(), make([]byte, 1<<20+1), s.Addr()); !errors.Is(err, ErrTooLong) {
		t.Errorf("too long: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.SendTo(t.Context(), nil, s.Addr()); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := s.Receive(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
