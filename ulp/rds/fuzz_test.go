package rds

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/ulp/rds/wire"
)

// The hosts of a network in memory. That of the good peer is the lower one, so that it dials.
var (
	simNode    = netip.MustParseAddr("192.0.2.2")
	simHostile = netip.MustParseAddr("192.0.2.1")
	simGood    = netip.MustParseAddr("192.0.1.9")
)

// A sandbox is a live node on a fake clock, and in a network in memory.
type sandbox struct {
	t       *testing.T
	network simnet.Network
	from    netip.Addr // of the next connection
	node    *Node
	socket  *Socket // port 4000
	port    string
	conns   []hostileConn
	devices []*rnic.Device
}

var errNoRoute = errors.New("there is no way to this host")

// inSandbox runs f with a node, and checks then that it still serves a good peer, holds no more than
// it may, and leaves nothing.
func inSandbox(t *testing.T, transport func(s *sandbox) Transport, good func(s *sandbox) hostileConn, f func(s *sandbox)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSandbox(t, transport)
		f(s)
		synctest.Wait()
		s.check()
		s.from = simGood
		c := good(s)
		_ = c.write(segment(wire.Header{Sequence: 1, Len: 16, SourcePort: 77, DestPort: 4000}, []byte("of the good peer")))
		synctest.Wait()
		found := 0
		for msg, err := s.socket.TryReceive(); err == nil; msg, err = s.socket.TryReceive() {
			if msg.Addr.Host == simGood && string(msg.Data) == "of the good peer" {
				found++
			}
		}
		if found != 1 {
			t.Errorf("the good peer's message is delivered %d times", found)
		}
		time.Sleep(30 * time.Second) // time-outs pass
		s.check()
		c.close()
		for _, c := range s.conns {
			c.close()
		}
		s.close()
	})
}

// sandboxShare is the memory that a peer may take of a sandbox's node.
const sandboxShare = 64 << 10

func newSandbox(t *testing.T, transport func(s *sandbox) Transport) *sandbox {
	t.Helper()
	s := &sandbox{t: t, from: simHostile}
	s.network.Options = func(int) simnet.Options { return simnet.Options{Host: s.from.AsSlice()} }
	var err error
	s.node, err = Open(t.Context(), Config{
		Addr: simNode, Transports: []Transport{transport(s)}, PeerMemory: sandboxShare, NodeMemory: 4 * sandboxShare, ReconnectMin: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.socket = bind(t, s.node, 4000)
	return s
}

func (s *sandbox) close() {
	s.t.Helper()
	if err := s.node.Close(); err != nil {
		s.t.Error(err)
	}
	for _, dev := range s.devices {
		if err := dev.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

func (s *sandbox) device() *rnic.Device {
	s.t.Helper()
	dev, err := rnic.Open(rnic.Config{Network: &s.network})
	if err != nil {
		s.t.Fatal(err)
	}
	s.devices = append(s.devices, dev)
	return dev
}

// tcp returns a transport over TCP that can be connected to, and iwarp one over iWARP.
func (s *sandbox) tcp() Transport {
	s.port = "16385"
	l, err := s.network.Listen(s.t.Context(), ":"+s.port)
	if err != nil {
		s.t.Fatal(err)
	}
	return &TCP{Listener: l, Dial: func(context.Context, netip.Addr, int) (net.Conn, error) { return nil, errNoRoute }}
}

func (s *sandbox) iwarp() Transport {
	s.port = "18634"
	return &IWARP{
		Device: s.device(), Address: ":" + s.port, Receives: 16,
		Dial: func(context.Context, netip.Addr) (net.Conn, error) { return nil, errNoRoute },
	}
}

// verbs connects over iWARP.
func (s *sandbox) verbs(private []byte) hostileConn {
	s.t.Helper()
	c, err := connectVerbs(s.t.Context(), s.device(), 16, private, s.open)
	if err != nil {
		s.t.Fatalf("the peer can't connect: %v", err)
	}
	return c
}

// check checks that the node holds no more than it may.
func (s *sandbox) check() {
	s.t.Helper()
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	if held := s.node.m.Held(); held > 2*sandboxShare+wire.MaxMessage {
		s.t.Errorf("%d bytes are held for a peer whose share is %d", held, sandboxShare)
	}
	if len(s.node.links) > 8 {
		s.t.Errorf("there are %d connections", len(s.node.links))
	}
}

// open opens a byte stream to the node.
func (s *sandbox) open(ctx context.Context) (net.Conn, error) {
	return s.network.Dial(ctx, net.JoinHostPort(simNode.String(), s.port))
}

// bound ends a connection when it has waited for the node for long: the node does not read
// while its memory is full. What it returns ends that.
func (s *sandbox) bound(c hostileConn) func() {
	s.conns = append(s.conns, c)
	timer := time.AfterFunc(10*time.Second, c.close)
	return func() { timer.Stop() }
}

// bytes connects over TCP, and drops what the node says.
func (s *sandbox) bytes() hostileConn {
	s.t.Helper()
	c, err := s.open(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	go func() {
		b := make([]byte, 1<<16)
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
		}
	}()
	return byteConn{c}
}

// The seeds: what a peer may send, and what it may not.
func seeds(f *testing.F) (segments [][]byte) {
	f.Helper()
	x := wire.Extensions{Has: 1<<wire.ExtGeneration | 1<<wire.ExtNPaths, Generation: 7, Paths: 8}
	raw, err := x.Encode()
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []struct {
		h    wire.Header
		data int
	}{
		{wire.Header{Flags: wire.CongestionBitmap, Len: wire.MapLen}, wire.MapLen},
		{wire.Header{Sequence: 1, SourcePort: wire.ProbePort, Extensions: raw}, 0},
		{wire.Header{Sequence: 2, DestPort: wire.ProbePort, Extensions: raw, Ack: 1}, 0},
		{wire.Header{Sequence: 3, Len: 5, SourcePort: 5000, DestPort: 4000, Flags: wire.AckRequired}, 5},
		{wire.Header{Sequence: 4, Len: 5000, SourcePort: 5000, DestPort: 4000}, 4096},
		{wire.Header{Sequence: 4, Len: 5000, SourcePort: 5000, DestPort: 4000}, 904},
		{wire.Header{Sequence: 5, SourcePort: 5000}, 0},
		{wire.Header{Ack: 1, Credit: 255}, 0},
		{wire.Header{Sequence: 3, Len: 5, SourcePort: 5000, DestPort: 4000, Flags: wire.Retransmitted}, 5},
		{wire.Header{Sequence: 1 << 63, Len: 1 << 20, SourcePort: 5000, DestPort: 9}, 100},
	} {
		b := append(s.h.AppendTo(nil, false), bytes.Repeat([]byte{byte(s.h.Sequence)}, s.data)...)
		segments = append(segments, b)
	}
	return segments
}

// A node gets any bytes, over TCP, in pieces of any size and over two connections that are cut at
// any place.
func FuzzNodeTCP(f *testing.F) {
	all := seeds(f)
	stream := bytes.Join(all, nil)
	f.Add(stream, uint16(0), uint16(len(all[0])), uint8(200))
	f.Add(stream, uint16(9000), uint16(8500), uint8(0))
	f.Add(bytes.Join(all[1:4], nil), uint16(150), uint16(48), uint8(1))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint16(5), uint16(0), uint8(3))
	f.Fuzz(func(t *testing.T, stream []byte, cut, back uint16, piece uint8) {
		if len(stream) > 1<<16 {
			return
		}
		inSandbox(t, (*sandbox).tcp, (*sandbox).bytes, func(s *sandbox) {
			at := min(int(cut), len(stream))
			again := at - min(int(back), at) // what is sent again on the second connection
			for i, part := range [][]byte{stream[:at], stream[again:]} {
				c := s.bytes()
				defer s.bound(c)()
				size := max(1, int(piece)*37)
				for len(part) > 0 {
					k := min(size, len(part))
					if c.write(part[:k]) != nil {
						break
					}
					if part = part[k:]; len(part) < 1000 || size > 1000 {
						synctest.Wait()
					}
				}
				if i == 0 && cut%2 == 0 {
					c.close()
				}
			}
			synctest.Wait()
			for msg, err := s.socket.TryReceive(); err == nil; msg, err = s.socket.TryReceive() {
				if msg.Addr.Host != simHostile || !bytes.Contains(stream, msg.Data) {
					t.Errorf("%d bytes from %v are delivered that nobody has sent", len(msg.Data), msg.Addr)
				}
			}
		})
	})
}

// A node gets any private data, and any Sends, over iWARP. Each Send has its length in front, of
// two bytes.
func FuzzNodeIWARP(f *testing.F) {
	all := seeds(f)
	var sends []byte
	for _, s := range all {
		sends = append(binary.BigEndian.AppendUint16(sends, uint16(len(s))), s...)
	}
	for _, v := range []wire.Private{
		{Source: simHostile, Dest: simNode, Major: wire.Major, Minor: wire.Minor, MinorMask: wire.MinorMask},
		{Source: simHostile, Dest: simNode, Major: wire.Major, Minor: wire.Minor, MinorMask: wire.MinorMask, Credit: 16, Generation: 7, AckSequence: 3},
		{Source: simHostile, Dest: simNode, Major: 4, MinorMask: 1, TOS: 9},
		{Source: simGood, Dest: simHostile, Major: 9},
	} {
		private, err := v.AppendTo(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(private, sends)
	}
	f.Add([]byte{}, []byte{0, 3, 1, 2, 3})
	v := wire.Private{Source: simGood, Dest: simNode, Major: wire.Major, Minor: wire.Minor, MinorMask: wire.MinorMask}
	goodPrivate, err := v.AppendTo(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, private, sends []byte) {
		if len(sends) > 1<<16 || len(private) > 500 {
			return
		}
		inSandbox(t, (*sandbox).iwarp, func(s *sandbox) hostileConn { return s.verbs(goodPrivate) }, func(s *sandbox) {
			c, err := connectVerbs(s.t.Context(), s.device(), 16, private, s.open)
			if err != nil {
				return // most private data are wrong
			}
			defer s.bound(c)()
			for len(sends) >= 2 {
				k := min(int(binary.BigEndian.Uint16(sends)), len(sends)-2)
				if c.write(sends[2:2+k]) != nil {
					break
				}
				sends = sends[2+k:]
				synctest.Wait()
			}
		})
	})
}
