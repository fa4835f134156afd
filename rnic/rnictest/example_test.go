package rnictest_test

import (
	"testing"
	"time"

	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// An example of a test: each way takes a second, but the clock is fake, so the test ends at once.
func TestHello(t *testing.T) {
	slow := rnictest.Faults{Latency: time.Second}
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		begun := time.Now()
		buf := make([]byte, 5)
		sink := p.B.Register(t, buf, rnic.LocalWrite)
		if err := p.B.QP.PostRecv(rnic.RecvWR{ID: 1, SGL: []rnic.SGE{sink.SGE(0, 5)}}); err != nil {
			t.Fatal(err)
		}
		source := p.A.Register(t, []byte("hello"), rnic.LocalWrite)
		if err := p.A.QP.PostSend(rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{source.SGE(0, 5)}}); err != nil {
			t.Fatal(err)
		}
		rnictest.Want(t, p.B.RecvCQ, 1) // waits for the completion; an error fails the test
		if string(buf) != "hello" {
			t.Errorf("received %q", buf)
		}
		if took := time.Since(begun); took < time.Second {
			t.Errorf("it took %v", took)
		}
	}, rnictest.Options{AB: slow, BA: slow})
}
