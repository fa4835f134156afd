package nfs

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"urnic/ulp/nfs/nfs3"
)

// openFake opens the file of a fake for reading and writing.
func openFake(t *testing.T, c *Client) *File {
	t.Helper()
	f, err := c.OpenHandle(t.Context(), fakeHandle, os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return f
}

func write(t *testing.T, f *File, text string, off int64) {
	t.Helper()
	if n, err := f.WriteAt([]byte(text), off); err != nil || n != len(text) {
		t.Fatalf("%d, %v", n, err)
	}
}

func sync1(t *testing.T, f *File) {
	t.Helper()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

func wantKept(t *testing.T, s *fake, want string) {
	t.Helper()
	if got := s.kept(); got != want {
		t.Errorf("%q is on stable storage, not %q", got, want)
	}
}

func wantHeld(t *testing.T, c *Client, want int64) {
	t.Helper()
	if got := c.held.Load(); got != want {
		t.Errorf("%d bytes are held, not %d", got, want)
	}
}

// What was written and not committed is on stable storage after Sync although the server
// has lost it (RFC 1813 §3.3.21).
func TestSyncWritesAgainWhatTheServerHasLost(t *testing.T) {
	s, c := newFake(t, Config{}, nil)
	f := openFake(t, c)
	write(t, f, "first", 0)
	wantHeld(t, c, 5)
	wantKept(t, s, "")
	sync1(t, f)
	wantHeld(t, c, 0)
	wantKept(t, s, "first")
	write(t, f, "FIRST and ", 0)
	write(t, f, "second", 10)
	s.crash(t)
	wantKept(t, s, "first")
	sync1(t, f)
	wantKept(t, s, "FIRST and second")
	wantHeld(t, c, 0)
	n := s.count(nfs3.ProcCommit)
	sync1(t, f)
	if s.count(nfs3.ProcCommit) != n {
		t.Error("nothing was committed again")
	}
}

// Data that was written after the crash is not overwritten by what is written again.
func TestNewerDataStaysWhenOlderIsWrittenAgain(t *testing.T) {
	s, c := newFake(t, Config{}, nil)
	f := openFake(t, c)
	write(t, f, "aaaaaaaaaa", 0)
	s.crash(t)
	write(t, f, "BBBB", 3)
	sync1(t, f)
	wantKept(t, s, "aaaBBBBaaa")
}

func TestReadsSeeWhatTheServerHasLost(t *testing.T) {
	s, c := newFake(t, Config{}, nil)
	f := openFake(t, c)
	write(t, f, "written", 0)
	s.crash(t)
	p := make([]byte, 7)
	if _, err := f.ReadAt(p, 0); err != nil || string(p) != "written" {
		t.Errorf("%q, %v", p, err)
	}
	write(t, f, " and more", 7)
	s.crash(t)
	if info, err := c.Stat(t.Context(), "file"); err != nil || info.Size() != 16 {
		t.Errorf("%v, %v", info, err)
	}
}

// A file that was made shorter does not grow again when the server crashes.
func TestTruncateCommitsBefore(t *testing.T) {
	s, c := newFake(t, Config{}, nil)
	f := openFake(t, c)
	write(t, f, "0123456789", 0)
	if err := c.Truncate(t.Context(), "file", 4); err != nil { // by another way than f
		t.Fatal(err)
	}
	s.crash(t)
	sync1(t, f)
	wantKept(t, s, "0123")
}

// What there is no room for is committed before the write returns, with what is older.
func TestHoldIsBounded(t *testing.T) {
	s, c := newFake(t, Config{Hold: 1000}, nil)
	f := openFake(t, c)
	write(t, f, "old", 0)
	wantHeld(t, c, 3)
	long := strings.Repeat("x", 300) // more than a quarter
	write(t, f, long, 3)
	wantHeld(t, c, 0)
	wantKept(t, s, "old"+long)
	for range 4 {
		write(t, f, long[:250], 0)
	}
	wantHeld(t, c, 1000)
	write(t, f, "!", 0)
	wantHeld(t, c, 0)
	if got := s.kept(); !strings.HasPrefix(got, "!xxx") {
		t.Errorf("%.10q is on stable storage", got)
	}

	_, none := newFake(t, Config{Hold: -1}, nil)
	g := openFake(t, none)
	write(t, g, "x", 0)
	wantHeld(t, none, 0)
}

// A write for which there is no room survives a crash between it and its COMMIT.
func TestLentDataIsWrittenAgain(t *testing.T) {
	crashed := false
	s, c := newFake(t, Config{Hold: -1}, nil)
	s.answer(nfs3.ProcCommit, func(nfs3.Codec) nfs3.Codec {
		if !crashed {
			crashed = true
			s.forget()
		}
		return nil
	})
	f := openFake(t, c)
	write(t, f, "precious", 0)
	wantKept(t, s, "precious")
}

// A server whose verifier is never the same has data on stable storage in the end.
func TestServerThatForgetsAlways(t *testing.T) {
	s, c := newFake(t, Config{}, nil)
	s.answer(nfs3.ProcCommit, func(nfs3.Codec) nfs3.Codec {
		s.forget()
		return nil
	})
	f := openFake(t, c)
	write(t, f, "stubborn", 0)
	sync1(t, f)
	wantKept(t, s, "stubborn")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stables == 0 {
		t.Error("no write was to be stable")
	}
}

// Data that can't be committed is told of, is held still, and is dropped by Close alone.
func TestFailureToCommit(t *testing.T) {
	full := true
	_, c := newFake(t, Config{}, map[nfs3.Proc]func(nfs3.Codec) nfs3.Codec{
		nfs3.ProcCommit: func(nfs3.Codec) nfs3.Codec {
			if full {
				return &nfs3.CommitRes{Status: nfs3.ErrNoSpc}
			}
			return nil
		},
	})
	f := openFake(t, c)
	write(t, f, "data", 0)
	if err := f.Sync(); !errors.Is(err, nfs3.ErrNoSpc) {
		t.Errorf("got %v", err)
	}
	wantHeld(t, c, 4)
	if err := f.Close(); !errors.Is(err, nfs3.ErrNoSpc) {
		t.Errorf("got %v", err)
	}
	wantHeld(t, c, 0)
	if len(c.inodes) != 0 {
		t.Errorf("%d files are open", len(c.inodes))
	}

	_, none := newFake(t, Config{Hold: -1}, map[nfs3.Proc]func(nfs3.Codec) nfs3.Codec{
		nfs3.ProcCommit: func(nfs3.Codec) nfs3.Codec { return &nfs3.CommitRes{Status: nfs3.ErrIO} },
	})
	g, err := none.OpenHandle(t.Context(), fakeHandle, os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := g.WriteAt([]byte("data"), 0); n != 0 || !errors.Is(err, nfs3.ErrIO) {
		t.Errorf("%d, %v", n, err)
	}
	if err := g.Close(); err != nil { // what was lent is forgotten
		t.Error(err)
	}
}

// With Config.Sync, and with os.O_SYNC, nothing has to be committed.
func TestStableWritesAreNotHeld(t *testing.T) {
	s, c := newFake(t, Config{Sync: true}, nil)
	f := openFake(t, c)
	write(t, f, "data", 0)
	wantHeld(t, c, 0)
	wantKept(t, s, "data")

	s, c = newFake(t, Config{}, nil)
	g, err := c.OpenHandle(t.Context(), fakeHandle, os.O_RDWR|os.O_SYNC)
	if err != nil {
		t.Fatal(err)
	}
	write(t, g, "data", 0)
	wantKept(t, s, "data")
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if s.count(nfs3.ProcCommit) != 0 {
		t.Error("it was committed all the same")
	}
}

// A server that writes less than it is asked to is asked for the rest.
func TestShortWritesAndReads(t *testing.T) {
	s, c := newFake(t, Config{}, map[nfs3.Proc]func(nfs3.Codec) nfs3.Codec{
		nfs3.ProcWrite: func(args nfs3.Codec) nfs3.Codec {
			a, _ := args.(*nfs3.WriteArgs)
			a.Data = a.Data[:min(len(a.Data), 7)]
			return nil
		},
		nfs3.ProcRead: func(args nfs3.Codec) nfs3.Codec {
			a, _ := args.(*nfs3.ReadArgs)
			a.Count = min(a.Count, 9)
			return nil
		},
	})
	f := openFake(t, c)
	text := strings.Repeat("0123456789", 20)
	write(t, f, text, 0)
	wantHeld(t, c, 200)
	p := make([]byte, 200)
	if n, err := f.ReadAt(p, 0); n != 200 || err != nil || string(p) != text {
		t.Errorf("%d, %v: %q", n, err, p)
	}
	s.crash(t)
	sync1(t, f)
	wantKept(t, s, text)
}

// Writers, and those who commit, don't lose each other's data while the server crashes.
func TestConcurrentSync(t *testing.T) {
	s, c := newFake(t, Config{Hold: 5000}, nil)
	f := openFake(t, c)
	const writers, parts = 4, 40
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			p := []byte(strings.Repeat(string(rune('a'+i)), 100))
			for k := range parts {
				if _, err := f.WriteAt(p, int64(k*writers+i)*100); err != nil {
					t.Error(err)
				}
				if k%10 == i {
					if err := f.Sync(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for range 3 {
		s.crash(t)
	}
	all.Wait()
	sync1(t, f)
	var want strings.Builder
	for range parts {
		for i := range writers {
			want.WriteString(strings.Repeat(string(rune('a'+i)), 100))
		}
	}
	wantKept(t, s, want.String())
	wantHeld(t, c, 0)
}

// A context ends a write that the server does not answer.
func TestContextEndsACall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	_, c := newFake(t, Config{}, map[nfs3.Proc]func(nfs3.Codec) nfs3.Codec{
		nfs3.ProcWrite: func(nfs3.Codec) nfs3.Codec {
			cancel()
			<-release
			return nil
		},
	})
	f := openFake(t, c)
	_, err := f.WithContext(ctx).WriteAt([]byte("x"), 0)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(release)
}

// What is written while a COMMIT is under way is not settled by it, though it goes on
// where the rest ends.
func TestCommitSettlesWhatWasThere(t *testing.T) {
	_, c := newFake(t, Config{}, nil)
	in := c.acquire(fakeHandle)
	defer c.release(in)
	v := nfs3.Verifier{1}
	c.hold(in, []extent{{off: 0, data: []byte("one"), verifier: v}}, 0)
	end, _ := in.seal()
	c.hold(in, []extent{{off: 3, data: []byte("two"), verifier: v}}, 0)
	if !in.settle(c, end, v) || len(in.pending) != 1 || string(in.pending[0].data) != "two" {
		t.Errorf("%+v is pending", in.pending)
	}
	wantHeld(t, c, 3)
	if in.settle(c, in.next, nfs3.Verifier{2}) {
		t.Error("another server has settled it")
	}
	c.hold(in, []extent{{off: 6, data: []byte("three"), verifier: v}}, 0)
	if len(in.pending) != 1 || string(in.pending[0].data) != "twothree" {
		t.Errorf("%+v is pending", in.pending)
	}
}

// Nobody writes while older data is written again: that would come after newer data.
func TestNobodyWritesMeanwhile(t *testing.T) {
	var c *Client
	writes := 0
	s, c := newFake(t, Config{}, map[nfs3.Proc]func(nfs3.Codec) nfs3.Codec{
		nfs3.ProcWrite: func(nfs3.Codec) nfs3.Codec {
			if writes++; writes == 1 {
				return nil
			}
			if in := c.opened(fakeHandle); in.writes.TryRLock() {
				t.Error("somebody could write")
			}
			return nil
		},
	})
	f := openFake(t, c)
	write(t, f, "old", 0)
	s.crash(t)
	sync1(t, f)
	if n := s.count(nfs3.ProcWrite); n != 2 {
		t.Errorf("%d writes", n)
	}
	c.release(f.in)
}
