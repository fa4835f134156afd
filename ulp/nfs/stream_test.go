package nfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"urnic/ulp/oncrpc"
)

// A source that was cut off is no source that ends.
func TestReadFromTellsOfASourceThatWasCutOff(t *testing.T) {
	errOther := errors.New("another error")
	for _, failure := range []error{io.ErrUnexpectedEOF, fmt.Errorf("the connection: %w", io.EOF), errOther} {
		for _, n := range []int{0, 1000, 64 << 10, 200 << 10} {
			s, c := newFake(t, Config{}, nil)
			f := openFake(t, c)
			source := io.MultiReader(strings.NewReader(strings.Repeat("x", n)), iotest.ErrReader(failure))
			got, err := io.Copy(f, source)
			if !errors.Is(err, failure) || got != int64(n) {
				t.Errorf("%d bytes and %q: %d bytes, %v", n, failure, got, err)
			}
			sync1(t, f)
			if len(s.kept()) != n {
				t.Errorf("the file has %d bytes, not %d", len(s.kept()), n)
			}
		}
	}
	// And one that ends is complete, however it says so.
	for _, end := range []io.Reader{strings.NewReader("data"), iotest.DataErrReader(strings.NewReader("data")), iotest.OneByteReader(strings.NewReader("data"))} {
		s, c := newFake(t, Config{}, nil)
		f := openFake(t, c)
		if n, err := io.Copy(f, end); n != 4 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		sync1(t, f)
		wantKept(t, s, "data")
	}
}

// A connection that was lost is told of as io.EOF, which is not the end of a file.
func TestALostConnectionIsNotTheEnd(t *testing.T) {
	s, c := newFake(t, Config{}, nil)
	s.mu.Lock()
	s.memory = []byte(strings.Repeat("x", 1000))
	s.mu.Unlock()
	f, err := c.OpenHandle(t.Context(), fakeHandle, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	working := c.rpc
	c.rpc = oncrpc.NewClient(func(context.Context) (oncrpc.Conn, error) {
		return nil, &oncrpc.LostError{Err: io.EOF}
	}, oncrpc.ClientConfig{Dials: 1})
	if n, err := f.WriteTo(io.Discard); err == nil {
		t.Errorf("WriteTo: %d bytes, and no error", n)
	}
	for name, read := range map[string]func() (int, error){
		"Read":   func() (int, error) { return f.Read(make([]byte, 10)) },
		"ReadAt": func() (int, error) { return f.ReadAt(make([]byte, 10), 0) },
	} {
		if _, err := read(); err == nil || err == io.EOF { //nolint:errorlint // that is what programs compare
			t.Errorf("%s: %v", name, err)
		}
	}
	_ = c.rpc.Close()
	c.rpc = working
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
