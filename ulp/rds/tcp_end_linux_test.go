package rds

import (
	"errors"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
)

// connected returns both ends of a connection.
func connected(t *testing.T) (ours, theirs *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(), a.Close() })
	return c.(*net.TCPConn), a.(*net.TCPConn)
}

// What has come on a connection is read when it is to be finished, also if the peer has reset it meanwhile: TCP has acknowledged it.
func TestFinishReadsWhatCameBeforeAReset(t *testing.T) {
	ours, theirs := connected(t)
	l := newTCPLink(ours)
	if _, err := theirs.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(theirs.SetLinger(0), theirs.Close()); err != nil {
		t.Fatal(err)
	}
	for !isReset(t, ours) {
		runtime.Gosched()
	}
	l.finish()
	if b, err := io.ReadAll(ours); string(b) != "hello" || !errors.Is(err, syscall.ECONNRESET) && err != nil {
		t.Errorf("read %q, %v", b, err)
	}
}

// isReset reports whether the peer has reset a connection: the kernel does not let its direction be closed then.
func isReset(t *testing.T, c *net.TCPConn) bool {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var name error
	if err := raw.Control(func(fd uintptr) { _, name = syscall.Getpeername(int(fd)) }); err != nil {
		t.Fatal(err)
	}
	return errors.Is(name, syscall.ENOTCONN)
}

// A connection that is drained after it was finished is read to the end of what has come. More is not acknowledged, but resets it.
func TestDrainAfterFinish(t *testing.T) {
	ours, theirs := connected(t)
	l := newTCPLink(ours)
	l.finish()
	if n, err := theirs.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	if _, err := theirs.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	for unread(ours) < 5 {
		runtime.Gosched()
	}
	l.drain()
	if b, err := io.ReadAll(ours); string(b) != "hello" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	var err error
	for err == nil { // the kernel tells of the reset when it has come
		_, err = theirs.Write([]byte("more"))
	}
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	if b, err := io.ReadAll(ours); len(b) != 0 {
		t.Errorf("read %q, %v", b, err)
	}
}
