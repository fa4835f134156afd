package rnic_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"urnic/mpa"
	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A dialogue is what two programs do with a connection that may fail at any
// byte. Each of its steps is a request, or a message of the other program; each
// success is checked byte by byte.
type dialogue struct {
	*rnictest.Pair
	t          testing.TB
	ctx        context.Context
	memA, memB *rnic.MR // with all rights
	octetsB    []byte
	word       *rnic.MR // of B
	sinkA      *rnic.MR
	gotA       []byte
	sinkB      *rnic.MR
	gotB       []byte
	recvA      []byte
	recvB      []byte
}

// patience is how long the programs wait for any step.
const patience = 20 * time.Second

var errWrongData = errors.New("success was reported of data that are wrong")

func newDialogue(t testing.TB, p *rnictest.Pair) *dialogue {
	d := &dialogue{Pair: p, t: t, octetsB: make([]byte, 300), gotA: make([]byte, 300), gotB: make([]byte, 250), recvA: make([]byte, 100), recvB: make([]byte, 200)}
	d.memA = p.A.Register(t, pattern(300, 1), allRights)
	d.memB = p.B.Register(t, d.octetsB, allRights)
	word := make([]byte, 8)
	binary.NativeEndian.PutUint64(word, 40)
	d.word = p.B.Register(t, word, allRights)
	d.sinkA = p.A.Register(t, d.gotA, rnic.LocalWrite)
	d.sinkB = p.B.Register(t, d.gotB, rnic.LocalWrite)
	p.A.Recv(t, rnic.RecvWR{ID: 1, SGL: []rnic.SGE{p.A.Register(t, d.recvA, rnic.LocalWrite).SGE(0, 100)}})
	p.B.Recv(t, rnic.RecvWR{ID: 1, SGL: []rnic.SGE{p.B.Register(t, d.recvB, rnic.LocalWrite).SGE(0, 200)}})
	return d
}

// a is the program of the initiator, b that of the responder.
func (d *dialogue) a() error {
	data := pattern(200, 2)
	if err := d.do(d.A,
		rnic.SendWR{ID: 2, Op: rnic.OpWrite, SGL: []rnic.SGE{d.memA.SGE(0, 300)}, Remote: d.memB.Remote(0)},
		rnic.SendWR{ID: 3, Op: rnic.OpSend, SGL: []rnic.SGE{d.A.Register(d.t, data, 0).SGE(0, 200)}},
	); err != nil {
		return err
	}
	if _, err := d.wait(d.A.RecvCQ, 1); err != nil {
		return err
	} else if !bytes.Equal(d.recvA, pattern(100, 3)) {
		return errWrongData
	}
	if err := d.A.QP.PostSend(rnic.SendWR{ID: 4, Op: rnic.OpFetchAdd, Remote: d.word.Remote(0), Atomic: rnic.Atomic{Add: 2}}); err != nil {
		return err
	}
	if wc, err := d.wait(d.A.SendCQ, 4); err != nil {
		return err
	} else if wc.Original != 40 {
		return errWrongData
	}
	if err := d.do(d.A, rnic.SendWR{ID: 5, Op: rnic.OpRead, SGL: []rnic.SGE{d.sinkA.SGE(0, 300)}, Remote: d.memB.Remote(0)}); err != nil {
		return err
	} else if !bytes.Equal(d.gotA, pattern(300, 1)) {
		return errWrongData
	}
	ctx, cancel := context.WithTimeout(d.ctx, patience)
	defer cancel()
	return d.A.QP.Disconnect(ctx)
}

func (d *dialogue) b() error {
	if _, err := d.wait(d.B.RecvCQ, 1); err != nil {
		return err
	} else if !bytes.Equal(d.recvB, pattern(200, 2)) || !bytes.Equal(d.octetsB, pattern(300, 1)) {
		return errWrongData
	}
	if err := d.do(d.B, rnic.SendWR{ID: 2, Op: rnic.OpRead, SGL: []rnic.SGE{d.sinkB.SGE(0, 250)}, Remote: d.memA.Remote(50)}); err != nil {
		return err
	} else if !bytes.Equal(d.gotB, pattern(300, 1)[50:]) {
		return errWrongData
	}
	if err := d.do(d.B, rnic.SendWR{ID: 3, Op: rnic.OpSend, SGL: []rnic.SGE{d.B.Register(d.t, pattern(100, 3), 0).SGE(0, 100)}}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(d.ctx, patience)
	defer cancel()
	e, err := d.B.Device.WaitEvent(ctx)
	if err == nil && e.Type != rnic.EventCloseComplete {
		err = fmt.Errorf("%v", e)
	}
	return err
}

// do posts requests and waits for their success.
func (d *dialogue) do(s *rnictest.Side, wrs ...rnic.SendWR) error {
	if err := s.QP.PostSend(wrs...); err != nil {
		return err
	}
	for _, wr := range wrs {
		if _, err := d.wait(s.SendCQ, wr.ID); err != nil {
			return err
		}
	}
	return nil
}

func (d *dialogue) wait(cq *rnic.CQ, id uint64) (rnic.WC, error) {
	ctx, cancel := context.WithTimeout(d.ctx, patience)
	defer cancel()
	var wcs [1]rnic.WC
	if _, err := cq.Wait(ctx, wcs[:]); err != nil {
		return rnic.WC{}, err
	}
	if err := wcs[0].Err(); err != nil {
		return rnic.WC{}, err
	}
	if wcs[0].ID != id {
		return rnic.WC{}, fmt.Errorf("%w: request %d completed in place of %d", errWrongData, wcs[0].ID, id)
	}
	return wcs[0], nil
}

// runWithFault runs the dialogue with a fault, over a network that can be polled
// and one that can't, and reports whether it came to its end undisturbed.
func runWithFault(t *testing.T, what string, f rnictest.Options) (undisturbed bool) {
	t.Helper()
	undisturbed = runOnce(t, what, f)
	f.Polls = true
	if polled := runOnce(t, what+", polled", f); polled != undisturbed {
		t.Errorf("%s: undisturbed: %v, polled: %v", what, undisturbed, polled)
	}
	return undisturbed
}

func runOnce(t *testing.T, what string, f rnictest.Options) (undisturbed bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p, connErr := rnictest.TryConnect(t, f)
		errs := make(chan error, 2)
		if connErr == nil {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			d := newDialogue(t, p)
			d.ctx = ctx
			run := func(program func() error, q *rnic.QP) {
				err := program()
				if err != nil {
					q.Abort()
				}
				errs <- err
			}
			go run(d.a, p.A.QP)
			go run(d.b, p.B.QP)
			for range 2 {
				if err := <-errs; errors.Is(err, errWrongData) {
					t.Errorf("%s: %v", what, err)
				} else if err != nil {
					connErr = err
				}
			}
		}
		undisturbed = connErr == nil
		if d := time.Since(start); d > 10*patience {
			t.Errorf("%s: it took %v", what, d)
		}
		for _, s := range []*rnictest.Side{p.A, p.B} {
			if err := s.QP.Close(); err != nil {
				t.Error(err)
			}
			for _, r := range []pd.Resource{pd.QueuePairs, pd.InboundReads, pd.OutboundReads, pd.HalfOpen, pd.Listeners} {
				if n := s.Device.Held(r); n != 0 {
					t.Errorf("%s: the device holds %d %v", what, n, r)
				}
			}
		}
	})
	return undisturbed
}

// startupLen is the length of the Request, and of the Reply.
const startupLen = mpa.FrameHeaderLen + mpa.EnhancedLen

func TestConnectionThatFailsAtAnyOctet(t *testing.T) {
	directions := map[string]func(f rnictest.Faults) rnictest.Options{
		"to the responder": func(f rnictest.Faults) rnictest.Options { return rnictest.Options{AB: f} },
		"to the initiator": func(f rnictest.Faults) rnictest.Options { return rnictest.Options{BA: f} },
	}
	kinds := []struct {
		name  string
		step  int64
		fault func(at int64) rnictest.Faults
	}{
		{"stall", 3, func(at int64) rnictest.Faults { return rnictest.Faults{StallAt: at} }},
		{"corruption", 3, func(at int64) rnictest.Faults { return rnictest.Faults{CorruptAt: at, Seed: uint64(at)} }},
		{"cut, in small pieces", 7, func(at int64) rnictest.Faults {
			return rnictest.Faults{CutAt: at, Seed: uint64(at), ShortReads: true, ShortWrites: true}
		}},
	}
	for direction, options := range directions {
		t.Run(direction, func(t *testing.T) {
			// A cut shows how many bytes there are: behind the last, it does nothing.
			length := int64(1)
			for ; !runWithFault(t, fmt.Sprintf("cut at octet %d", length), options(rnictest.Faults{CutAt: length})); length++ {
				if length > 5000 {
					t.Fatal("the dialogue never succeeds")
				}
			}
			for _, kind := range kinds {
				for at := int64(1); at < length; at += kind.step {
					what := fmt.Sprintf("%s at octet %d of %d", kind.name, at, length-1)
					// No CRC protects the start-up frames: what they say may be taken.
					if runWithFault(t, what, options(kind.fault(at))) && (kind.name != "corruption" || at > startupLen) {
						t.Errorf("%s: nothing happened", what)
					}
				}
				if !runWithFault(t, kind.name, options(kind.fault(length))) {
					t.Errorf("%s behind the last octet, %d: the dialogue failed", kind.name, length)
				}
			}
		})
	}
}

func TestSlowAndFragmentedConnectionChangesNothing(t *testing.T) {
	for seed := range uint64(50) {
		f := rnictest.Faults{Seed: seed, ShortReads: true, ShortWrites: true, Latency: time.Duration(seed) * time.Millisecond, Jitter: time.Millisecond}
		if !runWithFault(t, fmt.Sprint("seed ", seed), rnictest.Options{AB: f, BA: f, MSS: 256 << (seed % 5)}) {
			t.Errorf("seed %d: the dialogue failed", seed)
		}
	}
}
