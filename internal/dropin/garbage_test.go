//go:build linux

package dropin

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Whatever handles, numbers and absent structs a program gives, it gets an errno.
func TestGarbageGetsAnErrno(t *testing.T) {
	l := newLab(t)
	a := l.end()
	var entries, zero uint32
	handles := []Handle{0, 1, 2, 3, 7, chunkLen - 1, chunkLen, chunkLen * maxChunks, 1<<32 - 1}
	for _, h := range handles {
		for name, f := range map[string]func() Errno{
			"context close":   func() Errno { return l.ContextClose(h + 100) },
			"async next":      func() Errno { return l.AsyncNext(h, nil) },
			"pd alloc":        func() Errno { _, bad := l.PDAlloc(h + 100); return bad },
			"pd free":         func() Errno { return l.PDFree(h + 100) },
			"mr reg, nil":     func() Errno { return l.MRReg(h, nil) },
			"mr reg":          func() Errno { return l.MRReg(h+100, &Region{Addr: 1, Length: 1}) },
			"mr reg, nowhere": func() Errno { return l.MRReg(a.pd, &Region{Addr: uint64(h) + 1, Length: 1}) },
			"mr reg, low":     func() Errno { return l.MRReg(a.pd, &Region{Addr: 16, Length: 8}) },
			"mr reg, no mem":  func() Errno { return l.MRReg(a.pd, &Region{Addr: 0, Length: uint64(h)}) },
			"mr reg, long":    func() Errno { return l.MRReg(a.pd, &Region{Addr: a.mr.Addr, Length: 1<<64 - 1 - uint64(h)}) },
			"mr rereg":        func() Errno { return l.MRRereg(h, 7, a.pd, nil) },
			"mr rereg, flags": func() Errno { return l.MRRereg(h, 8, a.pd, &Region{}) },
			"mr rereg, PD":    func() Errno { return l.MRRereg(Handle(a.mr.MR), reregPD, h+100, &Region{}) },
			"mr dereg":        func() Errno { return l.MRDereg(h + 100) },
			"mw alloc":        func() Errno { _, _, bad := l.MWAlloc(h+100, mwType1); return bad },
			"mw alloc, type":  func() Errno { _, _, bad := l.MWAlloc(a.pd, uint32(h)|8); return bad },
			"mw bind, nil":    func() Errno { return l.MWBind(h, nil) },
			"mw bind":         func() Errno { return l.MWBind(h, &WindowBind{MW: h, MR: h}) },
			"mw bind, no MW":  func() Errno { return l.MWBind(a.qp, &WindowBind{MW: h, MR: h}) },
			"mw free":         func() Errno { return l.MWFree(h) },
			"channel":         func() Errno { _, _, bad := l.ChannelCreate(h + 100); return bad },
			"channel next":    func() Errno { return l.ChannelNext(h, nil) },
			"channel destroy": func() Errno { return l.ChannelDestroy(h + 100) },
			"cq, nil":         func() Errno { _, bad := l.CQCreate(h, nil, 0, 0); return bad },
			"cq, none":        func() Errno { _, bad := l.CQCreate(a.ctx, &zero, 0, 0); return bad },
			"cq, many":        func() Errno { entries = 1<<32 - 1; _, bad := l.CQCreate(a.ctx, &entries, 0, 0); return bad },
			"cq, channel":     func() Errno { entries = 1; _, bad := l.CQCreate(a.ctx, &entries, h+100, 0); return bad },
			"cq resize":       func() Errno { return l.CQResize(h, nil) },
			"cq resize, none": func() Errno { return l.CQResize(a.cq, &zero) },
			"cq arm":          func() Errno { return l.CQArm(h+100, true) },
			"cq destroy":      func() Errno { return l.CQDestroy(h + 100) },
			"cq poll":         func() Errno { return Errno(-l.CQPoll(h+100, 1, &WC{})) },
			"cq poll, nil":    func() Errno { return Errno(-l.CQPoll(a.cq, 1, nil)) },
			"cq poll, -1":     func() Errno { return Errno(-l.CQPoll(a.cq, -1, &WC{})) },
			"srq, nil":        func() Errno { _, _, bad := l.SRQCreate(a.pd, nil, 0); return bad },
			"srq, none":       func() Errno { _, _, bad := l.SRQCreate(a.pd, &SRQAttr{}, 0); return bad },
			"srq, many":       func() Errno { _, _, bad := l.SRQCreate(a.pd, &SRQAttr{MaxWR: 1 << 31}, 0); return bad },
			"srq modify":      func() Errno { return l.SRQModify(h, nil, 0) },
			"srq query":       func() Errno { return l.SRQQuery(h, nil) },
			"srq post":        func() Errno { return l.SRQPostRecv(h, &RecvWR{}, nil) },
			"srq destroy":     func() Errno { return l.SRQDestroy(h) },
			"qp, nil":         func() Errno { return l.QPCreate(h, nil) },
			"qp, CQ":          func() Errno { return l.QPCreate(a.pd, &QPInit{SendCQ: h + 100, RecvCQ: a.cq}) },
			"qp, SRQ":         func() Errno { return l.QPCreate(a.pd, &QPInit{SendCQ: a.cq, RecvCQ: a.cq, SRQ: h + 100}) },
			"qp, many": func() Errno {
				return l.QPCreate(a.pd, &QPInit{SendCQ: a.cq, RecvCQ: a.cq, MaxSendWR: 1<<32 - 1, MaxInline: uint32(h)})
			},
			"qp modify, nil": func() Errno { return l.QPModify(h, nil, 0) },
			"qp query":       func() Errno { return l.QPQuery(h, nil) },
			"qp post send":   func() Errno { return l.QPPostSend(h+100, &SendWR{}, nil) },
			"qp post recv":   func() Errno { return l.QPPostRecv(h+100, &RecvWR{}, nil) },
			"qp destroy":     func() Errno { return l.QPDestroy(h + 100) },
			"device":         func() Errno { return l.Device(0, nil) },
			"gid":            func() Errno { return l.GID(0, 1, uint32(h), nil) },
			"gid, far":       func() Errno { return l.GID(uint32(h), 1, uint32(h)+1000, &GID{}) },
		} {
			if bad := f(); bad == ok {
				t.Errorf("%s of handle %d succeeds", name, h)
			}
		}
	}
}

// Malformed requests are refused, or fail by their completion; never more.
func TestGarbageInRequests(t *testing.T) {
	l := newLab(t)
	random := rand.New(rand.NewPCG(1, 2))
	any32 := []uint32{0, 1, 2, 3, 8, 9, 16, 33, 1 << 16, 1 << 31, 1<<32 - 1}
	pick := func() uint32 { return any32[random.IntN(len(any32))] }
	a, b := l.pair()
	mw := make([]uint64, 8)
	for range 5000 {
		s := []SGE{a.sge(0, 8), {Addr: uint64(pick()), Length: pick(), LKey: pick()}}
		wr := &SendWR{
			ID: 1, SGL: &s[random.IntN(2)], NumSGE: int32(pick()) % 40, Opcode: pick() % 20, Flags: pick() &^ sendInline, Imm: pick(),
			WR: AtomicWR{RemoteAddr: uint64(pick()), RKey: pick()},
		}
		if wr.NumSGE > 1 {
			wr.NumSGE, wr.SGL = 1+wr.NumSGE%2, &s[0]
		}
		if wr.NumSGE == 1 && random.IntN(3) == 0 {
			wr.SGL = nil
		}
		if random.IntN(3) == 0 {
			wr.Flags |= sendInline
			s[0] = SGE{Length: pick()} // at no address
			s[1].Addr = 0
		}
		if wr.Opcode == wrBindMW && random.IntN(2) == 0 {
			wr.Bind = BindWR{MW: unsafe.Pointer(&mw[0]), MR: unsafe.Pointer(&mw[0]), RKey: pick(), Access: pick()}
		}
		var bad *SendWR
		if e := l.QPPostSend(a.qp, wr, &bad); e != ok && bad != wr {
			t.Fatalf("%+v: %v, and bad_wr is another", wr, e)
		}
		r := &RecvWR{SGL: wr.SGL, NumSGE: wr.NumSGE}
		_ = l.QPPostRecv(b.qp, r, nil)
		var wc [8]WC
		for l.CQPoll(a.cq, 8, &wc[0]) > 0 || l.CQPoll(b.cq, 8, &wc[0]) > 0 {
			continue
		}
		if a.state() == qpsErr || b.state() == qpsErr {
			for _, e := range []*end{a, b} {
				e.to(qpsErr)
				e.to(qpsReset)
				e.to(qpsInit)
			}
			l.connect(a, b)
		}
	}
}

// Inline data at no address, and lists without end of SGEs, are EINVAL.
func TestMalformedSGLs(t *testing.T) {
	l := newLab(t)
	a := l.end()
	good := a.sge(0, 8)
	inline := func(wr *SendWR) *SendWR {
		wr.Flags |= sendInline
		return wr
	}
	for name, wr := range map[string]*SendWR{
		"no SGL":              {NumSGE: 1},
		"negative":            {NumSGE: -1, SGL: &good},
		"too many":            {NumSGE: 33, SGL: &good},
		"more than the queue": send(wrSend, 1, good, good, good, good, good),
		"inline at 0":         inline(send(wrSend, 1, SGE{Length: 1})),
		"inline too long":     inline(send(wrSend, 1, a.sge(0, 65))),
		"inline in pieces":    inline(send(wrSend, 1, a.sge(0, 60), a.sge(0, 5))),
		"inline Read":         inline(send(wrRead, 1, good)),
		"inline atomic":       inline(send(wrFetchAdd, 1, good)),
		"atomic of 4":         send(wrFetchAdd, 1, a.sge(0, 4)),
		"atomic of two":       send(wrCmpSwap, 1, a.sge(0, 4), a.sge(4, 4)),
		"TSO":                 {Opcode: 10},
		"bind of nothing":     {Opcode: wrBindMW},
		"long":                send(wrSend, 1, SGE{Length: 1<<32 - 1}, SGE{Length: 1<<32 - 1}),
	} {
		l.want(name, l.QPPostSend(a.qp, wr, nil), unix.EINVAL)
	}
	l.must("nothing to post", l.QPPostSend(a.qp, nil, nil))
	l.must("nothing to receive", l.QPPostRecv(a.qp, nil, nil))
}
