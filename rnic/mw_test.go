package rnic_test

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"testing/synctest"

	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/stag"
)

// A refusal is a request of A that is carried out without the peer, and can't be.
type refusal struct {
	name string
	make func(l lab, p *rnictest.Pair) rnic.SendWR
	rule string // what the cause of the completion says
}

// run posts a Send, the request and another Send: the first succeeds, the
// request completes with the status, the last is flushed, and the peer is told
// "local catastrophic error" (draft-hilland-rddp-verbs §6.2.4, Figure 23).
func (r *refusal) run(t *testing.T, status rnic.Status) {
	t.Run(r.name, func(t *testing.T) {
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			wr := r.make(labOf(t, p.A), p)
			wr.ID, wr.Flags = 2, wr.Flags|rnic.FlagUnsignaled // an error completes all the same
			p.B.Recv(t, receives(1, 2)...)
			p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpSend}, wr, rnic.SendWR{ID: 3, Op: rnic.OpSend, Flags: rnic.FlagUnsignaled})
			rnictest.Want(t, p.A.SendCQ, 1)
			wc := wantStatus(t, p.A.SendCQ, 2, status)
			var register *stag.RegisterError
			var access *stag.AccessError
			switch {
			case wc.Op != wr.Op:
				t.Errorf("it completes as %v", wc.Op)
			case errors.As(wc.Cause, &register) && register.Rule == r.rule:
			case errors.As(wc.Cause, &access) && access.Violation.String() == r.rule:
			default:
				t.Errorf("cause: %v; want %q", wc.Cause, r.rule)
			}
			if err := wc.Err(); !errors.Is(err, wc.Cause) {
				t.Errorf("the error of the completion hides its cause: %v", err)
			}
			wantStatus(t, p.A.SendCQ, 3, rnic.StatusFlushed)
			if ev := nextEvent(t, p.A.Device, rnic.EventCatastrophic); ev.QP != p.A.QP || !errors.Is(ev.Err, wc.Cause) {
				t.Errorf("%v", ev)
			}
			wantTerminate(t, p.B.Device, rdmap.CodeLocalCatastrophic)
			rnictest.Want(t, p.B.RecvCQ, 1)
			wantStatus(t, p.B.RecvCQ, 2, rnic.StatusFlushed)
		})
	})
}

// allocated returns a region of A that can be fast-registered with up to 64
// bytes.
func (l lab) allocated(p *rnic.PD) *rnic.MR {
	l.Helper()
	mr, err := p.AllocMR(64)
	return made(l, mr, err)
}

func TestFastRegistrationIsRefused(t *testing.T) {
	mem := make([]byte, 128)
	good := func(mr *rnic.MR) rnic.FastRegister {
		return rnic.FastRegister{MR: mr, Memory: rnic.Memory{Slice: mem[:64]}, Access: rnic.LocalWrite, Key: mr.STag().Key() + 1}
	}
	for name, r := range map[string]struct {
		spoil func(l lab, p *rnictest.Pair, f *rnic.FastRegister)
		rule  string
	}{
		"valid already": {func(l lab, p *rnictest.Pair, f *rnic.FastRegister) {
			f.MR = l.region(p.A.PD, mem, 0)
			f.Key = f.MR.STag().Key() + 1
		}, "STag not in invalid state"},
		"closed": {func(l lab, _ *rnictest.Pair, f *rnic.FastRegister) {
			if err := f.MR.Close(); err != nil {
				l.Error(err)
			}
		}, "STag not in invalid state"},
		"same key":                   {func(_ lab, _ *rnictest.Pair, f *rnic.FastRegister) { f.Key = f.MR.STag().Key() }, "key"},
		"too long":                   {func(_ lab, _ *rnictest.Pair, f *rnic.FastRegister) { f.Memory.Slice = mem[:65] }, "length"},
		"empty":                      {func(_ lab, _ *rnictest.Pair, f *rnic.FastRegister) { f.Memory.Slice = nil }, "length"},
		"wrapping":                   {func(_ lab, _ *rnictest.Pair, f *rnic.FastRegister) { f.Memory.Base = math.MaxUint64 }, "virtual address"},
		"remote write without local": {func(_ lab, _ *rnictest.Pair, f *rnic.FastRegister) { f.Access = rnic.RemoteWrite }, "access rights"},
		"unknown right":              {func(_ lab, _ *rnictest.Pair, f *rnic.FastRegister) { f.Access = 1 << 6 }, "access rights"},
	} {
		(&refusal{name, func(l lab, p *rnictest.Pair) rnic.SendWR {
			f := good(l.allocated(p.A.PD))
			r.spoil(l, p, &f)
			return rnic.SendWR{Op: rnic.OpFastRegister, Register: f}
		}, r.rule}).run(t, rnic.StatusRegisterFailed)
	}
}

func TestBindIsRefused(t *testing.T) {
	mem := make([]byte, 128)
	const base = 1 << 16
	for name, r := range map[string]struct {
		typ   rnic.WindowType
		spoil func(l lab, p *rnictest.Pair, b *rnic.Bind)
		rule  string
	}{
		"region without the right": {rnic.Type1, func(l lab, p *rnictest.Pair, b *rnic.Bind) {
			b.MR = l.region(p.A.PD, mem, everyRight&^rnic.BindWindow)
		}, "access rights"},
		"region that is not valid": {rnic.Type1, func(l lab, p *rnictest.Pair, b *rnic.Bind) { b.MR = l.allocated(p.A.PD) }, "invalid region"},
		"closed region": {rnic.Type2, func(l lab, _ *rnictest.Pair, b *rnic.Bind) {
			if err := b.MR.Close(); err != nil {
				l.Error(err)
			}
		}, "invalid region"},
		"zero-based region": {rnic.Type1, func(l lab, p *rnictest.Pair, b *rnic.Bind) {
			mr, err := p.A.PD.RegisterMemory(rnic.Memory{Slice: mem, ZeroBased: true}, everyRight, nil)
			b.MR, b.Addr = made(l, mr, err), 0
		}, "virtual address"},
		"region without local write": {rnic.Type2, func(l lab, p *rnictest.Pair, b *rnic.Bind) {
			mr := l.region(p.A.PD, mem, rnic.RemoteRead|rnic.BindWindow)
			b.MR, b.Addr = mr, mr.Base()
		}, "access rights"},
		"a local right":  {rnic.Type1, func(_ lab, _ *rnictest.Pair, b *rnic.Bind) { b.Access |= rnic.LocalWrite }, "access rights"},
		"bind right":     {rnic.Type2, func(_ lab, _ *rnictest.Pair, b *rnic.Bind) { b.Access |= rnic.BindWindow }, "access rights"},
		"before":         {rnic.Type1, func(_ lab, _ *rnictest.Pair, b *rnic.Bind) { b.Addr-- }, "base and bounds"},
		"behind":         {rnic.Type1, func(_ lab, _ *rnictest.Pair, b *rnic.Bind) { b.Addr += 129 }, "base and bounds"},
		"too long":       {rnic.Type2, func(_ lab, _ *rnictest.Pair, b *rnic.Bind) { b.Length = 129 }, "base and bounds"},
		"wrapping":       {rnic.Type2, func(_ lab, _ *rnictest.Pair, b *rnic.Bind) { b.Length = math.MaxUint64 }, "base and bounds"},
		"type 2 of none": {rnic.Type2, func(_ lab, _ *rnictest.Pair, b *rnic.Bind) { b.Length = 0 }, "length"},
		"type 2 with its old key": {rnic.Type2, func(_ lab, _ *rnictest.Pair, b *rnic.Bind) {
			b.Key = b.MW.STag().Key()
		}, "key"},
		"type 2 that is bound": {rnic.Type2, func(l lab, p *rnictest.Pair, b *rnic.Bind) {
			p.A.Send(l, rnic.SendWR{ID: 9, Op: rnic.OpBindWindow, Bind: *b})
			rnictest.Want(l, p.A.SendCQ, 9)
			b.Key++
		}, "STag not in invalid state"},
		"closed window": {rnic.Type1, func(l lab, _ *rnictest.Pair, b *rnic.Bind) {
			if err := b.MW.Close(); err != nil {
				l.Error(err)
			}
		}, "invalid window"},
	} {
		(&refusal{name, func(l lab, p *rnictest.Pair) rnic.SendWR {
			w := l.window(p.A.PD, r.typ)
			b := rnic.Bind{
				MW: w, MR: l.scoped(p.A.QP, mem, base, nil), Addr: base, Length: 128,
				Access: rnic.RemoteRead | rnic.RemoteWrite, Key: w.STag().Key() + 1,
			}
			r.spoil(l, p, &b)
			return rnic.SendWR{Op: rnic.OpBindWindow, Bind: b}
		}, r.rule}).run(t, rnic.StatusBindFailed)
	}
}

func TestLocalInvalidationIsRefused(t *testing.T) {
	invalidate := func(find func(l lab, p *rnictest.Pair) stag.STag) func(lab, *rnictest.Pair) rnic.SendWR {
		return func(l lab, p *rnictest.Pair) rnic.SendWR {
			return rnic.SendWR{Op: rnic.OpLocalInvalidate, Invalidate: find(l, p)}
		}
	}
	mem := make([]byte, 64)
	for _, r := range []refusal{
		{"STag 0", invalidate(func(lab, *rnictest.Pair) stag.STag { return 0 }), "invalid STag"},
		{"another key", invalidate(func(l lab, p *rnictest.Pair) stag.STag {
			s := l.region(p.A.PD, mem, everyRight).STag()
			return s.WithKey(s.Key() + 1)
		}), "invalid STag"},
		{"not valid", invalidate(func(l lab, p *rnictest.Pair) stag.STag { return l.allocated(p.A.PD).STag() }), "invalid STag"},
		{"window that is not bound", invalidate(func(l lab, p *rnictest.Pair) stag.STag { return l.window(p.A.PD, rnic.Type2).STag() }), "invalid STag"},
		{"another domain", invalidate(func(l lab, _ *rnictest.Pair) stag.STag {
			return l.region(l.domain(), mem, everyRight).STag()
		}), "STag not associated with this stream"},
		{"another stream", invalidate(func(l lab, p *rnictest.Pair) stag.STag {
			return l.scoped(p.A.QP, mem, 0, l.qp(p.A.PD, rnic.QPAttr{})).STag()
		}), "STag not associated with this stream"},
	} {
		r.run(t, rnic.StatusBadSTag)
	}
	(&refusal{"region with windows", invalidate(func(l lab, p *rnictest.Pair) stag.STag {
		mr, w := l.region(p.A.PD, mem, everyRight), l.window(p.A.PD, rnic.Type1)
		p.A.Send(l, rnic.SendWR{ID: 9, Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: w, MR: mr, Addr: mr.Base(), Length: 1, Access: rnic.RemoteRead}})
		rnictest.Want(l, p.A.SendCQ, 9)
		return mr.STag()
	}), "region in use"}).run(t, rnic.StatusInvalidateFailed)
}

// The STag of a region that is fast-registered again and again differs each
// time, and the last one is dead.
func TestFastRegistrationReplacesTheSTag(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		mem := make([]byte, 64)
		mr := labOf(t, p.B).allocated(p.B.PD)
		open(t, p.A.QP)
		var last stag.STag
		for i := range 300 {
			key := mr.STag().Key() + 1
			p.B.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpFastRegister, Register: rnic.FastRegister{
				MR: mr, Memory: rnic.Memory{Slice: mem, Base: uint64(i + 1)}, Access: everyRight, Key: key,
			}})
			rnictest.Want(t, p.B.SendCQ, 1)
			if mr.STag() == last || mr.STag().Key() != key || mr.STag().Index() == 0 || mr.Base() != uint64(i+1) {
				t.Fatalf("STag %v after %v, base %d", mr.STag(), last, mr.Base())
			}
			last = mr.STag()
			if i%100 == 0 {
				writeAndReadBack(t, p, mr, 3, []byte{byte(i), 1, 2, 3})
			}
			p.B.Send(t, rnic.SendWR{ID: 2, Op: rnic.OpLocalInvalidate, Invalidate: last})
			rnictest.Want(t, p.B.SendCQ, 2)
		}
	})
}

// A type 1 window may be bound again while it is bound; a bind of no bytes
// unbinds it.
func TestTypeOneWindowIsBoundAnew(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		mem := pattern(128, 4)
		mr := p.A.Register(t, mem, everyRight)
		w := labOf(t, p.A).window(p.A.PD, rnic.Type1)
		bind := func(off int, n uint64) stag.STag {
			t.Helper()
			p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: w, MR: mr, Addr: mr.Base() + uint64(off), Length: n, Access: rnic.RemoteRead}})
			rnictest.Want(t, p.A.SendCQ, 1)
			return w.STag()
		}
		open(t, p.A.QP)
		first, second := bind(0, 16), bind(64, 16)
		if first == second || !w.Valid() || w.Type() != rnic.Type1 {
			t.Errorf("STags %v and %v, valid: %v", first, second, w.Valid())
		}
		got := make([]byte, 16)
		sink := p.B.Register(t, got, rnic.LocalWrite)
		synctest.Wait()
		p.B.Send(t, rnic.SendWR{ID: 2, Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, 16)}, Remote: rnic.Remote{STag: second, TO: mr.Base() + 64}})
		rnictest.Want(t, p.B.SendCQ, 2)
		if !bytes.Equal(got, mem[64:80]) {
			t.Error("what was read through the window differs")
		}
		if s := w.Stats(); s.OctetsOut != 16 || s.OctetsIn != 0 {
			t.Errorf("counted %+v", s)
		}
		bind(0, 0)
		if w.Valid() {
			t.Error("valid after a bind of no octets")
		}
		if err := mr.Close(); err != nil { // no window holds it
			t.Error(err)
		}
		p.B.Send(t, rnic.SendWR{ID: 3, Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, 16)}, Remote: rnic.Remote{STag: second, TO: mr.Base() + 64}})
		wantTerminate(t, p.B.Device, rdmap.CodeInvalidSTag)
	})
}

// The STag of a window is for the peer: it serves no SGE
// (draft-hilland-rddp-verbs §7.10).
func TestWindowIsUnboundWithoutNamingItsRegion(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		mr, w := p.A.Register(t, make([]byte, 16), everyRight), labOf(t, p.A).window(p.A.PD, rnic.Type1)
		p.A.Send(t,
			rnic.SendWR{ID: 1, Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: w, MR: mr, Addr: mr.Base(), Length: 8, Access: rnic.RemoteRead}},
			rnic.SendWR{ID: 2, Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: w}})
		rnictest.Want(t, p.A.SendCQ, 1)
		rnictest.Want(t, p.A.SendCQ, 2)
		if w.Valid() {
			t.Error("the window is still bound")
		}
		if err := mr.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestWindowServesNoSGE(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		mr := p.A.Register(t, make([]byte, 16), everyRight)
		w := labOf(t, p.A).window(p.A.PD, rnic.Type2)
		p.A.Send(t, rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{
			MW: w, MR: mr, Addr: mr.Base(), Length: 16, Access: rnic.RemoteRead | rnic.RemoteWrite, Key: w.STag().Key() + 1,
		}})
		rnictest.Want(t, p.A.SendCQ, 0)
		sgl := []rnic.SGE{{Addr: mr.Base(), Length: 8, LKey: w.STag()}}
		for _, op := range []rnic.Opcode{rnic.OpSend, rnic.OpWrite, rnic.OpRead, rnic.OpFetchAdd} {
			wantRefused(t, op.String(), p.A.QP.PostSend(rnic.SendWR{Op: op, SGL: sgl}), nil, "access rights", w.STag().String())
		}
		wantRefused(t, "receive", p.A.QP.PostRecv(rnic.RecvWR{SGL: sgl}), nil, "access rights")
	})
}

// A request may use memory that one before it in the queue makes valid
// (draft-hilland-rddp-verbs §8.2): it is checked in its turn.
func TestRequestUsesARegionThatOneBeforeItRegisters(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		data := pattern(64, 2)
		mr := labOf(t, p.A).allocated(p.A.PD)
		target := make([]byte, 64)
		remote := p.B.Register(t, target, everyRight)
		for round := range 3 {
			key := mr.STag().Key() + 1
			tag := mr.STag().WithKey(key)
			copy(data, pattern(64, byte(round)))
			p.A.Send(t,
				rnic.SendWR{ID: 1, Op: rnic.OpFastRegister, Register: rnic.FastRegister{MR: mr, Memory: rnic.Memory{Slice: data, Base: 4096}, Key: key}},
				rnic.SendWR{ID: 2, Op: rnic.OpWrite, SGL: []rnic.SGE{{Addr: 4096, Length: 64, LKey: tag}}, Remote: remote.Remote(0)},
				rnic.SendWR{ID: 3, Op: rnic.OpLocalInvalidate, Flags: rnic.FlagLocalFence, Invalidate: tag},
			)
			for id := range uint64(3) {
				rnictest.Want(t, p.A.SendCQ, id+1)
			}
			synctest.Wait()
			if mr.Valid() || !bytes.Equal(target, data) {
				t.Errorf("round %d: valid: %v, written: %v", round, mr.Valid(), bytes.Equal(target, data))
			}
		}
		// Without the registration, its turn comes in vain.
		p.A.Send(t, rnic.SendWR{ID: 4, Op: rnic.OpWrite, SGL: []rnic.SGE{{Addr: 4096, Length: 64, LKey: mr.STag()}}, Remote: remote.Remote(0)})
		wantStatus(t, p.A.SendCQ, 4, rnic.StatusLocalProtection)
	})
}
