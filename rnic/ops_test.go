package rnic_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"urnic/internal/test/cutnet"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// exerciser runs every operation of the send queue from A to B and checks each
// byte that moves.
type exerciser struct {
	*testing.T
	*rnictest.Pair
	id uint64
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) ^ byte(i>>8) ^ seed
	}
	return b
}

// do posts one request and waits for its completion.
func (e *exerciser) do(wr rnic.SendWR) rnic.WC {
	e.Helper()
	e.id++
	wr.ID = e.id
	e.A.Send(e, wr)
	wc := rnictest.Want(e, e.A.SendCQ, e.id)
	if wc.Op != wr.Op {
		e.Errorf("%v completed as %v", wr.Op, wc.Op)
	}
	return wc
}

// recv posts a receive of n bytes at B and returns its buffer.
func (e *exerciser) recv(n int) []byte {
	e.Helper()
	buf := make([]byte, max(n, 1))
	mr := e.B.Register(e, buf, rnic.LocalWrite)
	e.id++
	e.B.Recv(e, rnic.RecvWR{ID: e.id, SGL: []rnic.SGE{mr.SGE(0, n)}})
	return buf
}

func (e *exerciser) run(size int) {
	src := pattern(size, 1)
	local := make([]byte, size+8)
	remote := make([]byte, size+16)
	srcMR := e.A.Register(e, append(slices.Clone(src), 0), 0)
	localMR := e.A.Register(e, local, rnic.LocalWrite)
	remoteMR := e.B.Register(e, remote, rnic.LocalWrite|rnic.RemoteRead|rnic.RemoteWrite|rnic.RemoteAtomic|rnic.BindWindow)
	sgl := []rnic.SGE{srcMR.SGE(0, size/3), srcMR.SGE(size/3, size-size/3)}

	// Sends.
	for _, flags := range []rnic.Flags{0, rnic.FlagSolicited} {
		buf := e.recv(size + 5)
		id := e.id
		e.do(rnic.SendWR{Op: rnic.OpSend, Flags: flags, SGL: sgl})
		wc := rnictest.Want(e, e.B.RecvCQ, id)
		if int(wc.ByteLen) != size || wc.Op != rnic.OpRecv || wc.Solicited != (flags != 0) || !bytes.Equal(buf[:size], src) {
			e.Errorf("Send of %d octets arrived as %+v", size, wc)
		}
	}
	// Send with Invalidate: the STag is of this stream only.
	for _, flags := range []rnic.Flags{0, rnic.FlagSolicited} {
		once, err := e.B.PD.RegisterMemory(rnic.Memory{Slice: make([]byte, 8)}, rnic.RemoteRead|rnic.RemoteInvalidate, e.B.QP)
		if err != nil {
			e.Fatal(err)
		}
		e.recv(size)
		id := e.id
		e.do(rnic.SendWR{Op: rnic.OpSendInvalidate, Flags: flags, SGL: sgl, Invalidate: once.STag()})
		if wc := rnictest.Want(e, e.B.RecvCQ, id); wc.Invalidated != once.STag() || once.Valid() {
			e.Errorf("Send with Invalidate: %+v; valid: %v", wc, once.Valid())
		}
	}
	// RDMA Write and Read.
	e.do(rnic.SendWR{Op: rnic.OpWrite, SGL: sgl, Remote: remoteMR.Remote(8)})
	wc := e.do(rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{localMR.SGE(4, size)}, Remote: remoteMR.Remote(8)})
	if !bytes.Equal(local[4:4+size], src) || int(wc.ByteLen) != size {
		e.Errorf("%d octets written and read back differ", size)
	}
	if !bytes.Equal(remote[:8], make([]byte, 8)) || !bytes.Equal(remote[8+size:], make([]byte, 8)) {
		e.Error("the Write touched octets beside its range")
	}
	// Write with Immediate.
	clear(remote)
	e.recv(0)
	id := e.id
	e.do(rnic.SendWR{Op: rnic.OpWriteImmediate, SGL: sgl, Remote: remoteMR.Remote(0), Immediate: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}})
	wc = rnictest.Want(e, e.B.RecvCQ, id)
	if wc.Op != rnic.OpRecvImmediate || wc.Immediate != [8]byte{1, 2, 3, 4, 5, 6, 7, 8} || !bytes.Equal(remote[:size], src) {
		e.Errorf("Write with Immediate arrived as %+v", wc)
	}
	// Immediate Data.
	e.recv(0)
	id = e.id
	e.do(rnic.SendWR{Op: rnic.OpImmediate, Flags: rnic.FlagSolicited, Immediate: [8]byte{9}})
	if wc := rnictest.Want(e, e.B.RecvCQ, id); wc.Op != rnic.OpRecvImmediate || wc.Immediate[0] != 9 || !wc.Solicited || wc.ByteLen != 8 {
		e.Errorf("Immediate Data arrived as %+v", wc)
	}
}

// memory exercises what changes who may touch what.
func (e *exerciser) memory() {
	word := make([]byte, 64)
	off := int(-e.B.Register(e, word, 0).Base() & 7) // of the first aligned byte
	mr := e.B.Register(e, word, rnic.LocalWrite|rnic.RemoteAtomic|rnic.RemoteRead)
	result := make([]byte, 8)
	resultMR := e.A.Register(e, result, rnic.LocalWrite)
	binary.NativeEndian.PutUint64(word[off:], 40)

	wc := e.do(rnic.SendWR{Op: rnic.OpFetchAdd, SGL: []rnic.SGE{resultMR.SGE(0, 8)}, Remote: mr.Remote(off), Atomic: rnic.Atomic{Add: 2}})
	if wc.Original != 40 || binary.NativeEndian.Uint64(result) != 40 {
		e.Errorf("FetchAdd returned %d, stored %d", wc.Original, binary.NativeEndian.Uint64(result))
	}
	wc = e.do(rnic.SendWR{Op: rnic.OpCmpSwap, Remote: mr.Remote(off), Atomic: rnic.Atomic{Compare: 42, Swap: 7}})
	if wc.Original != 42 {
		e.Errorf("CmpSwap returned %d", wc.Original)
	}
	wc = e.do(rnic.SendWR{Op: rnic.OpCmpSwap, Remote: mr.Remote(off), Atomic: rnic.Atomic{Compare: 42, Swap: 8}})
	if wc.Original != 7 {
		e.Errorf("CmpSwap that does not compare returned %d", wc.Original)
	}

	// Fast registration at A, for a Read whose sink is invalidated after it.
	sink := make([]byte, 64)
	fast, err := e.A.PD.AllocMR(64)
	if err != nil {
		e.Fatal(err)
	}
	key := fast.STag().Key() + 1
	tag := fast.STag().WithKey(key)
	e.do(rnic.SendWR{Op: rnic.OpFastRegister, Register: rnic.FastRegister{MR: fast, Memory: rnic.Memory{Slice: sink, ZeroBased: true}, Access: rnic.LocalWrite, Key: key}})
	if !fast.Valid() || fast.STag() != tag {
		e.Errorf("fast-registered region has STag %v, valid: %v; want %v", fast.STag(), fast.Valid(), tag)
	}
	e.do(rnic.SendWR{Op: rnic.OpReadInvalidate, SGL: []rnic.SGE{{LKey: tag, Length: 64}}, Remote: mr.Remote(0)})
	if fast.Valid() || !bytes.Equal(sink, word) {
		e.Errorf("Read with Local Invalidate: valid: %v", fast.Valid())
	}

	// Windows at A, used by B.
	data := pattern(256, 3)
	region := e.A.Register(e, data, rnic.LocalWrite|rnic.BindWindow)
	for _, typ := range []rnic.WindowType{rnic.Type1, rnic.Type2} {
		w, err := e.A.PD.AllocMW(typ)
		if err != nil {
			e.Fatal(err)
		}
		e.do(rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: w, MR: region, Addr: region.Base() + 16, Length: 32, Access: rnic.RemoteRead, Key: w.STag().Key() + 1}})
		got := make([]byte, 32)
		gotMR := e.B.Register(e, got, rnic.LocalWrite)
		e.id++
		e.B.Send(e, rnic.SendWR{ID: e.id, Op: rnic.OpRead, SGL: []rnic.SGE{gotMR.SGE(0, 32)}, Remote: rnic.Remote{STag: w.STag(), TO: region.Base() + 16}})
		rnictest.Want(e, e.B.SendCQ, e.id)
		if !bytes.Equal(got, data[16:48]) {
			e.Errorf("a Read through a type %d window differs", typ)
		}
		e.do(rnic.SendWR{Op: rnic.OpLocalInvalidate, Invalidate: w.STag()})
		if w.Valid() {
			e.Errorf("a type %d window is valid after Local Invalidate", typ)
		}
	}
}

func TestEveryOperationPassesBetweenTwoDevices(t *testing.T) {
	all := func(t *testing.T, p *rnictest.Pair) {
		e := &exerciser{T: t, Pair: p}
		for _, size := range []int{0, 1, 17, 1434, 5000, 200_000} {
			e.run(size)
		}
		e.memory()
		// Inline and unsignaled.
		buf := e.recv(10)
		id := e.id
		p.A.Send(t, rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline | rnic.FlagUnsignaled, Inline: []byte("inline")})
		if rnictest.Want(t, p.B.RecvCQ, id); string(buf[:6]) != "inline" {
			t.Errorf("inline data arrived as %q", buf)
		}
		if err := p.A.QP.Disconnect(context.Background()); err != nil {
			t.Error(err)
		}
		if n := p.A.SendCQ.Poll(make([]rnic.WC, 4)); n != 0 {
			t.Errorf("%d completions nobody asked for", n)
		}
	}
	t.Run("memory", func(t *testing.T) { onBoth(t, all) })
	t.Run("memory, short reads and writes", func(t *testing.T) {
		f := rnictest.Faults{Seed: 5, ShortReads: true, ShortWrites: true}
		onBoth(t, all, rnictest.Options{AB: f, BA: f})
	})
	t.Run("TCP", func(t *testing.T) { all(t, overTCP(t, "127.0.0.1:0")) })
	t.Run("TCP over IPv6", func(t *testing.T) { all(t, overTCP(t, "[::1]:0")) })
	t.Run("TCP in pieces", func(t *testing.T) {
		for seed := range uint64(3) {
			all(t, inPieces(t, seed))
		}
	})
}

// overTCP connects two devices over loopback.
func overTCP(t testing.TB, address string) *rnictest.Pair {
	t.Helper()
	return overLoopback(t, nil, address)
}

// inPieces connects two devices over loopback, where each read and write of
// either does less than it was asked for.
func inPieces(t testing.TB, seed uint64) *rnictest.Pair {
	t.Helper()
	n := &cutnet.Network{Seed: seed}
	t.Cleanup(func() {
		if r, w := n.Cut(); r+w == 0 {
			t.Error("no read and no write was cut")
		}
	})
	return overLoopback(t, n, "127.0.0.1:0")
}

func overLoopback(t testing.TB, network rnic.Network, address string) *rnictest.Pair {
	t.Helper()
	p := &rnictest.Pair{A: tcpSide(t, "A", network), B: tcpSide(t, "B", network)}
	l, err := p.B.Device.Listen(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(context.Background())
		if err == nil {
			err = r.Accept(context.Background(), p.B.QP, rnic.ConnParam{})
		}
		accepted <- err
	}()
	if err := p.A.QP.Connect(context.Background(), l.Addr().String(), rnic.ConnParam{}); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	return p
}

func tcpSide(t testing.TB, name string, network rnic.Network) *rnictest.Side {
	t.Helper()
	d, err := rnic.Open(rnic.Config{Name: name, Network: network})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &rnictest.Side{Name: name, Device: d}
	if s.PD, err = d.AllocPD(); err != nil {
		t.Fatal(err)
	}
	for _, cq := range []**rnic.CQ{&s.SendCQ, &s.RecvCQ} {
		if *cq, err = d.CreateCQ(rnic.CQAttr{}); err != nil {
			t.Fatal(err)
		}
	}
	if s.QP, err = s.PD.CreateQP(rnic.QPAttr{SendCQ: s.SendCQ, RecvCQ: s.RecvCQ}); err != nil {
		t.Fatal(err)
	}
	return s
}
