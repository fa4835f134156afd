package rnic_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ddp"
	"urnic/internal/test/simnet"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/stag"
)

// The first byte of the fuzz data says what kind of peer there is.
const (
	fuzzRaw       = 1 << iota // bytes as they are, start-up included; else the ULPDUs of good FPDUs
	fuzzInitiator             // the side is the initiator
	fuzzPeerToPeer
	fuzzMarkers
	fuzzReset  // at the end the peer resets the connection; else it closes it
	fuzzWrites // the side has more to send
)

// A prey is a queue pair under fuzzing, with memory of all kinds.
type prey struct {
	t       testing.TB
	d       *rnic.Device
	q       *rnic.QP
	send    *rnic.CQ
	recv    *rnic.CQ
	posted  [2]int // requests and receives
	guarded []guarded
	tags    [8]stag.STag
}

// guarded is memory that must not change but in parts of it.
type guarded struct {
	name     string
	mem      []byte
	from, to int
}

const preyBase = 0x1000 // TO of the first byte of each region

func newPrey(t testing.TB, network rnic.Network) *prey {
	p := &prey{t: t}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	p.d, err = rnic.Open(rnic.Config{Network: network})
	check(err)
	domain, err := p.d.AllocPD()
	check(err)
	other, err := p.d.AllocPD()
	check(err)
	p.send, err = p.d.CreateCQ(rnic.CQAttr{Entries: 64})
	check(err)
	p.recv, err = p.d.CreateCQ(rnic.CQAttr{Entries: 64})
	check(err)
	p.q, err = domain.CreateQP(rnic.QPAttr{SendCQ: p.send, RecvCQ: p.recv})
	check(err)
	region := func(i int, d *rnic.PD, name string, access rnic.Access, scope *rnic.QP, writable bool) *rnic.MR {
		mem := bytes.Repeat([]byte{0xA5}, 192)
		mr, err := d.RegisterMemory(rnic.Memory{Slice: mem[64:128], Base: preyBase}, access, scope)
		check(err)
		g := guarded{name: name, mem: mem}
		if writable {
			g.from, g.to = 64, 128
		}
		p.guarded = append(p.guarded, g)
		p.tags[i] = mr.STag()
		return mr
	}
	region(1, domain, "all rights", allRights, nil, true)
	region(2, domain, "read only", rnic.RemoteRead, nil, false)
	region(3, other, "another domain's", allRights, nil, false)
	sink := region(4, domain, "sink", rnic.LocalWrite, nil, true)
	region(5, domain, "to be invalidated", rnic.RemoteWrite|rnic.LocalWrite|rnic.RemoteInvalidate, p.q, true)
	buffer := region(6, domain, "receives", rnic.LocalWrite, nil, true)
	gone := region(7, domain, "deregistered", allRights, nil, false)
	check(gone.Close())
	for id := range uint64(3) {
		check(p.q.PostRecv(rnic.RecvWR{ID: id, SGL: []rnic.SGE{buffer.SGE(int(id)*16, 16), buffer.SGE(48, 16)}}))
		p.posted[1]++
	}
	check(p.q.PostSend(
		rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, 32)}, Remote: rnic.Remote{STag: 0x100}},
		rnic.SendWR{Op: rnic.OpFetchAdd, SGL: []rnic.SGE{sink.SGE(32, 8)}, Remote: rnic.Remote{STag: 0x100}},
	))
	p.posted[0] += 2
	return p
}

// check checks what must hold whatever the peer has done.
func (p *prey) check() {
	if s := p.q.State(); s == rnic.Closing || s == rnic.Terminating {
		p.t.Errorf("the queue pair is in state %v for ever", s)
	}
	p.q.Abort()
	for i, cq := range []*rnic.CQ{p.send, p.recv} {
		var wcs [64]rnic.WC
		failed := false
		n := cq.Poll(wcs[:])
		for _, wc := range wcs[:n] {
			if failed = failed || wc.Status != rnic.StatusSuccess; failed && wc.Status == rnic.StatusSuccess {
				p.t.Errorf("request %d succeeded after another one was flushed", wc.ID)
			}
		}
		if n != p.posted[i] {
			p.t.Errorf("%d completions of %d requests", n, p.posted[i])
		}
	}
	for _, g := range p.guarded {
		for i, b := range g.mem {
			if b != 0xA5 && (i < g.from || i >= g.to) {
				p.t.Fatalf("region %q: octet %d was changed", g.name, i)
			}
		}
	}
	if err := p.d.Close(); err != nil {
		p.t.Error(err)
	}
	wantHeld(p.t, p.d, pd.Limits{})
}

// ulpdu makes a ULPDU of fuzz data: small STags stand for those of the prey.
func (p *prey) ulpdu(b []byte) []byte {
	b = bytes.Clone(b)
	replace := func(at int) {
		if len(b) >= at+4 {
			if s := binary.BigEndian.Uint32(b[at:]); s < uint32(len(p.tags)) {
				binary.BigEndian.PutUint32(b[at:], uint32(p.tags[s]))
			}
		}
	}
	if len(b) < 2 {
		return b
	}
	op := rdmap.Control(b[1]).Opcode()
	switch {
	case ddp.Control(b[0]).Tagged(), op.Invalidates():
		replace(2)
	case op == rdmap.OpReadRequest:
		replace(ddp.UntaggedHeaderLen)
		replace(ddp.UntaggedHeaderLen + 16)
	case op == rdmap.OpAtomicRequest:
		replace(ddp.UntaggedHeaderLen + 8)
	}
	return b
}

// start brings about a connection to a hostile peer, and returns the peer's end
// of it; in raw mode, it is only a byte stream.
func (p *prey) start(network *simnet.Network, mode byte) (conn *simnet.Conn, framer mpa.Framer, done func()) {
	cfg := &mpa.Config{PeerToPeer: mode&fuzzPeerToPeer != 0, Markers: mode&fuzzMarkers != 0}
	param := rnic.ConnParam{MPA: cfg}
	ended := make(chan bool)
	fatal := func(err error) {
		if err != nil {
			p.t.Fatal(err)
		}
	}
	framer.CRC, framer.Markers = true, cfg.Markers
	read := func(n int) {
		for got := 0; got < n; {
			k, err := conn.Read(make([]byte, n-got))
			fatal(err)
			got += k
		}
	}
	e := mpa.Enhanced{PeerToPeer: cfg.PeerToPeer, IRD: 4, ORD: 4}
	if cfg.PeerToPeer {
		e.RTR = mpa.RTRAll
	}
	block, _ := e.AppendBinary(nil)
	if mode&fuzzInitiator != 0 {
		l, err := network.Listen(context.Background(), ":0")
		fatal(err)
		go func() {
			_ = p.q.Connect(context.Background(), l.Addr().String(), param)
			close(ended)
		}()
		c, err := l.Accept()
		fatal(err)
		conn = c.(*simnet.Conn)
		if mode&fuzzRaw == 0 {
			read(mpa.FrameHeaderLen + mpa.EnhancedLen)
			b, _ := (&mpa.Frame{Reply: true, Revision: 2, Enhanced: true, PrivateData: block}).AppendBinary(nil)
			_, _ = conn.Write(b)
		}
		return conn, framer, func() {
			<-ended
			_ = l.Close()
		}
	}
	l, err := p.d.Listen(context.Background(), ":0")
	fatal(err)
	go func() {
		r, err := l.Accept(context.Background())
		if err == nil {
			_ = r.Accept(context.Background(), p.q, param)
		}
		close(ended)
	}()
	c, err := network.Dial(context.Background(), l.Addr().String())
	fatal(err)
	conn = c.(*simnet.Conn)
	if mode&fuzzRaw == 0 {
		b, _ := (&mpa.Frame{Revision: 2, Enhanced: true, PrivateData: block}).AppendBinary(nil)
		_, _ = conn.Write(b)
		read(mpa.FrameHeaderLen + mpa.EnhancedLen)
	}
	return conn, framer, func() {
		_ = l.Close()
		<-ended
	}
}

func fuzzLiveQP(t *testing.T, data []byte) {
	if len(data) == 0 {
		return
	}
	mode, data := data[0], data[1:]
	network := &simnet.Network{Polls: len(data)%2 > 0} // who receives must not matter
	p := newPrey(t, network)
	conn, framer, done := p.start(network, mode)
	if mode&fuzzRaw != 0 {
		_, _ = conn.Write(data)
	}
	for mode&fuzzRaw == 0 && len(data) > 0 {
		n := min(int(data[0]), len(data)-1)
		b, err := framer.AppendFPDU(nil, p.ulpdu(data[1:1+n]))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(b)
		data = data[1+n:]
	}
	synctest.Wait()
	if mode&fuzzWrites != 0 && p.q.PostSend(rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: []byte("more")}) == nil {
		p.posted[0]++
	}
	if mode&fuzzReset != 0 {
		_ = conn.Abort()
	} else {
		_ = conn.CloseWrite()
		synctest.Wait()
		for {
			if _, err := conn.Read(make([]byte, 4096)); err != nil {
				break
			}
		}
		_ = conn.Close()
	}
	done()
	time.Sleep(time.Minute)
	p.check()
}

// FuzzLiveQP plays a hostile peer to a queue pair that has receives, a Read and
// an atomic outstanding. Whatever comes, memory changes only where the peer has
// a right to it or was asked, each request completes once, the queue pair ends,
// and the device lets go of everything.
func FuzzLiveQP(f *testing.F) {
	for _, seed := range fuzzSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) { fuzzLiveQP(t, data) })
	})
}

// fuzzSeeds are peers that behave, of all kinds.
func fuzzSeeds() (seeds [][]byte) {
	var msn [4]uint32
	seq := func(mode byte, segs ...ddp.Segment) {
		b := []byte{mode}
		msn = [4]uint32{}
		for _, s := range segs {
			if !s.Control.Tagged() {
				s.Untagged.MSN = msn[s.Untagged.QN] + 1
				if s.Control.Last() {
					msn[s.Untagged.QN]++
				}
			}
			s.Tagged.Control, s.Untagged.Control = s.Control, s.Control
			u, _ := s.AppendBinary(nil)
			b = append(append(b, byte(len(u))), u...)
		}
		seeds = append(seeds, b)
	}
	write := taggedSeg(rdmap.OpWrite, 1, preyBase, []byte("written"))
	rtr := taggedSeg(rdmap.OpWrite, 0, 0, nil)
	read := readSeg(rdmap.ReadRequest{SinkSTag: 0x77, Size: 16, SrcSTag: 1, SrcTO: preyBase})
	response := taggedSeg(rdmap.OpReadResponse, 4, preyBase, make([]byte, 32))
	atomicResponse := untaggedSeg(rdmap.OpAtomicResponse, []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9})
	invalidate := untaggedSeg(rdmap.OpSendInvalidate, []byte("x"))
	invalidate.Untagged.RsvdULP[4] = 5
	half := sendSeg("half")
	half.Control = ddp.NewControl(false, false)
	rest := sendSeg("rest")
	rest.Untagged.MO = 4
	seq(0, sendSeg("hello"), write, read, response, atomicResponse)
	seq(fuzzInitiator|fuzzWrites, sendSeg("hello"), response, atomicResponse, write, atomicSeg(rdmap.AtomicRequest{STag: 1, TO: preyBase, AddSwap: 1, CompareMask: ^uint64(0)}))
	seq(fuzzMarkers|fuzzReset, invalidate, half, rest, untaggedSeg(rdmap.OpImmediateSE, make([]byte, 8)))
	seq(fuzzPeerToPeer|fuzzWrites, rtr, sendSeg("first"), sendSeg("second"))
	seq(fuzzInitiator|fuzzPeerToPeer, response, terminateSeg(ofRead(rdmap.CodeInvalidSTag, 1, rdmap.ReadRequest{})))
	seq(fuzzWrites, terminateSeg(rdmap.Terminate{Code: rdmap.CodeGlobalCatastrophic}))
	seq(0, read, read, read, read, read, read)
	f := plainRequest
	raw, _ := f.AppendBinary([]byte{fuzzRaw})
	seeds = append(seeds, raw)
	reply := mpa.Frame{Reply: true, Revision: 2, CRC: true, Enhanced: true, PrivateData: []byte{0, 4, 0, 4}}
	raw, _ = reply.AppendBinary([]byte{fuzzRaw | fuzzInitiator})
	framer := mpa.Framer{CRC: true}
	u := untaggedSeg(rdmap.OpSend, []byte("raw"))
	u.Untagged.Control, u.Untagged.MSN = u.Control, 1
	b, _ := u.AppendBinary(nil)
	raw, _ = framer.AppendFPDU(raw, b)
	return append(seeds, raw)
}
