package rnic_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"urnic/internal/door"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A keepsake is a weak pointer to something that is to be forgotten.
type keepsake struct {
	what string
	kept func() bool
}

func keep[T any](what string, v *T) keepsake {
	p := weak.Make(v)
	return keepsake{what, func() bool { return p.Value() != nil }}
}

// Objects that are closed, and connections that are over, are kept by nothing that
// lives on: the device, domains, shared queues, completion queues, channels,
// listeners.
func TestNothingKeepsWhatIsOver(t *testing.T) {
	for name, live := range lives {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				var all []keepsake
				for range 3 { // the second may free what was kept of the first
					all = append(all, live(t, p)...)
				}
				for _, d := range []*rnic.Device{p.A.Device, p.B.Device} {
					for {
						if _, ok := d.PollEvent(); !ok {
							break
						}
					}
				}
				time.Sleep(time.Minute) // timers end
				synctest.Wait()
				for range 3 {
					runtime.GC()
				}
				kept := map[string]int{}
				for _, k := range all {
					if k.kept() {
						kept[k.what]++
					}
				}
				if len(kept) > 0 {
					t.Errorf("kept: %v", kept)
				}
			})
		})
	}
}

// lives are ways to make, use and end objects.
var lives = map[string]func(t *testing.T, p *rnictest.Pair) []keepsake{
	"a message waits for a receive": func(t *testing.T, p *rnictest.Pair) []keepsake {
		return withoutReceives(t, p, rnic.QPAttr{}, true)
	},
	"a message waits for one of an SRQ": func(t *testing.T, p *rnictest.Pair) []keepsake {
		return withoutReceives(t, p, rnic.QPAttr{SRQ: labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{})}, true)
	},
	"a message waits for one of an SRQ, and the peer goes": func(t *testing.T, p *rnictest.Pair) []keepsake {
		return withoutReceives(t, p, rnic.QPAttr{SRQ: labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{})}, false)
	},
	"the socket is full": func(t *testing.T, p *rnictest.Pair) []keepsake {
		// As B takes nothing, A's requests stay.
		a, b := patient(t, p, rnic.QPAttr{})
		mem := p.A.Register(t, make([]byte, 1<<20), 0)
		for range 4 {
			postSend(t, a, rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{mem.SGE(0, 1<<20)}})
		}
		synctest.Wait()
		a.Abort()
		return closed(t, a, b)
	},
	"a program polls, and disconnects": func(t *testing.T, p *rnictest.Pair) []keepsake {
		a, b := patient(t, p, rnic.QPAttr{})
		if err := b.PostRecv(rnic.RecvWR{}); err != nil {
			t.Fatal(err)
		}
		postSend(t, a, rnic.SendWR{Op: rnic.OpSend})
		spin(p.B.RecvCQ)
		synctest.Wait()
		drain(p.A.SendCQ)
		drain(p.B.RecvCQ)
		if err := a.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		return closed(t, a, b)
	},
	"a program waits, with contexts that live on": func(t *testing.T, p *rnictest.Pair) []keepsake {
		l := labOf(t, p.B)
		cq := l.cq(rnic.CQAttr{}) // of one connection, for which the program receives
		a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{SendCQ: p.A.SendCQ}), l.qpOn(p.B.PD, cq)
		p.Link(t, a, b)
		other, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		for _, ctx := range []context.Context{other, t.Context()} {
			if err := b.PostRecv(rnic.RecvWR{ID: 5}); err != nil {
				t.Fatal(err)
			}
			w := waits(ctx, cq)
			synctest.Wait()
			postSend(t, a, rnic.SendWR{Op: rnic.OpSend})
			w.want(t, 5)
		}
		drain(p.A.SendCQ)
		return closed(t, a, b)
	},
	"completion queues that fire": func(t *testing.T, p *rnictest.Pair) []keepsake {
		l := labOf(t, p.B)
		ch := l.channel()
		cq := l.cq(rnic.CQAttr{Channel: ch})
		a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{SendCQ: p.A.SendCQ}), l.qp(p.B.PD, rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
		p.Link(t, a, b)
		if err := cq.Arm(rnic.NextCompletion); err != nil {
			t.Fatal(err)
		}
		if err := b.PostRecv(rnic.RecvWR{}, rnic.RecvWR{}); err != nil {
			t.Fatal(err)
		}
		postSend(t, a, rnic.SendWR{Op: rnic.OpSend})
		synctest.Wait()
		drain(p.A.SendCQ)
		kept := append(closed(t, a, b), keep("the completion queue", cq))
		if err := cq.Close(); err != nil {
			t.Error(err)
		}
		return kept
	},
	"a shared receive queue": func(t *testing.T, p *rnictest.Pair) []keepsake {
		srq := labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{})
		a, b := patient(t, p, rnic.QPAttr{SRQ: srq})
		fill(t, srq, receives(1, 2)...)
		postSend(t, a, empties(1, 1, 0)...)
		rnictest.Want(t, p.B.RecvCQ, 1)
		drain(p.A.SendCQ)
		kept := append(closed(t, a, b), keep("the shared receive queue", srq))
		if err := srq.Close(); err != nil {
			t.Error(err)
		}
		return kept
	},
	"memory": func(t *testing.T, p *rnictest.Pair) []keepsake {
		l := labOf(t, p.B)
		mr := l.region(p.B.PD, make([]byte, 100), rnic.LocalWrite|rnic.RemoteWrite|rnic.BindWindow)
		w := l.window(p.B.PD, rnic.Type2)
		a, b := patient(t, p, rnic.QPAttr{SendCQ: p.B.SendCQ})
		postSend(t, b, rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: w, MR: mr, Addr: mr.Base(), Length: 100, Key: w.STag().Key() + 1, Access: rnic.RemoteWrite}})
		synctest.Wait()
		drain(p.B.SendCQ)
		kept := append(closed(t, a, b), keep("the region", mr), keep("the window", w))
		for _, err := range []error{w.Close(), mr.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
		return kept
	},
	"a domain": func(t *testing.T, p *rnictest.Pair) []keepsake {
		domain := labOf(t, p.B).domain()
		if err := domain.Close(); err != nil {
			t.Error(err)
		}
		return []keepsake{keep("the domain", domain)}
	},
	"memory that is registered anew": func(t *testing.T, p *rnictest.Pair) []keepsake {
		mem := make([]byte, 100)
		mr := labOf(t, p.B).region(p.B.PD, mem, 0)
		again, err := door.Reregister(mr, p.B.PD, rnic.Memory{Slice: mem}, rnic.LocalWrite)
		if err != nil {
			t.Fatal(err)
		}
		kept := []keepsake{keep("the region before", mr), keep("the region", again)}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		return kept
	},
	"listeners and requests": func(t *testing.T, p *rnictest.Pair) []keepsake {
		l, err := p.B.Device.Listen(t.Context(), "192.0.2.2:0")
		if err != nil {
			t.Fatal(err)
		}
		var kept []keepsake
		for i := range 4 {
			a := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{})
			ctx, cancel := context.WithCancel(t.Context())
			connected := make(chan error, 1)
			go func() { connected <- a.Connect(ctx, l.Addr().String(), rnic.ConnParam{}) }()
			r, err := l.Accept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch i {
			case 0:
				err = r.Reject(t.Context(), nil)
			case 1:
				err = r.Close()
			case 2: // the peer goes
				cancel()
			case 3: // nobody answers
			}
			if err != nil {
				t.Error(err)
			}
			if err := <-connected; err == nil {
				t.Error("it is connected")
			}
			cancel()
			kept = append(kept, keep("a request", r), keep("its queue pair", a))
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		return append(kept, keep("the listener", l))
	},
}

// withoutReceives has a message wait for a receive, and ends the stream from either end.
func withoutReceives(t *testing.T, p *rnictest.Pair, attr rnic.QPAttr, here bool) []keepsake {
	t.Helper()
	a, b := patient(t, p, attr)
	sendWithoutReceives(t, p, a)
	if here {
		b.Abort()
	} else {
		a.Abort()
	}
	synctest.Wait()
	return closed(t, a, b)
}

// closed closes two queue pairs.
func closed(t *testing.T, a, b *rnic.QP) []keepsake {
	t.Helper()
	for _, q := range []*rnic.QP{a, b} {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
	return []keepsake{keep("queue pair A", a), keep("queue pair B", b)}
}

// A queue pair keeps no memory of its program once the request for it has completed.
func TestCompletedRequestKeepsNoMemory(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		register := func() keepsake {
			mr := labOf(t, p.A).allocated(p.A.PD)
			mem := make([]byte, 64)
			p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpFastRegister, Register: rnic.FastRegister{
				MR: mr, Memory: rnic.Memory{Slice: mem}, Access: rnic.LocalWrite, Key: mr.STag().Key() + 1,
			}})
			rnictest.Want(t, p.A.SendCQ, 1)
			if err := mr.Close(); err != nil {
				t.Error(err)
			}
			return keep("the memory", &mem[0])
		}
		memory := register()
		for range 3 {
			runtime.GC()
		}
		if memory.kept() {
			t.Errorf("%s is kept", memory.what)
		}
	})
}
