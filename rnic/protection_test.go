package rnic_test

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"unsafe"

	"urnic/internal/door"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/stag"
)

// A trespass is what A does to memory of B, and B's answer.
type trespass struct {
	op   rnic.Opcode
	code rdmap.TermCode // of the Terminate that A gets
}

// trespasses returns the operations that use memory of the peer, with the codes
// for a check that failed: DDP's for a Write, RDMAP's for the others
// (RFC 5041 §7.1, RFC 5040 §7.2, RFC 7306 §8.2).
func trespasses(write, others rdmap.TermCode) []trespass {
	return []trespass{{rnic.OpWrite, write}, {rnic.OpRead, others}, {rnic.OpFetchAdd, others}, {rnic.OpCmpSwap, others}}
}

// A target is memory of B that A must not touch with those operations: at TO,
// for length bytes (atomics take 8).
type target struct {
	name   string
	make   func(l lab, p *rnictest.Pair, mem []byte) (stag.STag, uint64) // STag, and TO of the attack
	length int
	tries  []trespass
	after  func(t *testing.T) // checks more, or nil
}

// try lets A use memory of B that it may not, and checks all that follows: the
// Terminate, the events, the states, that the error says where and why, and
// that no byte has changed on either side.
func (v *target) try(t *testing.T, p *rnictest.Pair, with trespass) {
	words := make([]uint64, 16) // aligned for atomics
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 128)
	copy(mem, pattern(len(mem), 7))
	before := bytes.Clone(mem)
	tag, to := v.make(labOf(t, p.B), p, mem)

	local := pattern(64, 1)
	mr := p.A.Register(t, local, rnic.LocalWrite)
	wr := rnic.SendWR{
		ID: 1, Op: with.op, SGL: []rnic.SGE{mr.SGE(0, v.length)}, Remote: rnic.Remote{STag: tag, TO: to},
		Invalidate: tag, Atomic: rnic.Atomic{Add: 1, CompareMask: 0, SwapMask: math.MaxUint64, Swap: 99, Masked: true},
	}
	switch with.op {
	case rnic.OpFetchAdd, rnic.OpCmpSwap:
		wr.SGL = []rnic.SGE{mr.SGE(0, 8)}
	case rnic.OpSendInvalidate:
		p.B.Recv(t, receives(7, 1)...)
		wr.SGL = nil
	}
	p.A.Send(t, wr)

	wantTerminate(t, p.A.Device, with.code)
	ev := nextEvent(t, p.B.Device, rnic.EventProtection)
	if ev.QP != p.B.QP {
		t.Errorf("%v", ev)
	}
	var e *rdmap.Error
	if !errors.As(ev.Err, &e) || e.Code != with.code || e.Clause == "" {
		t.Errorf("B found %v; want code %v and a clause", ev.Err, with.code)
	}
	if access := (*stag.AccessError)(nil); errors.As(ev.Err, &access) && access.STag != tag {
		t.Errorf("%v; want one that names %v", access, tag)
	} else if access == nil && !errors.As(ev.Err, new(*stag.RegisterError)) {
		t.Errorf("the error of B does not say which check failed: %v", ev.Err)
	}
	for _, s := range []*rnictest.Side{p.A, p.B} { // waits for the end, if it is not there yet
		if err := s.QP.Disconnect(t.Context()); err == nil {
			t.Errorf("the stream of %s has ended gracefully", s.Name)
		}
	}
	if a, b := p.A.QP.State(), p.B.QP.State(); a != rnic.Error || b != rnic.Error {
		t.Errorf("states %v and %v", a, b)
	}
	switch wc := rnictest.Next(t, p.A.SendCQ); {
	case with.op == rnic.OpWrite || with.op == rnic.OpSendInvalidate: // complete when the LLP has them
	case with.op == rnic.OpRead && wc.Status != rnic.StatusRemoteTermination: // the Terminate tells which one
		t.Errorf("completion: %v", wc.Status)
	case wc.Status == rnic.StatusSuccess:
		t.Errorf("%v has succeeded", with.op)
	}
	if with.op == rnic.OpSendInvalidate {
		wantStatus(t, p.B.RecvCQ, 7, rnic.StatusFlushed)
	}
	if !bytes.Equal(mem, before) {
		t.Error("the memory has changed")
	}
	if !bytes.Equal(local, pattern(64, 1)) {
		t.Error("the sink has changed")
	}
}

func (v *target) run(t *testing.T) {
	for _, with := range v.tries {
		t.Run(v.name+with.op.String(), func(t *testing.T) {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				v.try(t, p, with)
				if v.after != nil {
					v.after(t)
				}
			})
			t.Run("TCP in pieces", func(t *testing.T) {
				v.try(t, inPieces(t, uint64(with.op)), with)
				if v.after != nil {
					v.after(t)
				}
			})
		})
	}
}

// scoped registers memory with every right for the domain or stream of q.
func (l lab) scoped(q *rnic.QP, mem []byte, base uint64, stream *rnic.QP) *rnic.MR {
	l.Helper()
	mr, err := q.PD().RegisterMemory(rnic.Memory{Slice: mem, Base: base}, everyRight, stream)
	return made(l, mr, err)
}

// RFC 5040 §8.1.1, RFC 5041 §8.3.1.
func TestPeerCannotExceedWhatAnSTagAllows(t *testing.T) {
	t.Run("STag of another PD", func(t *testing.T) {
		v := target{length: 8, make: func(l lab, _ *rnictest.Pair, mem []byte) (stag.STag, uint64) {
			mr := l.region(l.domain(), mem, everyRight)
			return mr.STag(), mr.Base()
		}}
		v.tries = append(trespasses(0x1102, rdmap.CodeSTagNotAssociated), trespass{rnic.OpSendInvalidate, rdmap.CodeCannotInvalidate})
		v.run(t)
	})
	t.Run("STag of another stream", func(t *testing.T) {
		v := target{length: 8, make: func(l lab, p *rnictest.Pair, mem []byte) (stag.STag, uint64) {
			mr := l.scoped(p.B.QP, mem, 0, l.qp(p.B.PD, rnic.QPAttr{}))
			return mr.STag(), mr.Base()
		}}
		v.tries = append(trespasses(0x1102, rdmap.CodeSTagNotAssociated), trespass{rnic.OpSendInvalidate, rdmap.CodeCannotInvalidate})
		v.run(t)
	})
	t.Run("STag of an earlier stream", testSTagOfAnEarlierStream)
	t.Run("no such STag", func(t *testing.T) {
		for name, spoil := range map[string]func(l lab, p *rnic.PD, mr *rnic.MR) stag.STag{
			"another key ": func(_ lab, _ *rnic.PD, mr *rnic.MR) stag.STag { return mr.STag().WithKey(mr.STag().Key() + 1) },
			"zero ":        func(lab, *rnic.PD, *rnic.MR) stag.STag { return 0 },
			"deregistered ": func(l lab, _ *rnic.PD, mr *rnic.MR) stag.STag {
				if err := mr.Close(); err != nil {
					l.Error(err)
				}
				return mr.STag()
			},
			"not valid yet ": func(l lab, p *rnic.PD, _ *rnic.MR) stag.STag {
				fast, err := p.AllocMR(64)
				return made(l, fast, err).STag()
			},
		} {
			v := target{name: name, length: 8, make: func(l lab, p *rnictest.Pair, mem []byte) (stag.STag, uint64) {
				mr := l.region(p.B.PD, mem, everyRight)
				to := mr.Base()
				return spoil(l, p.B.PD, mr), to
			}}
			v.tries = append(trespasses(0x1100, rdmap.CodeInvalidSTag), trespass{rnic.OpSendInvalidate, rdmap.CodeInvalidSTag})
			v.run(t)
		}
	})
	t.Run("outside the region", func(t *testing.T) {
		// The region lies in the middle of 128 bytes: 64 from byte 32 on.
		const base = 1 << 20
		for _, at := range []struct {
			name   string
			to     uint64
			length int
		}{
			{"one octet before ", base - 1, 1},
			{"8 octets before ", base - 8, 8},
			{"reaching in ", base - 4, 8},
			{"one octet behind ", base + 64, 1},
			{"reaching out ", base + 60, 8},
			{"one octet too many ", base + 64 - 15, 16},
			{"at zero ", 0, 8},
			{"at the end ", math.MaxUint64 - 8, 8},
		} {
			v := target{name: at.name, length: at.length, make: func(l lab, p *rnictest.Pair, mem []byte) (stag.STag, uint64) {
				return l.scoped(p.B.QP, mem[32:96], base, nil).STag(), at.to
			}}
			v.tries = trespasses(0x1101, rdmap.CodeBaseBounds)
			if at.length != 8 { // an atomic has 8
				v.tries = v.tries[:2]
			}
			v.run(t)
		}
		wrap := target{name: "wrapping ", length: 8, make: func(l lab, p *rnictest.Pair, mem []byte) (stag.STag, uint64) {
			return l.scoped(p.B.QP, mem, math.MaxUint64-128, nil).STag(), math.MaxUint64 - 3
		}}
		wrap.tries = trespasses(0x1103, rdmap.CodeTOWrap)
		wrap.run(t)
	})
	t.Run("missing right", func(t *testing.T) {
		for _, of := range []struct {
			right rnic.Access
			tries []trespass
		}{
			{rnic.RemoteWrite, trespasses(0x1102, 0)[:1]},
			{rnic.RemoteRead, trespasses(0, rdmap.CodeAccessRights)[1:2]},
			{rnic.RemoteAtomic, trespasses(0, rdmap.CodeAccessRights)[2:]},
			{rnic.RemoteInvalidate, []trespass{{rnic.OpSendInvalidate, rdmap.CodeCannotInvalidate}}},
		} {
			v := target{length: 8, tries: of.tries, make: func(l lab, p *rnictest.Pair, mem []byte) (stag.STag, uint64) {
				mr := l.region(p.B.PD, mem, everyRight&^of.right)
				return mr.STag(), mr.Base()
			}}
			v.run(t)
			if of.right == rnic.RemoteInvalidate { // that is no right of queue pairs
				continue
			}
			v = target{name: "of the queue pair ", length: 8, tries: of.tries, make: func(l lab, p *rnictest.Pair, mem []byte) (stag.STag, uint64) {
				door.RefuseRemote(p.B.QP, of.right)
				mr := l.region(p.B.PD, mem, everyRight)
				return mr.STag(), mr.Base()
			}}
			v.run(t)
		}
	})
	t.Run("atomic that is not aligned", func(t *testing.T) {
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			words := make([]uint64, 4)
			mr := p.B.Register(t, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 32), everyRight)
			p.A.Send(t, rnic.SendWR{Op: rnic.OpFetchAdd, Remote: mr.Remote(4), Atomic: rnic.Atomic{Add: 1}})
			wantTerminate(t, p.A.Device, rdmap.CodeStreamCatastrophic)
			nextEvent(t, p.B.Device, rnic.EventRemoteOperation)
			synctest.Wait()
			if words[0] != 0 || words[1] != 0 {
				t.Error("the memory has changed")
			}
		})
	})
	t.Run("invalidation of a shared STag", func(t *testing.T) {
		var shared *rnic.MR
		v := target{make: func(l lab, p *rnictest.Pair, mem []byte) (stag.STag, uint64) {
			l.qp(p.B.PD, rnic.QPAttr{}) // another stream of the domain
			shared = l.region(p.B.PD, mem, everyRight)
			return shared.STag(), 0
		}}
		v.tries = []trespass{{rnic.OpSendInvalidate, rdmap.CodeCannotInvalidate}}
		v.after = func(t *testing.T) {
			if !shared.Valid() {
				t.Error("the STag has been invalidated")
			}
		}
		v.run(t)
	})
	t.Run("window", testWindowIsTheLimit)
}

// What was opened for one stream does not serve the next one of the same queue
// pair.
func testSTagOfAnEarlierStream(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		mem := make([]byte, 64)
		mr := labOf(t, p.B).scoped(p.B.QP, mem, 0, p.B.QP)
		writeAndReadBack(t, p, mr, 0, pattern(32, 1))
		before := bytes.Clone(mem)
		p.A.QP.Abort()
		nextEvent(t, p.B.Device, rnic.EventLost)
		synctest.Wait()
		for _, q := range []*rnic.QP{p.A.QP, p.B.QP} {
			if err := q.Reset(); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range []*rnic.Device{p.A.Device, p.B.Device} {
			for {
				if _, more := d.PollEvent(); !more {
					break
				}
			}
		}
		p.Link(t, p.A.QP, p.B.QP)
		p.A.Send(t, rnic.SendWR{Op: rnic.OpWrite, Flags: rnic.FlagInline, Inline: []byte{9}, Remote: mr.Remote(0)})
		wantTerminate(t, p.A.Device, 0x1102)
		synctest.Wait()
		if !bytes.Equal(mem, before) {
			t.Error("the memory has changed")
		}
	})
}

// A window opens a part of its region, for what it says, and to whom it belongs.
func testWindowIsTheLimit(t *testing.T) {
	// bind opens bytes 32 to 95 of mem at base+32, through a queue pair of B.
	const base = 1 << 20
	bind := func(l lab, p *rnictest.Pair, mem []byte, typ rnic.WindowType, by *rnic.QP, access rnic.Access) *rnic.MW {
		l.Helper()
		w := l.window(p.B.PD, typ)
		region := l.scoped(p.B.QP, mem, base, nil)
		if err := by.PostSend(rnic.SendWR{ID: 5, Op: rnic.OpBindWindow, Bind: rnic.Bind{
			MW: w, MR: region, Addr: base + 32, Length: 64, Access: access, Key: w.STag().Key() + 1,
		}}); err != nil {
			l.Fatal(err)
		}
		rnictest.Want(l, p.B.SendCQ, 5)
		return w
	}
	all := rnic.RemoteRead | rnic.RemoteWrite | rnic.RemoteAtomic | rnic.RemoteInvalidate
	for typ, of := range map[rnic.WindowType]string{rnic.Type1: "type 1 ", rnic.Type2: "type 2 "} {
		for name, to := range map[string]uint64{"before ": base + 24, "behind ": base + 96, "reaching in ": base + 28, "reaching out ": base + 92} {
			v := target{name: of + name, length: 8, tries: trespasses(0x1101, rdmap.CodeBaseBounds)}
			v.make = func(l lab, p *rnictest.Pair, mem []byte) (stag.STag, uint64) {
				return bind(l, p, mem, typ, p.B.QP, all).STag(), to
			}
			v.run(t)
		}
		for right, tries := range map[rnic.Access][]trespass{
			rnic.RemoteWrite:  trespasses(0x1102, 0)[:1],
			rnic.RemoteRead:   trespasses(0, rdmap.CodeAccessRights)[1:2],
			rnic.RemoteAtomic: trespasses(0, rdmap.CodeAccessRights)[2:],
		} {
			v := target{name: of + "without " + right.String() + " ", length: 8, tries: tries}
			v.make = func(l lab, p *rnictest.Pair, mem []byte) (stag.STag, uint64) {
				return bind(l, p, mem, typ, p.B.QP, all&^right).STag(), base + 32
			}
			v.run(t)
		}
		unbound := target{name: of + "not bound ", length: 8, tries: trespasses(0x1100, rdmap.CodeInvalidSTag)}
		unbound.make = func(l lab, p *rnictest.Pair, _ []byte) (stag.STag, uint64) {
			return l.window(p.B.PD, typ).STag(), 0
		}
		unbound.run(t)
	}
	other := target{name: "type 2 of another stream ", length: 8, tries: trespasses(0x1102, rdmap.CodeSTagNotAssociated)}
	other.make = func(l lab, p *rnictest.Pair, mem []byte) (stag.STag, uint64) {
		by := l.qp(p.B.PD, rnic.QPAttr{SendCQ: p.B.SendCQ})
		peer := labOf(l, p.A).qp(p.A.PD, rnic.QPAttr{})
		p.Link(l, peer, by)
		return bind(l, p, mem, rnic.Type2, by, all).STag(), base + 32
	}
	other.run(t)
}
