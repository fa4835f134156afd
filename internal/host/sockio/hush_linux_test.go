package sockio

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"golang.org/x/sys/unix"
)

// lowat returns how many octets wake those who wait for the connection of s.
func lowat(t *testing.T, s *tcp) (n int) {
	t.Helper()
	var err error
	if closed := s.raw.Control(func(fd uintptr) {
		n, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT)
	}); closed != nil || err != nil {
		t.Fatal(closed, err)
	}
	return n
}

// spin looks n times for what has not come.
func spin(t *testing.T, s Stream, n int) {
	t.Helper()
	for range n {
		if n, err := s.TryRead(make([]byte, 8)); n != 0 || err != nil {
			t.Fatalf("read %d octets, %v; want none", n, err)
		}
	}
}

func TestWhoSpinsIsNotWokenForEachSegment(t *testing.T) {
	a, b := dialTCP(t, "127.0.0.1:0")
	s := New(a).(*tcp)
	before, err := rcvbuf(s)
	if err != nil {
		t.Fatal(err)
	}

	spin(t, s, spins-1)
	if n := lowat(t, s); n != 1 {
		t.Errorf("%d octets wake those who wait after %d tries; want 1", n, spins-1)
	}
	spin(t, s, 1)
	if n := lowat(t, s); n < 4096 {
		t.Errorf("%d octets wake those who wait after %d tries; want many", n, spins)
	}
	if after, err := rcvbuf(s); err != nil || after != before {
		t.Errorf("the receive buffer has %d octets, %v; want %d as before", after, err, before)
	}

	// What is there is read, however little.
	p := make([]byte, 8)
	if _, err := b.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := s.TryRead(p)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			break
		}
	}
	if p[0] != 'x' {
		t.Errorf("read %q; want x", p[0])
	}
}

// Who waits again is woken by the first octet: by one that came before, and by one
// that comes later.
func TestWhoHasSpunIsWokenAgain(t *testing.T) {
	a, b := dialTCP(t, "127.0.0.1:0")
	s := New(a).(*tcp)
	spin(t, s, spins)
	if _, err := b.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 8)
	read := func() []byte {
		n, err := s.ReadInto(func() []byte { return p }, func() {})
		if err != nil {
			t.Fatal(err)
		}
		return p[:n]
	}
	if got := read(); string(got) != "x" {
		t.Errorf("read %q; want x", got)
	}
	if n := lowat(t, s); n != 1 {
		t.Errorf("%d octets wake those who wait; want 1", n)
	}

	spin(t, s, spins)
	went := make(chan error, 1)
	go func() {
		_, err := b.Write([]byte("y"))
		went <- err
	}()
	if got := read(); string(got) != "y" {
		t.Errorf("read %q; want y", got)
	}
	if err := <-went; err != nil {
		t.Fatal(err)
	}
}

// All that was sent arrives, though the reader has gone quiet.
func TestMuchIsReadByOneWhoSpins(t *testing.T) {
	a, b := dialTCP(t, "127.0.0.1:0")
	s := New(a).(*tcp)
	spin(t, s, spins)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	wrote := make(chan error, 1)
	go func() {
		_, err := b.Write(sent)
		_ = b.Close()
		wrote <- err
	}()
	var got []byte
	for p := make([]byte, 1<<16); ; {
		n, err := s.TryRead(p)
		if got = append(got, p[:n]...); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-wrote; err != nil || !bytes.Equal(got, sent) {
		t.Errorf("read %d octets, %v; want the %d that were sent", len(got), err, len(sent))
	}
}

func rcvbuf(s *tcp) (n int, err error) {
	closed := s.raw.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) })
	if closed != nil {
		err = closed
	}
	return n, err
}
