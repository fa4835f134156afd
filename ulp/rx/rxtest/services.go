package rxtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"urnic/ulp/rx"
)

// The services that are tested.
const (
	Echo   = 11 // sends the request back
	Sink   = 12 // counts the request, and checks that it is a pattern
	Source = 13 // sends as much of a pattern as 8 bytes of the request say
	Fail   = 14 // fails with the code that the request has
	Panic  = 15
	Who    = 16 // tells who calls
	Old    = 17 // is upgraded to New
	New    = 18
	Early  = 19 // replies when it has read 4 bytes, whatever follows
)

// at is byte i of the pattern.
func at(i int) byte { return byte(i ^ i>>8*7 ^ i>>16*13 ^ i>>20*29) }

// pattern returns n bytes of the pattern.
func pattern(n int) []byte {
	b := make([]byte, n)
	fill(b, 0)
	return b
}

func fill(b []byte, from int) {
	for i := range b {
		b[i] = at(from + i)
	}
}

// check returns an error if b is not the pattern from an offset on.
func check(b []byte, from int) error {
	for i := range b {
		if b[i] != at(from+i) {
			return fmt.Errorf("byte %d is %#02x, not %#02x", from+i, b[i], at(from+i))
		}
	}
	return nil
}

// A coded error is one with a code for an abort.
type coded int32

func (c coded) Error() string    { return fmt.Sprintf("code %d", int32(c)) }
func (c coded) AbortCode() int32 { return int32(c) }

// Services are those that are tested, with some classes of security.
func Services() []rx.Service {
	return []rx.Service{
		{ID: Echo, Handler: rx.HandlerFunc(echo)},
		{ID: Sink, Handler: rx.HandlerFunc(sink)},
		{ID: Source, Handler: rx.HandlerFunc(source)},
		{ID: Fail, Handler: rx.HandlerFunc(failing)},
		{ID: Panic, Handler: rx.HandlerFunc(func(context.Context, rx.ServerCall) error { panic("as it should") })},
		{ID: Who, Handler: rx.HandlerFunc(who)},
		{ID: Old, Upgrade: New, Handler: naming("old")},
		{ID: New, Handler: naming("new")},
		{ID: Early, Handler: rx.HandlerFunc(early)},
	}
}

func echo(_ context.Context, c rx.ServerCall) error {
	b, err := io.ReadAll(c)
	if err != nil {
		return err
	}
	_, err = c.Write(b)
	return err
}

// count reads a pattern to its end, a buffer of n bytes at a time.
func count(r io.Reader, n int) (int, error) {
	buf := make([]byte, n)
	total := 0
	for {
		k, err := r.Read(buf)
		if bad := check(buf[:k], total); bad != nil {
			return total, bad
		}
		total += k
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// sizes are the lengths of Reads and Writes: short, as long as a packet of UDP, and long
// enough for an RDMA Write.
var sizes = []int{100, 1444, 32 << 10, 1 << 20}

func sink(_ context.Context, c rx.ServerCall) error {
	n, err := count(c, 1<<20)
	if err != nil {
		return err
	}
	_, err = c.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
	return err
}

// send writes n bytes of the pattern, in pieces.
func send(w io.Writer, n, piece int) error {
	buf := make([]byte, min(piece, max(n, 1)))
	for sent := 0; sent < n; {
		k := min(len(buf), n-sent)
		fill(buf[:k], sent)
		if _, err := w.Write(buf[:k]); err != nil {
			return err
		}
		sent += k
	}
	return nil
}

func source(_ context.Context, c rx.ServerCall) error {
	var b [16]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return err
	}
	return send(c, int(binary.BigEndian.Uint64(b[:])), int(binary.BigEndian.Uint64(b[8:])))
}

func failing(_ context.Context, c rx.ServerCall) error {
	var b [4]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return err
	}
	return fmt.Errorf("it fails as it was told: %w", coded(binary.BigEndian.Uint32(b[:])))
}

func who(_ context.Context, c rx.ServerCall) error {
	k := c.Caller()
	if !c.Peer().IsValid() || c.Service() != Who {
		return coded(1)
	}
	_, err := fmt.Fprintf(c, "%s@%s %s %s %t", k.Name, k.Realm, k.Class, k.Level, k.Verified)
	return err
}

func naming(name string) rx.Handler {
	return rx.HandlerFunc(func(_ context.Context, c rx.ServerCall) error {
		_, err := io.WriteString(c, name)
		return err
	})
}

func early(_ context.Context, c rx.ServerCall) error {
	var b [4]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return err
	}
	_, err := c.Write(b[:])
	return err
}

// exchange makes a call: a request, and the reply to it.
func exchange(ctx context.Context, conn rx.Conn, request []byte) ([]byte, error) {
	k, err := conn.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer k.Close() //nolint:errcheck // reading has told the error
	if _, err := k.Write(request); err != nil {
		return nil, err
	}
	if err := k.CloseWrite(); err != nil {
		return nil, err
	}
	return io.ReadAll(k)
}

// put sends n bytes of the pattern to Sink, in pieces.
func put(ctx context.Context, conn rx.Conn, n, piece int) error {
	k, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer k.Close() //nolint:errcheck // reading has told the error
	if err := send(k, n, piece); err != nil {
		return err
	}
	if err := k.CloseWrite(); err != nil {
		return err
	}
	got, err := io.ReadAll(k)
	if err == nil && !slices.Equal(got, binary.BigEndian.AppendUint64(nil, uint64(n))) {
		err = fmt.Errorf("the server has counted % x of %d bytes", got, n)
	}
	return err
}

// get reads n bytes of the pattern from Source, in pieces.
func get(ctx context.Context, conn rx.Conn, n, write, read int) error {
	k, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer k.Close() //nolint:errcheck // reading has told the error
	request := binary.BigEndian.AppendUint64(nil, uint64(n))
	if _, err := k.Write(binary.BigEndian.AppendUint64(request, uint64(write))); err != nil {
		return err
	}
	if err := k.CloseWrite(); err != nil {
		return err
	}
	got, err := count(k, read)
	if err == nil && got != n {
		err = fmt.Errorf("%d bytes of %d have come", got, n)
	}
	return err
}

// Code is the abort code of an error, and whether it has one.
func Code(err error) (int32, bool) {
	if a, ok := errors.AsType[rx.Aborter](err); ok {
		return a.AbortCode(), true
	}
	return 0, false
}
