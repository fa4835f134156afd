//go:build !race

package rnic_test

import (
	"runtime"
	"testing"

	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// Nothing is allocated per work request, on either side, once the queues have
// what they need. The race detector allocates on its own.
func TestWorkRequestsAllocateNothing(t *testing.T) {
	const batch = 16
	for _, size := range []int{8, 60_000} {
		for _, o := range operations(size) {
			t.Run(o.name, func(t *testing.T) {
				p := overTCP(t, "127.0.0.1:0")
				step := o.stepper(t, p, batch)
				for range 50 { // pools and queues fill up
					step()
				}
				runtime.GC()
				if n := allocations(step); n >= 1 {
					t.Errorf("%v allocations for %d requests of %d octets", n, batch, size)
				}
			})
		}
	}
}

// allocations returns how many allocations a step takes, at least. A stray one is the runtime's own;
// and where the scheduler keeps this program from its queues, its connections change hands, which
// allocates. What a request allocates, it does each time.
func allocations(step func()) float64 {
	least := testing.AllocsPerRun(200, step)
	for tries := 1; least >= 1 && tries < 10; tries++ {
		least = min(least, testing.AllocsPerRun(200, step))
	}
	return least
}

// Nor for a receive of an SRQ.
func TestReceivesOfAnSRQAllocateNothing(t *testing.T) {
	const batch = 16
	p := overTCP(t, "127.0.0.1:0")
	srq := labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{})
	from, _ := shared(t, p, srq, 1)
	sends, recvs, wcs := empties(0, batch, rnic.FlagUnsignaled), receives(0, batch), make([]rnic.WC, batch)
	step := func() {
		fill(t, srq, recvs...)
		postSend(t, from[0], sends...)
		for left := batch; left > 0; {
			n, err := p.B.RecvCQ.Wait(t.Context(), wcs[:left])
			if err != nil {
				t.Fatal(err)
			}
			left -= n
		}
	}
	for range 50 { // pools and queues fill up
		step()
	}
	runtime.GC()
	if n := allocations(step); n >= 1 {
		t.Errorf("%v allocations for %d receives", n, batch)
	}
}

// An operation is a way to move bytes between A and B.
type operation struct {
	name string
	size int
	wr   func(local, remote *rnic.MR) rnic.SendWR
	recv bool // B posts a receive for each
}

func operations(size int) []operation {
	one := func(op rnic.Opcode) func(local, remote *rnic.MR) rnic.SendWR {
		return func(local, remote *rnic.MR) rnic.SendWR {
			return rnic.SendWR{Op: op, SGL: []rnic.SGE{local.SGE(0, size)}, Remote: remote.Remote(0)}
		}
	}
	ops := []operation{
		{"Send", size, one(rnic.OpSend), true},
		{"Write", size, one(rnic.OpWrite), false},
		{"Write with Immediate", size, one(rnic.OpWriteImmediate), true},
		{"Read", size, one(rnic.OpRead), false},
	}
	if size == 8 {
		ops = append(ops, operation{"FetchAdd", size, one(rnic.OpFetchAdd), false}, operation{"inline Send", size, func(_, _ *rnic.MR) rnic.SendWR {
			return rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: make([]byte, size)}
		}, true})
	}
	return ops
}

// stepper returns a function that posts n requests at A, and takes all of their
// completions.
func (o *operation) stepper(t testing.TB, p *rnictest.Pair, n int) func() {
	t.Helper()
	_, mem := words(max(o.size/8, 1))
	local, remote := p.A.Register(t, make([]byte, o.size), rnic.LocalWrite), p.B.Register(t, mem, everyRight)
	sends, recvs := make([]rnic.SendWR, n), make([]rnic.RecvWR, n)
	for i := range n {
		sends[i] = o.wr(local, remote)
		recvs[i].SGL = []rnic.SGE{remote.SGE(0, o.size)}
	}
	wcs := make([]rnic.WC, n)
	take := func(cq *rnic.CQ) {
		for left := n; left > 0; {
			got, err := cq.Wait(t.Context(), wcs[:left])
			if err != nil {
				t.Fatal(err)
			}
			for i := range wcs[:got] {
				if err := wcs[i].Err(); err != nil {
					t.Fatal(err)
				}
			}
			left -= got
		}
	}
	return func() {
		if o.recv {
			p.B.Recv(t, recvs...)
		}
		p.A.Send(t, sends...)
		take(p.A.SendCQ)
		if o.recv {
			take(p.B.RecvCQ)
		}
	}
}
