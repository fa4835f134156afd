//go:build linux

package dropin

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
)

func TestCompletionsOfDatagramsFireEvents(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a, b := l.udEnd(), l.udEnd()
	ah := a.ah(AHAttr{})
	for i, solicited := range []bool{false, true, false} {
		b.recv(uint64(i), b.sge(0, 100))
		l.must("arm", l.CQArm(b.cq, solicited))
		wr := send(wrSend, 1, a.sge(0, 1)).at(ah, b.init.QPN, testKey)
		if solicited {
			wr.Flags |= sendSolicited
		}
		a.post(wr)
		l.until("an event", func() bool { return readable(t, b.fd) })
		var cookie uint64
		l.must("next event", l.ChannelNext(b.channel, &cookie))
		b.want(uint64(i), wcSuccess)
		a.want(1, wcSuccess)
	}
	b.recv(9, b.sge(0, 100))
	l.must("arm for what is solicited", l.CQArm(b.cq, true))
	a.post(send(wrSend, 9, a.sge(0, 1)).at(ah, b.init.QPN, testKey))
	a.want(9, wcSuccess)
	b.want(9, wcSuccess)
	if readable(t, b.fd) {
		t.Error("an event for what is not solicited")
	}
}

// Who arms again before it polls gets no second event for the same completion; who arms after a poll that has
// left one gets one.
func TestDatagramsFireOnceForWhatIsQueued(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a := l.udEnd()
	ah := a.ah(AHAttr{})
	event := func(want bool) {
		t.Helper()
		if want {
			l.until("an event", func() bool { return readable(t, a.fd) }) // a goroutine of the port may send
		}
		var cookie uint64
		if got := l.ChannelNext(a.channel, &cookie) == ok; got != want {
			t.Errorf("an event: %v; want %v", got, want)
		}
	}
	l.must("arm", l.CQArm(a.cq, false))
	a.post(send(wrSend, 1, a.sge(0, 1)).at(ah, a.init.QPN, testKey))
	event(true)
	l.must("arm again", l.CQArm(a.cq, false))
	event(false)
	a.post(send(wrSend, 2, a.sge(0, 1)).at(ah, a.init.QPN, testKey))
	event(true)
	a.want(1, wcSuccess)
	l.must("arm with one left", l.CQArm(a.cq, false))
	event(true)
	a.want(2, wcSuccess)
	l.must("arm with none", l.CQArm(a.cq, false))
	event(false)
}

func TestAwaitEndsWithADatagram(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a, b := l.udEnd(), l.udEnd()
	b.recv(1, b.sge(0, 100))
	done := make(chan struct{})
	go func() {
		defer close(done)
		var wc WC
		for l.CQPoll(b.cq, 1, &wc) == 0 {
			l.CQAwait(b.cq, 60_000_000)
		}
	}()
	a.post(send(wrSend, 1, a.sge(0, 1)).at(a.ah(AHAttr{}), b.init.QPN, testKey))
	<-done
}

func TestFullCompletionQueueIsTold(t *testing.T) {
	l := newLab(t, ethernetSetting)
	var small Handle
	entries := uint32(1)
	a := l.udEnd(func(e *end) {
		small, _ = l.CQCreate(e.ctx, &entries, 0, 7)
		e.init.SendCQ = small
	})
	ah := a.ah(AHAttr{})
	for i := range entries + 1 {
		a.post(send(wrSend, uint64(i), a.sge(0, 1)).at(ah, a.init.QPN, testKey))
	}
	a.wantAsync(eventCQErr, 7)
}

// A queue may be armed before it has a queue pair.
func TestArmedBeforeTheQueuePair(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a := l.udEnd(func(e *end) { l.must("arm", l.CQArm(e.cq, false)) })
	a.post(send(wrSend, 1, a.sge(0, 1)).at(a.ah(AHAttr{}), a.init.QPN, testKey))
	l.until("an event", func() bool { return readable(t, a.fd) })
	var cookie uint64
	l.must("next event", l.ChannelNext(a.channel, &cookie))
}

// A queue can't become smaller than what is in it.
func TestCompletionQueueOfDatagramsKeepsWhatItHas(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a := l.udEnd()
	ah := a.ah(AHAttr{})
	for i := range uint64(3) {
		a.post(send(wrSend, i, a.sge(0, 1)).at(ah, a.init.QPN, testKey))
	}
	l.until("three completions", func() bool { return l.cqs.get(a.cq).datagrams.n.Load() == 3 })
	for _, tt := range []struct {
		entries uint32
		want    Errno
	}{{2, syscall.EINVAL}, {3, ok}} {
		if got := l.CQResize(a.cq, &tt.entries); got != tt.want {
			t.Errorf("%d entries: %v, want %v", tt.entries, got, tt.want)
		}
	}
}

// A process that ends gives up its UDP port before the slot, which another one may take at once.
func TestSlotIsFreeOnceItsUDPPortIs(t *testing.T) {
	e, err := Open([]string{ethernetSetting}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.openDatagrams(); got != ok {
		t.Fatal(got)
	}
	e.datagrams.mu.Lock() // the UDP port can't be closed now
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	<-e.ctx.Done()
	for range 1000 {
		runtime.Gosched()
		l, err := net.Listen("tcp", fmt.Sprint(":", int(e.settings.port)+int(e.numbers.slot.Load())-1))
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("the port of the slot: %v; want that it is in use", err)
			if err == nil {
				_ = l.Close()
			}
			break
		}
	}
	e.datagrams.mu.Unlock()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
