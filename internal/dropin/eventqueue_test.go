//go:build linux

package dropin

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

func newQueue(t *testing.T) *eventQueue[int] {
	t.Helper()
	q, err := newEventQueue[int]()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// readable reports whether poll(2) says that there is something.
func readable(t testing.TB, fd int) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	for errors.Is(err, unix.EINTR) { // as the runtime's own signals may have it
		n, err = unix.Poll(fds, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

func TestEventQueueIsReadableWhileThereIsSomething(t *testing.T) {
	q := newQueue(t)
	step := func(what string, want ...int) {
		t.Helper()
		if !slices.Equal(q.events, want) || readable(t, q.num) != (len(want) > 0) {
			t.Fatalf("%s: %v, readable %t; want %v", what, q.events, readable(t, q.num), want)
		}
	}
	step("new")
	for i := range 5 {
		q.push(i)
	}
	step("pushed", 0, 1, 2, 3, 4)
	if e, some := q.next(); e != 0 || !some {
		t.Fatalf("next: %d, %t", e, some)
	}
	step("next", 1, 2, 3, 4)
	if got := q.take(func(e int) bool { return e%2 == 0 }); !slices.Equal(got, []int{2, 4}) {
		t.Fatalf("taken: %v", got)
	}
	step("taken some", 1, 3)
	if got := q.take(func(int) bool { return false }); got != nil {
		t.Fatalf("taken: %v", got)
	}
	step("taken none", 1, 3)
	q.take(func(int) bool { return true })
	step("taken all")
	q.push(6)
	step("pushed again", 6)
	if e, some := q.next(); e != 6 || !some {
		t.Fatalf("next: %d, %t", e, some)
	}
	step("empty")
	if _, some := q.next(); some || q.take(func(int) bool { return true }) != nil {
		t.Error("there is something in an empty queue")
	}
}

// A program that reads the descriptor does not block the engine, and finds the events
// that are left.
func TestEventQueueSurvivesAReader(t *testing.T) {
	q := newQueue(t)
	for range 2 {
		q.push(1)
		q.push(2)
		if _, err := unix.Read(q.num, make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		for want := 1; want <= 2; want++ {
			if e, some := q.next(); e != want || !some {
				t.Errorf("next: %d, %t; want %d", e, some, want)
			}
			if got := readable(t, q.num); got != (want == 1) {
				t.Errorf("readable after event %d: %t", want, got)
			}
		}
	}
}

// Nor does one that waits in read(2): it may take what makes the descriptor readable
// between any two steps of the engine.
func TestEventQueueSurvivesAReaderThatWaits(t *testing.T) {
	q := newQueue(t)
	var ended atomic.Bool
	ends := make(chan struct{})
	go func() {
		defer close(ends)
		for b := make([]byte, 8); !ended.Load(); {
			if _, err := unix.Read(q.num, b); err != nil && !errors.Is(err, unix.EINTR) {
				t.Error(err)
			}
		}
	}()
	for want := range 1000 {
		q.push(want)
		if e, some := q.next(); e != want || !some {
			t.Errorf("next: %d, %t; want %d", e, some, want)
		}
	}
	for ended.Store(true); ; q.next() { // the reader may still wait
		q.push(0)
		select {
		case <-ends:
			return
		default:
		}
	}
}

// A program that waits with EPOLLET, and fetches one event each time that it wakes, gets
// all: those that come one by one, and those that come at once.
func TestEventQueueWakesForEachEvent(t *testing.T) {
	q := newQueue(t)
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ep)
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, q.num, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET}); err != nil {
		t.Fatal(err)
	}
	wakes := func(what string, want int) {
		t.Helper()
		n, err := unix.EpollWait(ep, make([]unix.EpollEvent, 1), 0)
		for errors.Is(err, unix.EINTR) {
			n, err = unix.EpollWait(ep, make([]unix.EpollEvent, 1), 0)
		}
		if n != want || err != nil {
			t.Errorf("%s: epoll_wait: %d, %v; want %d", what, n, err, want)
		}
	}
	wakes("empty", 0)
	for i := range 3 {
		q.push(i)
		wakes("pushed", 1)
		wakes("nothing new", 0)
	}
	for range 3 {
		q.push(7)
	}
	for left := 6; left > 0; left-- {
		wakes("some are left", 1)
		q.next()
	}
	wakes("empty again", 0)
	q.push(8)
	q.next()
	wakes("pushed and fetched", 0)
	q.push(8)
	q.push(9)
	wakes("pushed", 1)
	q.take(func(e int) bool { return e == 8 })
	wakes("one is left", 1)
	q.take(func(int) bool { return true })
	wakes("all are taken", 0)
}

func TestClosedEventQueueTakesNothing(t *testing.T) {
	q := newQueue(t)
	q.push(1)
	for range 2 {
		if err := q.close(); err != nil {
			t.Error(err)
		}
	}
	q.push(2)
	if e, some := q.next(); some {
		t.Errorf("there is %d in a closed queue", e)
	}
}

func TestEventQueueLosesNothingBetweenThreads(t *testing.T) {
	const threads, each = 4, 500
	q := newQueue(t)
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			for i := range each {
				q.push(i)
			}
		})
	}
	sum := 0
	for range threads * each {
		e, some := q.next()
		for !some {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(q.num), Events: unix.POLLIN}}, -1)
			e, some = q.next()
		}
		sum += e
	}
	wg.Wait()
	if want := threads * each * (each - 1) / 2; sum != want || readable(t, q.num) {
		t.Errorf("sum %d, want %d; readable %t", sum, want, readable(t, q.num))
	}
}
