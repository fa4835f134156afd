package server

import (
	"bytes"
	"sync"
	"testing"

	"urnic/conformance/service"
)

func TestMemoryIsFilledReadAndWritten(t *testing.T) {
	c := dial(t, serving(t, Options{}))
	const n = 200_000
	r := end{c, 0}
	filled := must(c.Register(t.Context(), service.RegisterArgs{Length: n, Fill: 0xA5}))(t)
	r.holds(t, filled, 0, bytes.Repeat([]byte{0xA5}, n))
	patterned := must(c.Register(t.Context(), service.RegisterArgs{Length: n, Pattern: new(uint8(200))}))(t)
	r.holds(t, patterned, 0, service.Pattern(200, n))
	check(t, c.MemoryWrite(t.Context(), patterned.MR, n-3, []byte("end")))
	r.holds(t, patterned, n-4, append(service.Pattern(200, n)[n-4:n-3], "end"...))
	if patterned.TO%8 != 0 || patterned.Length != n || patterned.STag == filled.STag {
		t.Errorf("regions %+v and %+v", filled, patterned)
	}
	for _, bad := range []struct {
		off uint64
		n   int
	}{{n, 1}, {n - 1, 2}, {1 << 63, 1}, {0, -1}} {
		_, err := c.MemoryRead(t.Context(), filled.MR, bad.off, bad.n)
		refused(t, err, service.CodeRequest)
	}
	refused(t, c.MemoryWrite(t.Context(), filled.MR, n-2, []byte("end")), service.CodeRequest)
	big := must(c.Register(t.Context(), service.RegisterArgs{Length: maxData + 1}))(t)
	_, err := c.MemoryRead(t.Context(), big.MR, 0, maxData+1)
	refused(t, err, service.CodeRequest)
	r.holds(t, big, 1, make([]byte, maxData))
}

func TestNothingWritesADeregisteredRegion(t *testing.T) {
	a, b := pair(t, service.ListenArgs{Recvs: service.Recvs(0)}, service.ConnectArgs{})
	r := must(b.Register(t.Context(), service.RegisterArgs{Length: 8, Access: []string{service.LocalWrite, service.RemoteWrite}}))(t)
	a.posts(t, service.Post{Op: service.OpWrite, Data: []byte{1}, Remote: r.Remote(0)})
	a.posts(t, service.Post{Op: service.OpSend})
	b.completes(t, service.RecvQueue, service.OpRecv) // orders the Write
	check(t, b.Deregister(t.Context(), r.MR))
	must(a.Post(t.Context(), a.qp, service.Post{Op: service.OpWrite, Data: []byte{2}, Remote: r.Remote(0)}))(t)
	if s := a.becomes(t, service.StateError); s.Failure.Terminate.Word() != 0x1100 { // invalid STag
		t.Errorf("failure %+v", s.Failure)
	}
	b.holds(t, r, 0, []byte{1, 0})
	check(t, b.Deregister(t.Context(), r.MR)) // again
	check(t, b.Release(t.Context(), r.MR))
	_, err := b.MemoryRead(t.Context(), r.MR, 0, 1)
	refused(t, err, service.CodeUnknown)
}

func TestMemoryIsReadWhileThePeerWrites(t *testing.T) {
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{})
	const n = 64 << 10
	r := must(b.Register(t.Context(), service.RegisterArgs{Length: n, Access: []string{service.LocalWrite, service.RemoteWrite}}))(t)
	src := must(a.Register(t.Context(), service.RegisterArgs{Length: n, Fill: 0xFF}))(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 20 {
			must(a.Post(t.Context(), a.qp, service.Post{Op: service.OpWrite, SGL: []service.Piece{src.Piece(0, n)}, Remote: r.Remote(0)}))(t)
		}
	})
	for {
		got := must(b.MemoryRead(t.Context(), r.MR, 0, n))(t)
		if bytes.Count(got, []byte{0})+bytes.Count(got, []byte{0xFF}) != n {
			t.Error("octets that nobody has written")
		}
		if got[n-1] == 0xFF {
			break
		}
		check(t, b.MemoryWrite(t.Context(), r.MR, 0, []byte{0}))
	}
	wg.Wait()
}

func TestMemoryOfASessionIsLimited(t *testing.T) {
	c := dial(t, serving(t, Options{Octets: 64 << 10}))
	_, err := c.Register(t.Context(), service.RegisterArgs{Length: 64<<10 + 1})
	refused(t, err, service.CodeLimit)
	_, err = c.Register(t.Context(), service.RegisterArgs{Length: 1<<64 - 1})
	refused(t, err, service.CodeLimit)
	r := must(c.Register(t.Context(), service.RegisterArgs{Length: 60 << 10}))(t)
	check(t, c.Deregister(t.Context(), r.MR)) // which keeps the memory
	_, err = c.Register(t.Context(), service.RegisterArgs{Length: 8 << 10})
	refused(t, err, service.CodeLimit)
	check(t, c.Release(t.Context(), r.MR))
	must(c.Register(t.Context(), service.RegisterArgs{Length: 64 << 10}))(t)
}

func TestMemoryThatIsUsedAgainIsFilledAnew(t *testing.T) {
	c := dial(t, serving(t, Options{}))
	var regions []*service.Region
	for i := range uint8(4) {
		regions = append(regions, must(c.Register(t.Context(), service.RegisterArgs{Length: 5000, Fill: i + 1}))(t))
	}
	check(t, c.Release(t.Context(), regions[1].MR))
	small := must(c.Register(t.Context(), service.RegisterArgs{Length: 100}))(t)
	large := must(c.Register(t.Context(), service.RegisterArgs{Length: 10_000, Fill: 9}))(t)
	r := end{c, 0}
	r.holds(t, small, 0, make([]byte, 100))
	r.holds(t, large, 0, bytes.Repeat([]byte{9}, 10_000))
	for i, m := range regions {
		if i != 1 {
			r.holds(t, m, 0, bytes.Repeat([]byte{byte(i) + 1}, 5000))
		}
	}
}

func TestDomainsKeepMemoryApart(t *testing.T) {
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{})
	p := must(b.AllocPD(t.Context()))(t)
	r := must(b.Register(t.Context(), service.RegisterArgs{Length: 8, PD: p.PD, Access: []string{service.LocalWrite, service.RemoteWrite}}))(t)
	refused(t, b.ClosePD(t.Context(), p.PD), service.CodeState)
	must(a.Post(t.Context(), a.qp, service.Post{Op: service.OpWrite, Data: []byte{2}, Remote: r.Remote(0)}))(t)
	if s := a.becomes(t, service.StateError); s.Failure.Terminate.Word() != 0x1102 { // STag not associated
		t.Errorf("failure %+v", s.Failure)
	}
	check(t, b.Release(t.Context(), r.MR))
	check(t, b.ClosePD(t.Context(), p.PD))
	_, err := b.Register(t.Context(), service.RegisterArgs{Length: 8, PD: p.PD})
	refused(t, err, service.CodeUnknown)
}

func TestObjectsOfASessionAreLimited(t *testing.T) {
	c := dial(t, serving(t, Options{}))
	for range maxListener {
		must(c.Listen(t.Context(), service.ListenArgs{}))(t)
	}
	_, err := c.Listen(t.Context(), service.ListenArgs{})
	refused(t, err, service.CodeLimit)
	for range maxDomains {
		must(c.AllocPD(t.Context()))(t)
	}
	_, err = c.AllocPD(t.Context())
	refused(t, err, service.CodeLimit)
	for range maxObjects {
		must(c.Register(t.Context(), service.RegisterArgs{Length: 1}))(t)
	}
	_, err = c.Register(t.Context(), service.RegisterArgs{Length: 1})
	refused(t, err, service.CodeLimit)
}
