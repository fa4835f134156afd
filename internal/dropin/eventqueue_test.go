//go:build linux

package dropin

import (
	"errors"
	"slices"
	"sync"
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
		if !slices.Equal(q.events, want) || readable(t, q.fd) != (len(want) > 0) {
			t.Fatalf("%s: %v, readable %t; want %v", what, q.events, readable(t, q.fd), want)
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

// A program that reads the descriptor, as it must not, does not block the engine.
func TestEventQueueSurvivesAReader(t *testing.T) {
	q := newQueue(t)
	q.push(1)
	if _, err := unix.Read(q.fd, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if e, some := q.next(); e != 1 || !some {
		t.Errorf("next: %d, %t", e, some)
	}
	q.push(2)
	if !readable(t, q.fd) {
		t.Error("the next event is not to be seen")
	}
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
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(q.fd), Events: unix.POLLIN}}, -1)
			e, some = q.next()
		}
		sum += e
	}
	wg.Wait()
	if want := threads * each * (each - 1) / 2; sum != want || readable(t, q.fd) {
		t.Errorf("sum %d, want %d; readable %t", sum, want, readable(t, q.fd))
	}
}
