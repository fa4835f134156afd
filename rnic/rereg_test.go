package rnic_test

import (
	"errors"
	"testing"
	"unsafe"

	"urnic/internal/door"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A region that is registered anew in place is used under the STag that peers know, with
// its new rights, and holds its new domain.
func TestReregisteredRegionKeepsItsSTag(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		data := pattern(64, 3)
		mr := p.B.Register(t, data, rnic.LocalWrite)
		remote, sink := mr.Remote(0), p.A.Register(t, make([]byte, 64), rnic.LocalWrite)
		other, err := p.B.Device.AllocPD()
		if err != nil {
			t.Fatal(err)
		}
		moved, err := door.Reregister(mr, other, rnic.Memory{Slice: data}, rnic.RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Close(); !errors.Is(err, rnic.ErrBusy) {
			t.Errorf("closing the domain of the region: %v", err)
		}
		back, err := door.Reregister(moved, p.B.PD, rnic.Memory{Slice: data}, rnic.RemoteRead|rnic.BindWindow|rnic.LocalWrite)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		if back.Remote(0) != remote {
			t.Errorf("%+v; want %+v", back.Remote(0), remote)
		}
		p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, 64)}, Remote: remote})
		rnictest.Want(t, p.A.SendCQ, 1)

		l := labOf(t, p.B)
		w := l.window(p.B.PD, rnic.Type1)
		p.B.Send(t, rnic.SendWR{ID: 2, Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: w, MR: back, Addr: back.Base(), Length: 8, Access: rnic.RemoteRead}})
		rnictest.Want(t, p.B.SendCQ, 2)
		if _, err := door.Reregister(back, p.B.PD, rnic.Memory{Slice: data}, rnic.RemoteRead); !errors.Is(err, rnic.ErrBusy) || !back.Valid() {
			t.Errorf("with a window bound: %v, valid %v", err, back.Valid())
		}
	})
}

func TestReregisterIsRefused(t *testing.T) {
	l, elsewhere := newLab(t, rnic.Config{}), newLab(t, rnic.Config{})
	p, mem := l.domain(), make([]byte, 64)
	mr, gone := l.region(p, mem, everyRight), l.domain()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pd    *rnic.PD
		mem   rnic.Memory
		right rnic.Access
		is    error
	}{
		"no domain":                   {new(rnic.PD), rnic.Memory{Slice: mem}, 0, rnic.ErrNotMade},
		"a domain of another device":  {elsewhere.domain(), rnic.Memory{Slice: mem}, 0, rnic.ErrForeign},
		"other memory":                {p, rnic.Memory{Slice: make([]byte, 64)}, 0, nil},
		"no memory":                   {p, rnic.Memory{}, 0, nil},
		"memory given twice":          {p, rnic.Memory{Slice: mem, Pointer: unsafe.Pointer(&mem[0]), Length: 64}, 0, nil},
		"a domain that is closed":     {gone, rnic.Memory{Slice: mem}, 0, rnic.ErrClosed},
		"remote without local rights": {p, rnic.Memory{Slice: mem}, rnic.RemoteWrite, nil},
	} {
		n, err := door.Reregister(mr, c.pd, c.mem, c.right)
		if n != nil || err == nil || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, %v", name, n, err)
		}
		if errors.Is(err, rnic.ErrBusy) {
			t.Errorf("%s: %v; no window is bound", name, err)
		}
		if !mr.Valid() || mr.Access() != everyRight {
			t.Errorf("%s: the region has changed", name)
		}
	}
	if _, err := door.Reregister(new(rnic.MR), p, rnic.Memory{Slice: mem}, 0); !errors.Is(err, rnic.ErrNotMade) {
		t.Errorf("no region: %v", err)
	}
}
