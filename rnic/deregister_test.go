package rnic

import (
	"runtime"
	"testing"

	"urnic/stag"
)

// A region is given up whatever the peer does with it at that moment. From
// outside, the moment can't be met.
func TestCloseWaitsForAnInvalidationUnderWay(t *testing.T) {
	d, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p, err := d.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	mr, err := p.Register(make([]byte, 8), LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	by := stag.Scope{Domain: p.domain}
	pin, err := d.memory.Acquire(mr.STag(), by, stag.LocalWrite, mr.Base(), 8) // a placement in progress
	if err != nil {
		t.Fatal(err)
	}
	invalidated, closed := make(chan error, 1), make(chan error, 1)
	go func() { invalidated <- d.memory.Invalidate(mr.STag(), by) }()
	for mr.Valid() {
		runtime.Gosched()
	}
	go func() { closed <- mr.Close() }()
	for range 1000 {
		runtime.Gosched()
	}
	select {
	case err := <-closed:
		t.Errorf("closed during a placement: %v", err)
	default:
	}
	pin.Release()
	if err := <-invalidated; err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
