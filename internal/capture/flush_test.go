package capture

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// failingWriter fails after n bytes.
type failingWriter struct{ n int }

var errFull = errors.New("disk full")

func (f *failingWriter) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestErrorsOfTheFileAreKept(t *testing.T) {
	w, err := NewWriter(&failingWriter{n: 1000})
	if err != nil {
		t.Fatal(err)
	}
	s := w.Stream(ourAddr, peerAddr, true)
	for range 10 {
		s.Sent(pattern(60_000))
		s.Received(pattern(60_000))
	}
	s.Close(true)
	s.Reset(false)
	for _, f := range []func() error{w.Flush, w.Close, w.Close} {
		if err := f(); !errors.Is(err, errFull) {
			t.Errorf("got %v, want the file's error", err)
		}
	}
}

// A blockWriter is a file that can be looked at while it grows, and counts its
// writes.
type blockWriter struct {
	mu     sync.Mutex // a Writer writes from a timer too
	buf    bytes.Buffer
	writes int
}

func (b *blockWriter) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes++
	return b.buf.Write(p)
}

// state returns what was written, and in how many writes.
func (b *blockWriter) state() (octets []byte, writes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes()), b.writes
}

// What a program leaves that is killed can be read, and lacks little.
func TestFileOfAWriterThatIsNeverClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b blockWriter
		w, err := NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		holds := func(what string, n int) {
			t.Helper()
			octets, _ := b.state()
			if got := len(segments(t, octets)); got != n {
				t.Errorf("%s: the file has %d packets; want %d", what, got, n)
			}
		}
		holds("at the beginning", 0)
		s := w.Stream(ourAddr, peerAddr, true)
		time.Sleep(FlushAfter - 1)
		s.Sent([]byte("x"))
		synctest.Wait()
		holds("before the time", 0)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		holds("after the time", 4)
		s.Sent([]byte("x"))
		s.Received([]byte("x"))
		time.Sleep(FlushAfter)
		synctest.Wait()
		holds("after another time", 6)
		s.Reset(true)
		holds("after a reset", 7)
		s = w.Stream(ourAddr, peerAddr, true)
		s.Close(true)
		s.Close(false)
		holds("after a close", 14)
		w.Stream(ourAddr, peerAddr, true).End()
		holds("after the end", 17)
		_, writes := b.state()
		time.Sleep(time.Hour)
		if _, now := b.state(); now != writes {
			t.Error("something is written while nothing is recorded")
		}
	})
}

func TestFileEndsBehindAPacketWhateverItsSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b blockWriter
		w, err := NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		s := w.Stream(ourAddr, peerAddr, true)
		seen := 0
		for i := range 200 {
			s.Sent(pattern(65_000 - 301*i))
			octets, _ := b.state()
			if n := len(packets(t, octets)); n < seen {
				t.Fatalf("%d packets, and %d before", n, seen)
			} else {
				seen = n
			}
		}
		if _, writes := b.state(); writes < 5 {
			t.Errorf("%d writes; this test wants some in the midst of things", writes)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestClosedWriterRecordsNothing(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	s := w.Stream(ourAddr, peerAddr, true)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	n := b.Len()
	s.Sent([]byte("x"))
	s.Close(true)
	w.Stream(ourAddr, peerAddr, true).Sent([]byte("y"))
	if err := errors.Join(w.Flush(), w.Close()); err != nil || b.Len() != n {
		t.Errorf("%d bytes, then %d; error %v", n, b.Len(), err)
	}
}
