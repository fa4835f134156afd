package rnic_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/internal/test/simnet"
	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A loader keeps one direction of a connection busy, with queues that hold only
// a few requests: it waits for completions when they are full.
type loader struct {
	from, to *rnictest.Side
	messages int
	size     int           // bytes of a message
	credits  chan struct{} // receives that are posted at the other end
	failed   context.Context

	fill    *rnic.MR // what is sent
	sink    *rnic.MR // of Reads
	recvBuf []byte
	recvMR  *rnic.MR
	target  *rnic.MR // of Writes and Reads, at the other end
	pending int      // signaled requests that have not completed
}

const loadDepth = 4 // entries of each queue

func newLoader(ctx context.Context, t testing.TB, from, to *rnictest.Side, messages, size int) *loader {
	l := &loader{from: from, to: to, messages: messages, size: size, credits: make(chan struct{}, loadDepth), failed: ctx}
	l.fill = from.Register(t, pattern(size+loadDepth*8, 1), rnic.LocalWrite)
	l.sink = from.Register(t, make([]byte, size), rnic.LocalWrite)
	l.recvBuf = make([]byte, loadDepth*size)
	l.recvMR = to.Register(t, l.recvBuf, rnic.LocalWrite)
	l.target = to.Register(t, make([]byte, size), allRights)
	for i := range loadDepth {
		if err := l.postRecv(i); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *loader) postRecv(slot int) error {
	err := l.to.QP.PostRecv(rnic.RecvWR{ID: uint64(slot), SGL: []rnic.SGE{l.recvMR.SGE(slot*l.size, l.size)}})
	if err == nil {
		l.credits <- struct{}{}
	}
	return err
}

// post posts a request once there is room for it.
func (l *loader) post(wr rnic.SendWR) error {
	for {
		err := l.from.QP.PostSend(wr)
		if !errors.Is(err, rnic.ErrQueueFull) {
			if err == nil && wr.Flags&rnic.FlagUnsignaled == 0 {
				l.pending++
			}
			return err
		}
		if l.pending == 0 {
			return errors.New("the queue is full of requests that have completed")
		}
		if err := l.complete(); err != nil {
			return err
		}
	}
}

func (l *loader) complete() error {
	var wcs [loadDepth]rnic.WC
	n, err := l.from.SendCQ.Wait(l.failed, wcs[:])
	for _, wc := range wcs[:n] {
		l.pending--
		if err == nil {
			err = wc.Err()
		}
	}
	return err
}

// send is the sending program: Sends with a serial number, Writes and Reads in
// between.
func (l *loader) send() error {
	for i := range l.messages {
		var reqs []rnic.SendWR
		switch i % 4 {
		case 1:
			reqs = append(reqs, rnic.SendWR{Op: rnic.OpWrite, Flags: rnic.FlagUnsignaled, SGL: []rnic.SGE{l.fill.SGE(0, l.size)}, Remote: l.target.Remote(0)})
		case 3:
			reqs = append(reqs, rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{l.sink.SGE(0, l.size/2)}, Remote: l.target.Remote(0)})
		}
		serial := binary.BigEndian.AppendUint64(nil, uint64(i))
		msg := rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: serial}
		if i%2 > 0 {
			msg = rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{l.fill.SGE(i%7, l.size)}}
		}
		for _, wr := range append(reqs, msg) {
			if wr.Op == rnic.OpSend {
				select {
				case <-l.credits:
				case <-l.failed.Done():
					return l.failed.Err()
				}
			}
			if wr.Op == rnic.OpWrite && i > 1 {
				wr.Flags |= rnic.FlagReadFence // the Read of before must not see it
			}
			if l.pending == 16*loadDepth { // the completion queue is not endless either
				if err := l.complete(); err != nil {
					return err
				}
			}
			if err := l.post(wr); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		}
	}
	for l.pending > 0 {
		if err := l.complete(); err != nil {
			return err
		}
	}
	return nil
}

// receive is the receiving program.
func (l *loader) receive() error {
	var wcs [1]rnic.WC
	want := pattern(l.size+loadDepth*8, 1)
	for i := range l.messages {
		if _, err := l.to.RecvCQ.Wait(l.failed, wcs[:]); err != nil {
			return err
		}
		wc := wcs[0]
		if err := wc.Err(); err != nil {
			return fmt.Errorf("receive %d: %w", i, err)
		}
		got := l.recvBuf[int(wc.ID)*l.size:][:wc.ByteLen]
		if i%2 == 0 && (len(got) != 8 || binary.BigEndian.Uint64(got) != uint64(i)) || i%2 > 0 && !bytes.Equal(got, want[i%7:][:l.size]) {
			return fmt.Errorf("message %d differs", i)
		}
		if err := l.postRecv(int(wc.ID)); err != nil {
			return err
		}
	}
	return nil
}

// runLoad sends messages both ways at once.
func runLoad(t testing.TB, a, b *rnictest.Side, messages, size int) {
	t.Helper()
	failed, fail := context.WithCancel(context.Background())
	defer fail()
	loaders := []*loader{newLoader(failed, t, a, b, messages, size), newLoader(failed, t, b, a, messages, size)}
	var wg sync.WaitGroup
	for _, l := range loaders {
		for _, program := range []func() error{l.send, l.receive} {
			wg.Go(func() {
				if err := program(); err != nil {
					t.Error(err)
					fail() // the others must not wait forever
				}
			})
		}
	}
	wg.Wait()
}

func smallQueues(_ *rnic.Config, attr *rnic.QPAttr) {
	attr.MaxSendWR, attr.MaxRecvWR = loadDepth, loadDepth
}

func TestSmallQueuesCarryThousandsOfRequests(t *testing.T) {
	for name, buffer := range map[string]int{"a network that takes little": 700, "a network that takes a few messages": 10_000, "a network that takes all": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				f := simnet.Faults{Seed: 3, ShortReads: true, ShortWrites: true, Latency: 10 * time.Microsecond}
				w.Options = func(int) simnet.Options { return simnet.Options{AB: f, BA: f, Buffer: buffer} }
				a, b := w.side(smallQueues), w.side(smallQueues)
				w.connect(a, b)
				runLoad(w, a, b, 2500, 1000)
				if err := a.QP.Disconnect(w.Context()); err != nil {
					w.Error(err)
				}
			})
		})
	}
	t.Run("TCP", func(t *testing.T) {
		leakcheck.Check(t)
		p := overTCP(t, "127.0.0.1:0")
		runLoad(t, p.A, p.B, 400, 200_000)
		if err := p.A.QP.Disconnect(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Run("TCP in pieces", func(t *testing.T) {
		leakcheck.Check(t)
		for seed := range uint64(2) {
			p := inPieces(t, seed)
			runLoad(t, p.A, p.B, 100, 20_000)
			if err := p.A.QP.Disconnect(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestManyQueuePairsUnderLoadAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		f := simnet.Faults{Seed: 3, ShortReads: true, Latency: 10 * time.Microsecond}
		w.Options = func(int) simnet.Options { return simnet.Options{AB: f, BA: f, Buffer: 3000} }
		a, b := w.side(smallQueues), w.side(smallQueues)
		var wg sync.WaitGroup
		for range 20 {
			small := rnic.QPAttr{MaxSendWR: loadDepth, MaxRecvWR: loadDepth}
			qa, qb := newQP(w, a.Device, a.PD, small), newQP(w, b.Device, b.PD, small)
			w.connect(qa, qb)
			wg.Go(func() { runLoad(w, qa, qb, 200, 500) })
		}
		wg.Wait()
	})
}

// goroutines counts those of the caller's bubble: those of other tests come and
// go.
func goroutines() int {
	dump := make([]byte, 16<<20)
	dump = dump[:runtime.Stack(dump, true)]
	own, _, _ := bytes.Cut(dump, []byte("\n")) // the caller's is the first
	return bytes.Count(dump, own[bytes.Index(own, []byte("synctest bubble ")):])
}

func TestParkedTransmitterGoesWhenThereIsNothingLeft(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Options = func(int) simnet.Options { return simnet.Options{Buffer: 1000} }
		a, b := w.side(), w.side()
		w.connect(a, b)
		dst := b.Register(w, make([]byte, 100_000), rnic.LocalWrite|rnic.RemoteWrite)
		src := a.Register(w, make([]byte, 100_000), 0)
		synctest.Wait()
		idle := goroutines()
		for id := range uint64(10) {
			a.Send(w, rnic.SendWR{ID: id, Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, 100_000)}, Remote: dst.Remote(0)})
		}
		for id := range uint64(10) {
			rnictest.Want(w, a.SendCQ, id)
		}
		synctest.Wait()
		if n := goroutines(); n != idle {
			w.Errorf("%d goroutines; want %d, as before", n, idle)
		}
	})
}

// A program that posts more than the LLP takes, and polls only then, gets the role
// of the goroutine that has gone on for it, which would need a processor of its own.
func TestWhoBeginsToPollTransmitsWhatIsLeft(t *testing.T) {
	inWorld(t, func(w *world) {
		f := simnet.Faults{Latency: time.Microsecond}
		w.Options = func(int) simnet.Options { return simnet.Options{AB: f, BA: f, Buffer: 1000, Polls: true} }
		a, b := w.side(), w.side()
		w.connect(a, b)
		dst := b.Register(w, make([]byte, 100_000), rnic.LocalWrite|rnic.RemoteWrite)
		src := a.Register(w, make([]byte, 100_000), 0)
		for id := range uint64(10) {
			a.Send(w, rnic.SendWR{ID: id, Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, 100_000)}, Remote: dst.Remote(0)})
		}
		synctest.Wait()
		if got := rnic.Transmitter(a.QP); got != "somebody" {
			w.Fatalf("%s transmits; want the goroutine", got)
		}
		parked := 0
		var wcs [1]rnic.WC
		for id := uint64(0); id < 10; {
			time.Sleep(time.Microsecond)
			synctest.Wait()
			if rnic.Transmitter(a.QP) == "a program" {
				parked++
			}
			for range 40 {
				if a.SendCQ.Poll(wcs[:]) == 0 {
					continue
				}
				if wcs[0].ID != id || wcs[0].Err() != nil {
					w.Fatalf("request %d: %v; want %d", wcs[0].ID, wcs[0].Err(), id)
				}
				id++
			}
		}
		if parked < 100 { // of the thousand that the network takes
			w.Errorf("the program had the role %d times", parked)
		}
		// Without it, the goroutine continues with what comes next.
		a.Send(w, rnic.SendWR{ID: 10, Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, 100_000)}, Remote: dst.Remote(0)})
		time.Sleep(time.Second)
		if a.SendCQ.Poll(wcs[:]) != 1 || wcs[0].ID != 10 || wcs[0].Err() != nil {
			w.Errorf("the request was not carried on: %+v", wcs[0])
		}
	})
}

// idlePairs connects n pairs of queue pairs of two devices over a network.
func idlePairs(t testing.TB, network rnic.Network, address string, n int) (qas, qbs []*rnictest.Side) {
	t.Helper()
	a, b := openSide(t, network), openSide(t, network)
	l, err := b.Device.Listen(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range n {
		qa, qb := newQP(t, a.Device, a.PD, rnic.QPAttr{SendCQ: a.SendCQ, RecvCQ: a.RecvCQ}), newQP(t, b.Device, b.PD, rnic.QPAttr{SendCQ: b.SendCQ, RecvCQ: b.RecvCQ})
		accepted := make(chan error, 1)
		go func() {
			r, err := l.Accept(context.Background())
			if err == nil {
				err = r.Accept(context.Background(), qb.QP, rnic.ConnParam{})
			}
			accepted <- err
		}()
		if err := qa.QP.Connect(context.Background(), l.Addr().String(), rnic.ConnParam{}); err != nil {
			t.Fatal(err)
		}
		if err := <-accepted; err != nil {
			t.Fatal(err)
		}
		qas, qbs = append(qas, qa), append(qbs, qb)
	}
	return qas, qbs
}

// ping sends one message each way.
func ping(t testing.TB, a, b *rnictest.Side) {
	t.Helper()
	for _, way := range [][2]*rnictest.Side{{a, b}, {b, a}} {
		way[1].Recv(t, rnic.RecvWR{ID: 1})
		way[0].Send(t, rnic.SendWR{ID: 2, Op: rnic.OpSend})
		rnictest.Want(t, way[0].SendCQ, 2)
		rnictest.Want(t, way[1].RecvCQ, 1)
	}
}

func TestIdleQueuePairHasOneGoroutine(t *testing.T) {
	inWorld(t, func(w *world) {
		before := goroutines()
		const n = 500
		qas, qbs := idlePairs(w, &w.Network, ":0", n)
		for i := range qas {
			ping(w, qas[i], qbs[i])
		}
		synctest.Wait()
		if got := goroutines() - before; got != 2*n {
			w.Errorf("%d goroutines for %d idle queue pairs; want one each", got, 2*n)
		}
		if got := qas[0].Device.Held(pd.QueuePairs); got != n+1 {
			w.Errorf("%d queue pairs; want %d", got, n+1)
		}
		if err := qas[0].Device.Close(); err != nil {
			w.Error(err)
		}
		wantState(w, qbs[n-1].QP, rnic.Error)
		if got := goroutines() - before; got != 0 {
			w.Errorf("%d goroutines are left", got)
		}
	})
}

// BenchmarkIdleQP measures what a connected queue pair takes that has nothing to
// do, after it has had something to do.
func BenchmarkIdleQP(b *testing.B) {
	const n = 1000
	measure := func() (octets, goroutines float64) {
		var m runtime.MemStats
		for range 3 { // pools let go in the second round
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc + m.StackInuse), float64(runtime.NumGoroutine())
	}
	for name, network := range map[string]struct {
		network rnic.Network
		address string
	}{"memory": {new(simnet.Network), ":0"}, "TCP": {nil, "127.0.0.1:0"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				octets, goroutines := measure()
				b.StartTimer()
				qas, qbs := idlePairs(b, network.network, network.address, n)
				for i := range qas {
					ping(b, qas[i], qbs[i])
				}
				b.StopTimer()
				octets2, goroutines2 := measure()
				b.ReportMetric((octets2-octets)/(2*n), "bytes/QP")
				b.ReportMetric((goroutines2-goroutines)/(2*n), "goroutines/QP")
				for _, s := range []*rnictest.Side{qas[0], qbs[0]} {
					if err := s.Device.Close(); err != nil {
						b.Error(err)
					}
				}
				b.StartTimer()
			}
		})
	}
}
