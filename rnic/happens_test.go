//go:build unix

package rnic_test

import (
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/internal/test/leakcheck"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A waiting is a way in which a program waits for its next completion.
type waiting struct {
	name string
	make func(l lab) (*rnic.CQ, func() (rnic.WC, error))
}

func waitings() []waiting {
	// notified is a loop as verbs want it: poll, arm, poll again, wait.
	notified := func(cq *rnic.CQ, wait func() error) func() (rnic.WC, error) {
		var wcs [1]rnic.WC
		return func() (rnic.WC, error) {
			for {
				if cq.Poll(wcs[:]) == 1 {
					return wcs[0], nil
				}
				if err := cq.Arm(rnic.NextCompletion); err != nil {
					return rnic.WC{}, err
				}
				if cq.Poll(wcs[:]) == 1 {
					return wcs[0], nil
				}
				if err := wait(); err != nil {
					return rnic.WC{}, err
				}
			}
		}
	}
	return []waiting{
		{"Poll", func(l lab) (*rnic.CQ, func() (rnic.WC, error)) {
			cq := l.cq(rnic.CQAttr{})
			return cq, func() (rnic.WC, error) {
				var wcs [1]rnic.WC
				for cq.Poll(wcs[:]) == 0 {
					runtime.Gosched()
				}
				return wcs[0], nil
			}
		}},
		{"Wait", func(l lab) (*rnic.CQ, func() (rnic.WC, error)) {
			cq := l.cq(rnic.CQAttr{})
			return cq, func() (rnic.WC, error) {
				var wcs [1]rnic.WC
				_, err := cq.Wait(l.Context(), wcs[:])
				return wcs[0], err
			}
		}},
		{"Fired", func(l lab) (*rnic.CQ, func() (rnic.WC, error)) {
			cq := l.cq(rnic.CQAttr{})
			return cq, notified(cq, func() error { <-cq.Fired(); return nil })
		}},
		{"completion channel", func(l lab) (*rnic.CQ, func() (rnic.WC, error)) {
			ch := l.channel()
			cq := l.cq(rnic.CQAttr{Channel: ch})
			return cq, notified(cq, func() error {
				_, err := ch.Wait(l.Context())
				return err
			})
		}},
		{"descriptor", func(l lab) (*rnic.CQ, func() (rnic.WC, error)) {
			ch := l.channel()
			cq := l.cq(rnic.CQAttr{Channel: ch})
			fd, err := ch.FD()
			if err != nil {
				l.Fatal(err)
			}
			return cq, notified(cq, func() error {
				for {
					_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
					if err == nil {
						break
					}
					if !errors.Is(err, unix.EINTR) {
						return err
					}
				}
				ch.Poll()
				return nil
			})
		}},
	}
}

// Memory is handed over by nothing but posting and polling: what a program does
// with it before it posts happens before the RNIC uses it, and what the RNIC
// does happens before the poll that returns the completion. The race detector
// knows, if it is on; the bytes tell otherwise.
func TestPostingAndPollingHandMemoryOver(t *testing.T) {
	for _, w := range waitings() {
		t.Run(w.name, func(t *testing.T) {
			for polls, name := range networks {
				t.Run("memory, "+name, func(t *testing.T) { handOver(t, rnictest.Connect(t, rnictest.Options{Polls: polls}), w) })
			}
			t.Run("TCP", func(t *testing.T) { handOver(t, overTCP(t, "127.0.0.1:0"), w) })
			t.Run("TCP in pieces", func(t *testing.T) { handOver(t, inPieces(t, 2), w) })
		})
	}
}

// handOver lets A and B, each a goroutine that shares nothing with the other,
// work on the same bytes by turns.
func handOver(t *testing.T, p *rnictest.Pair, how waiting) {
	leakcheck.Check(t)
	const size = 3000
	rounds := 50
	if how.name == "Poll" { // two goroutines that spin leave the scheduler little time for the network
		rounds = 8
	}
	type end struct {
		q          *rnic.QP
		next       func() (rnic.WC, error)
		sent, recv []byte // messages
		sends      []rnic.SendWR
		recvs      []rnic.RecvWR
	}
	make1 := func(s *rnictest.Side) *end {
		cq, next := how.make(labOf(t, s))
		e := &end{q: labOf(t, s).qpOn(s.PD, cq), next: next, sent: make([]byte, size), recv: make([]byte, size)}
		e.sends = []rnic.SendWR{{ID: 1, Op: rnic.OpSend, SGL: []rnic.SGE{s.Register(t, e.sent, 0).SGE(0, size)}}}
		e.recvs = []rnic.RecvWR{{ID: 2, SGL: []rnic.SGE{s.Register(t, e.recv, rnic.LocalWrite).SGE(0, size)}}}
		return e
	}
	a, b := make1(p.A), make1(p.B)
	// Memory of B that A writes and reads, and A's copy of it.
	window := make([]byte, size)
	target := p.B.Register(t, window, everyRight).Remote(0)
	local := make([]byte, size)
	localMR := p.A.Register(t, local, rnic.LocalWrite)
	for _, e := range []*end{a, b} {
		if err := e.q.PostRecv(e.recvs...); err != nil {
			t.Fatal(err)
		}
	}
	p.Link(t, a.q, b.q)

	// await takes completions until those IDs are there.
	await := func(e *end, ids ...uint64) bool {
		for left := len(ids); left > 0; left-- {
			wc, err := e.next()
			if err == nil {
				err = wc.Err()
			}
			if err != nil {
				t.Error(err)
				return false
			}
		}
		return true
	}
	set := func(mem []byte, v int) {
		for i := range mem {
			mem[i] = byte(v + i)
		}
	}
	check := func(what string, mem []byte, v int) {
		for i := range mem {
			if mem[i] != byte(v+i) {
				t.Errorf("%s: octet %d is %d; want %d", what, i, mem[i], byte(v+i))
				return
			}
		}
	}
	post := func(e *end, wrs ...rnic.SendWR) bool {
		if err := e.q.PostSend(wrs...); err != nil {
			t.Error(err)
			return false
		}
		return true
	}
	write := rnic.SendWR{ID: 3, Op: rnic.OpWrite, SGL: []rnic.SGE{localMR.SGE(0, size)}, Remote: target}
	read := rnic.SendWR{ID: 4, Op: rnic.OpRead, SGL: []rnic.SGE{localMR.SGE(0, size)}, Remote: target}

	done := make(chan struct{})
	go func() { // B
		defer close(done)
		for i := range rounds {
			if !await(b, 2) { // A's message: the window is B's
				return
			}
			check("B received", b.recv, i)
			check("the window", window, i+1)
			set(window, i+2)
			set(b.sent, i+3)
			if err := b.q.PostRecv(b.recvs...); err != nil {
				t.Error(err)
				return
			}
			if !post(b, b.sends...) || !await(b, 1) { // the window is A's
				return
			}
		}
	}()
	for i := range rounds {
		set(local, i+1)
		set(a.sent, i)
		if !post(a, write, a.sends[0]) || !await(a, 3, 1, 2) {
			break
		}
		check("A received", a.recv, i+3)
		if err := a.q.PostRecv(a.recvs...); err != nil {
			t.Error(err)
			break
		}
		if !post(a, read) || !await(a, 4) {
			break
		}
		check("A read", local, i+2)
	}
	if t.Failed() {
		a.q.Abort()
		b.q.Abort()
	}
	<-done
	for _, e := range []*end{a, b} {
		if err := e.q.Close(); err != nil {
			t.Error(err)
		}
	}
}
