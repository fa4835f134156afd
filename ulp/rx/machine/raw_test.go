package machine

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"urnic/ulp/rx/wire"
)

var (
	here  = netip.MustParseAddrPort("10.0.0.1:7000")
	there = netip.MustParseAddrPort("10.0.0.2:7001")
)

const (
	testService = 147
	testEpoch   = 0x81234567
	testCID     = 0x4ec0
)

// A packet is one that the machine has sent.
type packet struct {
	wire.Header
	body []byte
	to   netip.AddrPort
	size int // of its datagram
	at   Time
}

func (p *packet) ack(t *testing.T) wire.Ack {
	t.Helper()
	a, err := wire.ParseAck(p.body)
	if p.Type != wire.TypeAck || err != nil {
		t.Fatalf("%v is no acknowledgement: %v", &p.Header, err)
	}
	return a
}

// A raw is a machine whose peer is the test.
type raw struct {
	*Machine
	t      *testing.T
	at     Time
	sent   []packet // and not taken
	calls  []*Call  // that were incoming
	events []Effect
	serial uint32 // of the last packet to the machine
	epoch  uint32 // of what is sent to it
	cid    uint32
	flags  wire.Flags // of the direction
	from   netip.AddrPort
	index  uint8
	status uint8
	sum    uint16
}

func newRaw(t *testing.T, cfg Config) *raw {
	t.Helper()
	cfg.Rand = rand.New(rand.NewPCG(1, 2))
	return &raw{Machine: New(cfg), t: t, epoch: testEpoch, cid: testCID, from: there, flags: wire.FlagClient}
}

// newServer is a machine with a service; the test is its client.
func newServer(t *testing.T, cfg Config, s Service) *raw {
	t.Helper()
	r := newRaw(t, cfg)
	s.ID = testService
	if err := r.Serve(s); err != nil {
		t.Fatal(err)
	}
	return r
}

// newClient is a machine with a call; the test is its server.
func newClient(t *testing.T, cfg Config, d DialConfig) (*raw, *Call) {
	t.Helper()
	r := newRaw(t, cfg)
	c, err := r.Dial(0, there, testService, d)
	if err != nil {
		t.Fatal(err)
	}
	r.epoch, r.cid, r.flags, r.index = r.Epoch(), c.ID(), 0, c.index
	return r, r.begin(c)
}

func (r *raw) begin(c *Conn) *Call {
	r.t.Helper()
	k, err := c.Begin(r.at)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

// do takes what the machine sends, and its effects.
func (r *raw) do() {
	r.t.Helper()
	for {
		for _, e := range r.Effects() {
			r.events = append(r.events, e)
			if e.Kind == Incoming {
				r.calls = append(r.calls, e.Call)
			}
		}
		b := make([]byte, MaxDatagram)
		n, to, ok := r.Pull(r.at, b)
		if !ok {
			return
		}
		h, err := wire.ParseHeader(b[:n])
		if err != nil {
			r.t.Fatalf("it sends %d bytes", n)
		}
		p := wire.SplitData(h, b[wire.HeaderLen:n])
		for {
			h, body, more := p.Next()
			if !more {
				break
			}
			r.sent = append(r.sent, packet{h, body, to, n, r.at})
			n = 0 // what follows is in the same datagram
		}
		if p.Err() != nil {
			r.t.Fatalf("it sends %v: %v", &h, p.Err())
		}
	}
}

// take returns what the machine has sent since the last call.
func (r *raw) take() []packet {
	r.t.Helper()
	r.do()
	sent := r.sent
	r.sent = nil
	return sent
}

// only returns the one packet that the machine has sent, which is of a type.
func (r *raw) only(t wire.Type) packet {
	r.t.Helper()
	sent := r.take()
	if len(sent) != 1 || sent[0].Type != t {
		r.t.Fatalf("sent: %v; want one packet: %v", headers(sent), t)
	}
	return sent[0]
}

// quiet fails if the machine has sent anything.
func (r *raw) quiet() {
	r.t.Helper()
	if sent := r.take(); len(sent) > 0 {
		r.t.Fatalf("sent: %v; want nothing", headers(sent))
	}
}

// onlyAck returns the one acknowledgement that was sent.
func (r *raw) onlyAck(reason wire.Reason) wire.Ack {
	r.t.Helper()
	p := r.only(wire.TypeAck)
	a := p.ack(r.t)
	if a.Reason != reason {
		r.t.Fatalf("sent: %v; want %v", &a, reason)
	}
	return a
}

func headers(sent []packet) (all []string) {
	for i := range sent {
		s := sent[i].String()
		if a, err := wire.ParseAck(sent[i].body); err == nil && sent[i].Type == wire.TypeAck {
			s += " " + a.String()
		}
		all = append(all, s)
	}
	return all
}

// header is one of the peer's, of call 1 on channel 0.
func (r *raw) header(t wire.Type) wire.Header {
	r.serial++
	return wire.Header{
		Epoch: r.epoch, CID: r.cid, Call: 1, Serial: r.serial, Type: t, Flags: r.flags, Security: r.index, Service: testService,
		UserStatus: r.status, Checksum: r.sum,
	}
}

// give gives the machine a packet.
func (r *raw) give(h wire.Header, body []byte) {
	r.Receive(r.at, r.from, append(h.Append(nil), body...))
}

// says gives the machine a packet, and has it answer.
func (r *raw) says(h wire.Header, body []byte) {
	r.t.Helper()
	r.give(h, body)
	r.do()
}

// data gives the machine a data packet of call 1.
func (r *raw) data(seq uint32, flags wire.Flags, body string) {
	r.t.Helper()
	h := r.header(wire.TypeData)
	h.Seq, h.Flags = seq, h.Flags|flags
	r.says(h, []byte(body))
}

// trailer is that of a peer of today.
var trailer = wire.Trailer{Words: 4, MaxMTU: 5692, IfMTU: 1444, Window: 32, MaxPackets: 4}

// acks gives the machine an acknowledgement of call 1. list has + for each packet that is
// held, and - for each that is missing.
func (r *raw) acks(reason wire.Reason, first, serial uint32, list string) {
	r.t.Helper()
	r.acksWith(wire.Ack{Reason: reason, First: first, Serial: serial, Trailer: trailer}, list, 0)
}

func (r *raw) acksWith(a wire.Ack, list string, flags wire.Flags) {
	r.t.Helper()
	for _, c := range list {
		held := byte(0)
		if c == '+' {
			held = 1
		}
		a.Acks = append(a.Acks, held)
	}
	a.Count = uint8(len(a.Acks))
	h := r.header(wire.TypeAck)
	h.Flags |= wire.FlagSlowStart | flags
	r.says(h, a.Append(nil))
}

// pass lets time pass, with each deadline in its turn.
func (r *raw) pass(d time.Duration) {
	r.t.Helper()
	end := r.at + d
	for range 100_000 {
		r.do()
		at, ok := r.Deadline()
		if !ok || at > end {
			r.at = end
			r.Advance(end)
			r.do()
			return
		}
		r.at = max(r.at, at)
		r.Advance(r.at)
	}
	r.t.Fatal("there is no end of deadlines")
}

// write writes a text, and ends the stream if it is whole. It flushes what may fill packets.
func (r *raw) write(k *Call, n int, whole bool) {
	r.t.Helper()
	if got, err := k.Write(r.at, pattern(n)); got != n || err != nil {
		r.t.Fatalf("Write(%d bytes) = %d, %v", n, got, err)
	}
	err := error(nil)
	if whole {
		err = k.CloseWrite(r.at)
	} else if n >= 1000 {
		err = k.Flush(r.at)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.do()
}

// read reads what there is.
func (r *raw) read(k *Call) (string, error) {
	r.t.Helper()
	var all []byte
	b := make([]byte, 1000)
	for {
		n, err := k.Read(r.at, b)
		all = append(all, b[:n]...)
		if n == 0 || err != nil {
			r.do()
			return string(all), err
		}
	}
}

func (r *raw) reads(k *Call, want string, end error) {
	r.t.Helper()
	if got, err := r.read(k); got != want || !errors.Is(err, end) {
		r.t.Fatalf("Read = %d bytes, %v; want %d, %v", len(got), err, len(want), end)
	}
}

// served has a client's call of one packet, whose program is the test.
func (r *raw) served() *Call {
	r.t.Helper()
	r.data(1, wire.FlagLast, "abcd")
	if len(r.calls) == 0 {
		r.t.Fatalf("no call is incoming; sent: %v", headers(r.sent))
	}
	k := r.calls[len(r.calls)-1]
	r.reads(k, "abcd", io.EOF)
	return k
}

// fails checks how a call has failed.
func fails(t *testing.T, err error, code wire.Code, remote bool) {
	t.Helper()
	var e *AbortError
	if !errors.As(err, &e) || e.Code != code || e.Remote != remote {
		t.Fatalf("it failed with %v; want code %d, remote: %v", err, code, remote)
	}
}

func pattern(n int) []byte {
	return bytes.Repeat([]byte("0123456789abcdefghij"), n/20+1)[:n]
}

func code(p packet) int32 { return wire.ParseAbort(p.body) }

// end ends all, and checks that nothing is left.
func (r *raw) end() {
	r.t.Helper()
	for _, k := range r.calls {
		k.End(r.at)
	}
	for _, c := range append([]*Conn(nil), r.list...) {
		c.Close(r.at)
	}
	r.do()
	r.pass(2 * peerMemory)
	if r.memory != 0 || r.suspect != 0 || r.pool.out != 0 {
		r.t.Errorf("%d bytes, %d of them suspect, and %d pieces of memory are left", r.memory, r.suspect, r.pool.out)
	}
	if len(r.list)+len(r.conns)+len(r.peers)+len(r.peerList)+len(r.timers)+r.served2() != 0 {
		r.t.Errorf("left: %d connections, %d peers, %d timers", len(r.conns), len(r.peers), len(r.timers))
	}
	if r.stats.LiveCalls != 0 {
		r.t.Errorf("%d calls count as live", r.stats.LiveCalls)
	}
}

func (r *raw) served2() int { return r.Machine.served.n }
