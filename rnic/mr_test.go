package rnic_test

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"unsafe"

	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/stag"
)

const everyRight = rnic.LocalWrite | rnic.RemoteRead | rnic.RemoteWrite | rnic.RemoteAtomic | rnic.BindWindow | rnic.RemoteInvalidate

// writeAndReadBack has A write data to a region of B from off on, and read it
// back.
func writeAndReadBack(t *testing.T, p *rnictest.Pair, mr *rnic.MR, off int, data []byte) {
	t.Helper()
	src := p.A.Register(t, data, 0)
	back := make([]byte, len(data))
	sink := p.A.Register(t, back, rnic.LocalWrite)
	p.A.Send(t,
		rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, len(data))}, Remote: mr.Remote(off)},
		rnic.SendWR{ID: 2, Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, len(data))}, Remote: mr.Remote(off)},
	)
	rnictest.Want(t, p.A.SendCQ, 1)
	rnictest.Want(t, p.A.SendCQ, 2)
	if !bytes.Equal(back, data) {
		t.Error("what was read back differs")
	}
}

func TestRegionCountsFromItsBase(t *testing.T) {
	mem := make([]byte, 100)
	address := uint64(uintptr(unsafe.Pointer(&mem[0])))
	for _, tt := range []struct {
		name string
		m    rnic.Memory
		base uint64
	}{
		{"address", rnic.Memory{Slice: mem}, address},
		{"zero", rnic.Memory{Slice: mem, ZeroBased: true}, 0},
		{"chosen", rnic.Memory{Slice: mem, Base: 0xDEAD_BEEF_0000_0001}, 0xDEAD_BEEF_0000_0001},
		{"as high as can be", rnic.Memory{Slice: mem, Base: math.MaxUint64 - 100}, math.MaxUint64 - 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				clear(mem)
				mr, err := p.B.PD.RegisterMemory(tt.m, everyRight, nil)
				if err != nil {
					t.Fatal(err)
				}
				if mr.Base() != tt.base || mr.Len() != 100 || !mr.Valid() || mr.STag() == 0 {
					t.Errorf("base 0x%x, %d octets, valid: %v, STag %v", mr.Base(), mr.Len(), mr.Valid(), mr.STag())
				}
				if r := mr.Remote(5); r.TO != tt.base+5 || r.STag != mr.STag() {
					t.Errorf("%+v", r)
				}
				if s := mr.SGE(7, 9); s.Addr != tt.base+7 || s.Length != 9 || s.LKey != mr.STag() {
					t.Errorf("%+v", s)
				}
				data := pattern(60, 5)
				writeAndReadBack(t, p, mr, 40, data)
				if !bytes.Equal(mem[40:], data) || !bytes.Equal(mem[:40], make([]byte, 40)) {
					t.Error("the octets are not where they belong")
				}
				want := stag.Stats{Accesses: 2, OctetsIn: 60, OctetsOut: 60}
				if s := mr.Stats(); s != want {
					t.Errorf("counted %+v; want %+v", s, want)
				}
			})
		})
	}
}

func TestRegistrationIsChecked(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p, other := l.domain(), l.domain()
	mem := make([]byte, 16)
	pointer := unsafe.Pointer(&mem[0])
	foreign := l.qp(other, rnic.QPAttr{})
	for _, tt := range []struct {
		name   string
		m      rnic.Memory
		access rnic.Access
		qp     *rnic.QP
		words  string
	}{
		{name: "nothing", words: "no octets"},
		{name: "empty slice", m: rnic.Memory{Slice: mem[:0]}, words: "no octets"},
		{name: "pointer without length", m: rnic.Memory{Pointer: pointer}, words: "no octets"},
		{name: "length without pointer", m: rnic.Memory{Length: 16}, words: "no pointer"},
		{name: "slice with length", m: rnic.Memory{Slice: mem, Length: 8}, words: "no pointer"},
		{name: "slice and pointer", m: rnic.Memory{Slice: mem, Pointer: pointer, Length: 16}, words: "not both"},
		{name: "negative length", m: rnic.Memory{Pointer: pointer, Length: -1}, words: "negative"},
		{name: "zero-based with a base", m: rnic.Memory{Slice: mem, ZeroBased: true, Base: 1}, words: "zero-based"},
		{name: "wrapping base", m: rnic.Memory{Slice: mem, Base: math.MaxUint64 - 15}, words: "wrap"},
		{name: "remote write without local", m: rnic.Memory{Slice: mem}, access: rnic.RemoteWrite, words: "local write"},
		{name: "remote atomic without local", m: rnic.Memory{Slice: mem}, access: rnic.RemoteAtomic, words: "local write"},
		{name: "unknown right", m: rnic.Memory{Slice: mem}, access: 1 << 7, words: "unknown"},
		{name: "stream of another domain", m: rnic.Memory{Slice: mem}, qp: foreign, words: "another protection domain"},
	} {
		mr, err := p.RegisterMemory(tt.m, tt.access, tt.qp)
		wantRefused(t, tt.name, err, nil, "PD", tt.words)
		if mr != nil {
			t.Errorf("%s: a region all the same", tt.name)
		}
	}
	_, err := p.AllocMR(0)
	wantRefused(t, "allocation of nothing", err, nil, "no octets")
	for _, typ := range []rnic.WindowType{0, 3} {
		_, err := p.AllocMW(typ)
		wantRefused(t, "window type", err, nil, "types 1 and 2")
	}
	for _, r := range []pd.Resource{pd.Regions, pd.Windows, pd.MemoryOctets} {
		if n := l.dev.Held(r); n != 0 {
			t.Errorf("%d %v are held", n, r)
		}
	}
}

func TestSGEThatCannotBeSaidIsRefused(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p := l.domain()
	mr := l.region(p, make([]byte, 16), rnic.LocalWrite)
	q := l.qp(p, rnic.QPAttr{})
	sges := []rnic.SGE{mr.SGE(-1, 2), mr.SGE(-1, 0), mr.SGE(2, -1), mr.SGE(15, 2), mr.SGE(17, 1), mr.SGE(math.MaxInt, 1), mr.SGE(0, math.MaxInt)}
	for _, n := range []uint64{1 << 32, 1<<32 + 4} {
		if n <= math.MaxInt { // else nobody can say it
			sges = append(sges, mr.SGE(0, int(n)))
		}
	}
	for _, s := range sges {
		wantRefused(t, "receive", q.PostRecv(rnic.RecvWR{SGL: []rnic.SGE{s}}), nil, "bounds")
	}
}

func TestRegionIsHeldByItsWindows(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		mr := p.A.Register(t, make([]byte, 16), everyRight)
		w := labOf(t, p.A).window(p.A.PD, rnic.Type1)
		p.A.Send(t, rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: w, MR: mr, Addr: mr.Base(), Length: 8, Access: rnic.RemoteRead}})
		rnictest.Want(t, p.A.SendCQ, 0)
		var refused *stag.RegisterError
		err := mr.Close()
		wantRefused(t, "deregister", err, rnic.ErrBusy, "windows are bound", mr.STag().String())
		if !errors.As(err, &refused) || !mr.Valid() {
			t.Errorf("%v; valid: %v", err, mr.Valid())
		}
		err = p.A.PD.Close()
		wantRefused(t, "domain in use", err, rnic.ErrBusy)
		if !errors.As(err, new(*pd.BusyError)) {
			t.Errorf("domain in use: %v", err)
		}
		for range 2 {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
		for range 2 {
			if err := mr.Close(); err != nil {
				t.Error(err)
			}
		}
		if mr.Valid() || mr.Len() != 0 || w.Valid() {
			t.Error("valid after it was closed")
		}
	})
}

func TestSTagOfADeregisteredRegionIsNotFoundAgain(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p := l.domain()
	q := l.qp(p, rnic.QPAttr{})
	mem := make([]byte, 8)
	old := l.region(p, mem, rnic.LocalWrite)
	sge := old.SGE(0, 8)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		l.region(p, mem, rnic.LocalWrite)
	}
	wantRefused(t, "receive", q.PostRecv(rnic.RecvWR{SGL: []rnic.SGE{sge}}), nil, "invalid STag", sge.LKey.String())
}
