package rdpconn

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"urnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// pair returns both ends of a connection over loopback.
func pair(t *testing.T, o Options) (dialed, accepted *Conn) {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0", Options{Unsequenced: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if dialed, err = Dial(t.Context(), l.Addr().String(), o); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepted = c.(*Conn)
	t.Cleanup(func() {
		dialed.Close()
		accepted.Close()
	})
	return dialed, accepted
}

func TestMessagesKeepTheirBoundaries(t *testing.T) {
	a, b := pair(t, Options{})
	if !a.rdp.Sequenced() || !b.rdp.Sequenced() {
		t.Error("the connection is not sequenced")
	}
	want := [][]byte{[]byte("one"), {2}, bytes.Repeat([]byte{3}, 1000)}
	if err := a.WriteMessages(want...); err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		got, err := b.ReadMessage()
		if err != nil || !bytes.Equal(got, w) {
			t.Errorf("%d octets, %v; want %d", len(got), err, len(w))
		}
	}
	if err := a.Flush(); err != nil {
		t.Error(err)
	}
	if err := b.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Error(err)
	}
	if _, err := b.ReadMessage(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nothing is %v", err)
	}
	if err := b.SetDeadline(time.Time{}); err != nil {
		t.Error(err)
	}
	if _, err := b.Write([]byte("back")); err != nil {
		t.Error(err)
	}
	buf := make([]byte, 10)
	if n, err := a.Read(buf); err != nil || string(buf[:n]) != "back" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.ReadMessage(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the peer's close is %v", err)
	}
	if _, err := a.ReadMessage(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading on a closed connection is %v", err)
	}
}

func TestOptionsOfConnections(t *testing.T) {
	a, b := pair(t, Options{Unsequenced: true, MaxSegment: 300})
	if a.rdp.Sequenced() || b.rdp.Sequenced() {
		t.Error("the connection is sequenced")
	}
	if n := b.rdp.Status().SendMax; n != 300 {
		t.Errorf("the peer sends segments of %d octets", n)
	}
}

// A peer that waits for the acknowledgement of its last message has it, though nobody reads.
func TestSomeMessagesAreTakenBeforeTheyAreRead(t *testing.T) {
	a, b := pair(t, Options{})
	for range ahead {
		if _, err := b.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Flush(); err != nil {
		t.Errorf("they are not acknowledged: %v", err)
	}
	if _, err := a.ReadMessage(); err != nil {
		t.Error(err)
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.SetDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("accepting is %v", err)
	}
	if err := l.SetDeadline(time.Time{}); err != nil {
		t.Error(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := l.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("accepting is %v", err)
		}
	})
	if err := l.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("accepting behind the end is %v", err)
	}
	_, err = Dial(t.Context(), address, Options{})
	failed, ok := errors.AsType[*net.OpError](err)
	if !errors.Is(err, syscall.ECONNREFUSED) || !ok || failed.Op != "dial" {
		t.Errorf("dialing is %v", err)
	}
	if _, err := Dial(t.Context(), "nonsense", Options{}); err == nil {
		t.Error("nonsense is dialed")
	}
}

// A recording notes how many segments it was told of.
type recording struct {
	mu sync.Mutex
	n  int
}

func (r *recording) Segment(_, _ netip.AddrPort, _ []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
}

// A recording has the segments that passed before anybody could ask for it.
func TestRecordingsBeginWithTheFirstSegment(t *testing.T) {
	a, b := pair(t, Options{})
	var ra, rb recording
	a.Record(&ra)
	b.Record(&rb)
	if ra.n < 2 || rb.n < 2 { // SYN and its answer
		t.Errorf("%d and %d segments", ra.n, rb.n)
	}
	if _, err := a.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ReadMessage(); err != nil {
		t.Fatal(err)
	}
	rb.mu.Lock()
	defer rb.mu.Unlock()
	if rb.n < 3 {
		t.Errorf("%d segments", rb.n)
	}
}
