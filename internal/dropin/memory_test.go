//go:build linux

package dropin

import (
	"bytes"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/stag"
)

// read reads from a remote STag, and returns the status.
func (e *end) read(rkey uint32, addr uint64) uint32 {
	e.lab.Helper()
	wr := send(wrRead, 77, e.sge(0, 8))
	*wr.RDMA() = RDMAWR{RemoteAddr: addr, RKey: rkey}
	e.post(wr)
	return e.next().Status
}

// again connects two ends anew after an error.
func (l *lab) again(a, b *end) {
	l.Helper()
	for _, e := range []*end{a, b} {
		e.to(qpsErr)
		e.to(qpsReset)
		e.to(qpsInit)
	}
	l.connect(a, b)
	a.read(b.mr.STag, b.mr.Addr) // so that the responder may send (RFC 5044 §7.1.2)
}

func TestRegions(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	fill(b.mem, 3)
	for name, c := range map[string]struct {
		iova   uint64
		access uint32
	}{
		"by address":       {b.mr.Addr + 100, accessRemoteRead},
		"from elsewhere":   {0x1234567000, accessRemoteRead},
		"from 0":           {0, accessRemoteRead},
		"zero based":       {b.mr.Addr + 100, accessRemoteRead | accessZeroBased},
		"with hints":       {b.mr.Addr + 100, accessRemoteRead | accessHugeTLB | 1<<20},
		"with other flags": {b.mr.Addr + 100, accessRemoteRead | accessLocalWrite | accessRemoteAtomic | accessMWBind},
	} {
		r := Region{Addr: b.mr.Addr + 100, Length: 1000, IOVA: c.iova, Access: c.access}
		l.must(name, l.MRReg(b.pd, &r))
		at := c.iova
		if c.access&accessZeroBased != 0 {
			at = 0
		}
		if s := a.read(r.STag, at+10); s != wcSuccess || !bytes.Equal(a.mem[:8], b.mem[110:118]) {
			t.Errorf("%s: status %d, or other data", name, s)
		}
		l.must("deregister", l.MRDereg(Handle(r.MR)))
		if s := a.read(r.STag, at+10); s != wcRemoteAccess {
			t.Errorf("%s: when it is deregistered: status %d", name, s)
		}
		l.again(a, b)
	}
	for name, c := range map[string]struct {
		access uint32
		want   Errno
	}{
		"remote write without local write":  {accessRemoteWrite, unix.EINVAL},
		"remote atomic without local write": {accessRemoteAtomic, unix.EINVAL},
		"on demand":                         {accessLocalWrite | 1<<6, unix.EOPNOTSUPP},
		"flush":                             {accessLocalWrite | 1<<8, unix.EOPNOTSUPP},
	} {
		l.want(name, l.MRReg(b.pd, &Region{Addr: b.mr.Addr, Length: 8, IOVA: b.mr.Addr, Access: c.access}), c.want)
	}
}

func TestReregistration(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	fill(b.mem, 3)
	r := Region{Addr: b.mr.Addr, Length: 100, IOVA: b.mr.Addr, Access: accessRemoteRead}
	l.must("register", l.MRReg(b.pd, &r))
	h, old := Handle(r.MR), r.STag
	r.Addr, r.IOVA = r.Addr+1000, r.IOVA+1000
	l.must("translation", l.MRRereg(h, reregTranslation, 0, &r))
	if r.MR != uint32(h) || r.STag == old || r.Access != accessRemoteRead {
		t.Errorf("%+v, before with STag %x", r, old)
	}
	if s := a.read(r.STag, r.IOVA); s != wcSuccess || !bytes.Equal(a.mem[:8], b.mem[1000:1008]) {
		t.Errorf("status %d, or other data", s)
	}
	if s := a.read(old, b.mr.Addr); s != wcRemoteAccess {
		t.Errorf("by the old key: status %d", s)
	}
	l.again(a, b)
	none := Region{Access: accessLocalWrite}
	l.must("access", l.MRRereg(h, reregAccess, 0, &none))
	if none.Addr != r.Addr || none.Length != 100 || none.STag != r.STag {
		t.Errorf("%+v; want the same memory and STag as in %+v", none, r)
	}
	if s := a.read(none.STag, none.IOVA); s != wcRemoteAccess {
		t.Errorf("without the right to read: status %d", s)
	}
	l.again(a, b)
	bad := Region{Access: accessRemoteWrite}
	l.want("access that can't be", l.MRRereg(h, reregAccess, 0, &bad), unix.EINVAL)
	other, number := l.PDAlloc(b.ctx)
	l.must("allocate PD", number)
	moved := Region{Access: accessRemoteRead}
	l.must("domain", l.MRRereg(h, reregPD|reregAccess, other, &moved))
	if s := a.read(moved.STag, moved.IOVA); s != wcRemoteAccess || moved.STag != r.STag {
		t.Errorf("in another domain: status %d, %+v", s, moved)
	}
	l.again(a, b)
	back := Region{}
	l.must("back", l.MRRereg(h, reregPD, b.pd, &back))
	if s := a.read(r.STag, r.IOVA); s != wcSuccess || back.STag != r.STag {
		t.Errorf("back in its domain: status %d, %+v", s, back)
	}
	l.must("domain again", l.MRRereg(h, reregPD, other, &moved))
	foreign, number := l.PDAlloc(a.ctx)
	l.must("allocate PD", number)
	l.want("a domain of another context", l.MRRereg(h, reregPD, foreign, &moved), unix.EINVAL)
	l.want("a domain in use", l.PDFree(other), unix.EBUSY)
	l.must("deregister", l.MRDereg(h))
	l.must("free", l.PDFree(other))
	l.want("after all", l.MRRereg(h, reregAccess, 0, &moved), unix.EINVAL)
}

// What fails leaves the region as it was, whatever was to be changed.
func TestRefusedReregistrationChangesNothing(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	fill(b.mem, 3)
	r := Region{Addr: b.mr.Addr, Length: 100, IOVA: b.mr.Addr, Access: accessRemoteRead | accessMWBind | accessLocalWrite}
	l.must("register", l.MRReg(b.pd, &r))
	foreign, number := l.PDAlloc(a.ctx)
	l.must("allocate PD", number)
	elsewhere := Region{Addr: b.mr.Addr + 1000, Length: 50, IOVA: b.mr.Addr + 1000}
	nowhere := Region{Addr: lowest, Length: 1 << 20, IOVA: lowest}
	steps := []struct {
		name  string
		flags uint32
		pd    Handle
		to    Region
		want  Errno
	}{
		{"nothing", 0, 0, elsewhere, unix.EINVAL},
		{"an unknown flag", 8, 0, elsewhere, unix.EINVAL},
		{"memory that is not there", reregTranslation, 0, nowhere, unix.EINVAL},
		{"no memory", reregTranslation, 0, Region{}, unix.EINVAL},
		{"no domain", reregPD, 0, r, unix.EINVAL},
		{"a domain of another context", reregPD, foreign, r, unix.EINVAL},
		{"remote write alone", reregAccess, 0, Region{Access: accessRemoteWrite}, unix.EINVAL},
		{"rights that there are not", reregAccess, 0, Region{Access: 1 << 6}, unix.EOPNOTSUPP},
		{"other memory, bad rights", reregTranslation | reregAccess, 0, Region{Addr: elsewhere.Addr, Length: 50, Access: accessRemoteWrite}, unix.EINVAL},
		{"other memory, bad domain", reregTranslation | reregPD, foreign, elsewhere, unix.EINVAL},
		{"good rights, bad domain", reregPD | reregAccess, foreign, Region{Access: accessLocalWrite}, unix.EINVAL},
	}
	same := func(what string) {
		t.Helper()
		if s := a.read(r.STag, r.IOVA+92); s != wcSuccess || !bytes.Equal(a.mem[:8], b.mem[92:100]) {
			t.Fatalf("%s: status %d, or other data", what, s)
		}
	}
	for _, s := range steps {
		to := s.to
		l.want(s.name, l.MRRereg(Handle(r.MR), s.flags, s.pd, &to), s.want)
		same(s.name)
	}
	mw, _, number := l.MWAlloc(b.pd, mwType1)
	l.must("allocate window", number)
	bind := WindowBind{ID: 5, MW: mw, MR: Handle(r.MR), Addr: r.Addr, Length: 10, Access: accessRemoteRead, Flags: sendSignaled}
	l.must("bind", l.MWBind(b.qp, &bind))
	b.want(5, wcSuccess)
	for _, flags := range []uint32{reregTranslation, reregPD, reregAccess, reregTranslation | reregPD | reregAccess} {
		to := r
		l.want("with a window bound", l.MRRereg(Handle(r.MR), flags, b.pd, &to), unix.EBUSY)
		same("with a window bound")
		if s := a.read(bind.RKey, r.Addr); s != wcSuccess {
			t.Errorf("by the window: status %d", s)
		}
	}
	l.must("free window", l.MWFree(mw))
	l.must("without a window", l.MRRereg(Handle(r.MR), reregAccess, 0, &Region{Access: accessRemoteRead}))
	same("without a window")
	l.must("deregister", l.MRDereg(Handle(r.MR)))
}

// Rights that make a region count from 0, or no more, move its first byte.
func TestReregistrationToAndFromZero(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	fill(b.mem, 3)
	r := Region{Addr: b.mr.Addr + 100, Length: 100, IOVA: b.mr.Addr + 100, Access: accessRemoteRead}
	l.must("register", l.MRReg(b.pd, &r))
	for _, access := range []uint32{accessRemoteRead | accessZeroBased, accessRemoteRead} {
		to := Region{Access: access}
		l.must("access", l.MRRereg(Handle(r.MR), reregAccess, 0, &to))
		at := r.Addr
		if access&accessZeroBased != 0 {
			at = 0
		}
		if s := a.read(r.STag, at+92); s != wcSuccess || !bytes.Equal(a.mem[:8], b.mem[192:200]) {
			t.Errorf("access 0x%x: status %d, or other data", access, s)
		}
	}
}

func TestWindowsOfType1(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	fill(b.mem, 3)
	mw, first, bad := l.MWAlloc(b.pd, mwType1)
	l.must("allocate", bad)
	bind := WindowBind{ID: 5, MW: mw, MR: Handle(b.mr.MR), Addr: b.mr.Addr + 10, Length: 100, Access: accessRemoteRead, Flags: sendSignaled}
	l.must("bind", l.MWBind(b.qp, &bind))
	if stag.STag(bind.RKey).Index() != stag.STag(first).Index() {
		t.Errorf("rkey %x, before %x", bind.RKey, first)
	}
	if wc := b.want(5, wcSuccess); wc.Opcode != wcBindMW {
		t.Errorf("%+v", wc)
	}
	if s := a.read(bind.RKey, b.mr.Addr+10); s != wcSuccess || !bytes.Equal(a.mem[:8], b.mem[10:18]) {
		t.Errorf("status %d, or other data", s)
	}
	l.want("deregister what a window is bound to", l.MRDereg(Handle(b.mr.MR)), unix.EBUSY)
	l.want("register it anew", l.MRRereg(Handle(b.mr.MR), reregAccess, 0, &Region{Access: allAccess}), unix.EBUSY)
	old := bind.RKey
	bind.Addr, bind.Flags = b.mr.Addr+200, 0
	l.must("bind again", l.MWBind(b.qp, &bind))
	if s := a.read(bind.RKey, b.mr.Addr+200); s != wcSuccess || bind.RKey == old {
		t.Errorf("status %d", s)
	}
	if s := a.read(old, b.mr.Addr+10); s != wcRemoteAccess {
		t.Errorf("by the old key: status %d", s)
	}
	l.again(a, b)
	unbind := WindowBind{ID: 6, MW: mw, Flags: sendSignaled}
	l.must("unbind", l.MWBind(b.qp, &unbind))
	b.want(6, wcSuccess)
	if s := a.read(bind.RKey, b.mr.Addr+200); s != wcRemoteAccess {
		t.Errorf("unbound: status %d", s)
	}
	l.again(a, b)
	bind.Access, bind.Flags = accessRemoteRead|accessLocalWrite|1<<20, 0 // the local one and the optional one add nothing
	l.must("bind with other flags", l.MWBind(b.qp, &bind))
	if s := a.read(bind.RKey, b.mr.Addr+200); s != wcSuccess {
		t.Errorf("with other flags: status %d", s)
	}
	plain := b.register(b.mem, accessLocalWrite)
	bind.MR, bind.Flags = Handle(plain.MR), sendSignaled
	l.must("bind to what allows no window", l.MWBind(b.qp, &bind))
	b.want(5, wcBind)
	l.want("unknown rights", l.MWBind(b.qp, &WindowBind{MW: mw, MR: Handle(b.mr.MR), Length: 1, Access: accessMWBind}), unix.EOPNOTSUPP)
	l.want("rights that no window has", l.MWBind(b.qp, &WindowBind{MW: mw, MR: Handle(b.mr.MR), Length: 1, Access: accessZeroBased}), unix.EOPNOTSUPP)
	l.must("free", l.MWFree(mw))
	l.must("deregister", l.MRDereg(Handle(b.mr.MR)))
}

// What a program has of a window and a region, as far as binds look at it.
type cMW struct {
	context, pd  unsafe.Pointer
	rkey, handle uint32
	typ          uint32
}

type cMR struct {
	context, pd, addr  unsafe.Pointer
	length             uintptr
	handle, lkey, rkey uint32
}

// bind2 returns the request that binds a type 2 window.
func bind2(id uint64, mw *cMW, mr *cMR, rkey uint32, at, length uint64) *SendWR {
	wr := send(wrBindMW, id)
	wr.Bind = BindWR{MW: unsafe.Pointer(mw), MR: unsafe.Pointer(mr), RKey: rkey, Addr: at, Length: length, Access: accessRemoteRead}
	return wr
}

// nextKey returns a key with the index of another one.
func nextKey(rkey uint32) uint32 { return uint32(stag.STag(rkey).WithKey(uint8(rkey) + 1)) }

func TestWindowsOfType2(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	fill(b.mem, 3)
	h, rkey, bad := l.MWAlloc(b.pd, mwType2)
	l.must("allocate", bad)
	mw, mr := &cMW{handle: uint32(h)}, &cMR{handle: b.mr.MR}
	rkey = nextKey(rkey)
	b.post(bind2(1, mw, mr, rkey, b.mr.Addr+10, 100))
	if wc := b.want(1, wcSuccess); wc.Opcode != wcBindMW {
		t.Errorf("%+v", wc)
	}
	if s := a.read(rkey, b.mr.Addr+10); s != wcSuccess {
		t.Errorf("status %d", s)
	}
	b.post(invalidate(wrLocalInv, 2, rkey))
	if wc := b.want(2, wcSuccess); wc.Opcode != wcLocalInv {
		t.Errorf("%+v", wc)
	}
	next := nextKey(rkey)
	b.post(bind2(3, mw, mr, next, b.mr.Addr+10, 100))
	b.want(3, wcSuccess)
	b.recv(4)
	a.post(invalidate(wrSendInv, 5, next))
	a.want(5, wcSuccess)
	if wc := b.want(4, wcSuccess); wc.Flags != wcWithInv || wc.Imm != next || wc.Opcode != wcRecv {
		t.Errorf("%+v; want that 0x%x is invalidated", wc, next)
	}
	if s := a.read(next, b.mr.Addr+10); s != wcRemoteAccess {
		t.Errorf("invalidated: status %d", s)
	}
	l.again(a, b)
	l.want("another window's key", l.QPPostSend(b.qp, bind2(1, mw, mr, rkey^0x100, 0, 1), nil), unix.EINVAL)
	type1, _, bad := l.MWAlloc(b.pd, mwType1)
	l.must("allocate", bad)
	l.want("type 1", l.QPPostSend(b.qp, bind2(1, &cMW{handle: uint32(type1)}, mr, rkey, 0, 1), nil), unix.EINVAL)
	l.want("type 2 by the other verb", l.MWBind(b.qp, &WindowBind{MW: h, MR: Handle(b.mr.MR), Length: 1}), unix.EINVAL)
	b.post(bind2(6, mw, mr, nextKey(next), b.mr.Addr+8000, 1000)) // beyond the region
	b.want(6, wcBind)
}

func invalidate(opcode uint32, id uint64, rkey uint32) *SendWR {
	wr := send(opcode, id)
	wr.Imm = rkey
	return wr
}

// A peer can't invalidate a region.
func TestPeerCantInvalidateARegion(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	b.recv(1)
	a.post(invalidate(wrSendInv, 1, b.mr.STag))
	b.want(1, wcFlushed)
	b.wantAsync(eventQPAccess, qpCookie)
	if l.regions.get(Handle(b.mr.MR)).verbs.Load().Valid() == false {
		t.Error("it has")
	}
}
