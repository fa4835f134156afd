package rnic_test

import (
	"testing"
	"testing/synctest"
	"time"

	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// closing is a trace hook's work: it gives up the memory of the message that it
// sees. That must not wait for the hook's own caller.
func closing(t *testing.T, mr **rnic.MR) {
	if *mr == nil {
		return
	}
	done := make(chan error, 1)
	m := *mr
	*mr = nil
	go func() { done <- m.Close() }()
	watch := time.NewTimer(time.Minute)
	defer watch.Stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-watch.C:
		t.Error("giving up memory in the trace hook waits for the hook itself")
	}
}

// A trace hook may give up memory of a message that has been received.
func TestTraceHookMayDeregisterWhatWasPlaced(t *testing.T) {
	for _, op := range []rnic.Opcode{rnic.OpSend, rnic.OpWrite, rnic.OpWriteImmediate, rnic.OpFetchAdd} {
		t.Run(op.String(), func(t *testing.T) {
			var mr *rnic.MR
			o := rnictest.Options{Device: func(side string, cfg *rnic.Config) {
				if side == "B" {
					cfg.Trace = func(m rnic.Trace) {
						if !m.Sent {
							closing(t, &mr)
						}
					}
				}
			}}
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				_, mem := words(8)
				target := p.B.Register(t, mem, everyRight)
				p.B.Recv(t, rnic.RecvWR{ID: 1, SGL: []rnic.SGE{target.SGE(0, 64)}})
				mr = target
				local := p.A.Register(t, make([]byte, 8), rnic.LocalWrite)
				wr := rnic.SendWR{ID: 2, Op: op, SGL: []rnic.SGE{local.SGE(0, 8)}, Remote: target.Remote(0)}
				p.A.Send(t, wr)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if mr != nil || target.Valid() {
					t.Errorf("the hook has not been called; valid: %v", target.Valid())
				}
			}, o)
		})
	}
}

// Counters are exact when a completion is polled: of messages, and of what went
// through an STag.
func TestCountersAreExactWhenACompletionIsThere(t *testing.T) {
	count := func(s *rnictest.Side, op rdmap.Opcode) (sent, received uint64) {
		c := s.QP.Counters()
		return c.Sent[op].Messages, c.Received[op].Messages
	}
	for _, network := range []string{"memory", "TCP", "TCP in pieces"} {
		t.Run(network, func(t *testing.T) {
			var p *rnictest.Pair
			switch network {
			case "memory":
				p = rnictest.Connect(t, polled)
			case "TCP":
				p = overTCP(t, "127.0.0.1:0")
			default:
				p = inPieces(t, 1)
			}
			target, buf := p.B.Register(t, make([]byte, 100), everyRight), p.B.Register(t, make([]byte, 100), rnic.LocalWrite)
			local, sink := p.A.Register(t, make([]byte, 100), 0), p.A.Register(t, make([]byte, 100), rnic.LocalWrite)
			for i := range uint64(200) {
				p.B.Recv(t, rnic.RecvWR{ID: i, SGL: []rnic.SGE{buf.SGE(0, 100)}})
				p.A.Send(t,
					rnic.SendWR{ID: i, Op: rnic.OpWrite, Flags: rnic.FlagUnsignaled, SGL: []rnic.SGE{local.SGE(0, 50)}, Remote: target.Remote(0)},
					rnic.SendWR{ID: i, Op: rnic.OpSend, SGL: []rnic.SGE{local.SGE(0, 30)}})
				rnictest.Want(t, p.A.SendCQ, i)
				if n, _ := count(p.A, rdmap.OpSend); n != i+1 {
					t.Fatalf("the Send completes as number %d, and %d are counted", i+1, n)
				}
				if s := local.Stats(); s.OctetsOut != 80*(i+1) || s.Accesses != 2*(i+1) {
					t.Fatalf("the sent memory counts %+v after %d rounds", s, i+1)
				}
				rnictest.Want(t, p.B.RecvCQ, i)
				_, w := count(p.B, rdmap.OpWrite)
				_, r := count(p.B, rdmap.OpSend)
				if w != i+1 || r != i+1 || target.Stats().OctetsIn != 50*(i+1) || buf.Stats().OctetsIn != 30*(i+1) {
					t.Fatalf("round %d: %d Writes and %d Sends are counted, memory %+v and %+v", i+1, w, r, target.Stats(), buf.Stats())
				}
				p.A.Send(t, rnic.SendWR{ID: i, Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, 20)}, Remote: target.Remote(0)})
				rnictest.Want(t, p.A.SendCQ, i)
				if _, n := count(p.A, rdmap.OpReadResponse); n != i+1 || sink.Stats().OctetsIn != 20*(i+1) {
					t.Fatalf("the Read completes as number %d, and %d responses are counted, memory %+v", i+1, n, sink.Stats())
				}
			}
		})
	}
}
