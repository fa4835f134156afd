package nfs

import (
	"context"
	"errors"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
)

// A fake is a server with one file, whose handle is that of the root too, that does what
// a test wants. What is written to it is lost when it crashes, unless it was committed.
type fake struct {
	mu       sync.Mutex
	stable   []byte
	memory   []byte // what reads see
	verifier nfs3.Verifier
	calls    map[nfs3.Proc]int
	stables  int // writes that had to be stable

	// instead carries out procedures in place of the fake itself. It returns results, or
	// nil for what the fake says. It is called with the fake locked.
	instead map[nfs3.Proc]func(args nfs3.Codec) nfs3.Codec

	address string
	rpc     *oncrpc.Server
	ended   chan error
}

var fakeHandle = func() nfs3.Handle {
	h, _ := nfs3.MakeHandle("the only file")
	return h
}()

// newFake starts a fake, and dials it.
func newFake(t *testing.T, cfg Config, instead map[nfs3.Proc]func(nfs3.Codec) nfs3.Codec) (*fake, *Client) {
	t.Helper()
	f := &fake{instead: maps.Clone(instead), calls: map[nfs3.Proc]int{}, address: "127.0.0.1:0"}
	f.start(t)
	t.Cleanup(func() { f.stop(t) })
	cfg.Root = &fakeHandle
	cfg.Retry = oncrpc.ClientConfig{Backoff: time.Millisecond, BackoffMost: time.Millisecond}
	_, port, _ := net.SplitHostPort(f.address)
	c, err := Dial(t.Context(), "nfs://127.0.0.1:"+port+"/", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, c
}

func (f *fake) start(t *testing.T) {
	t.Helper()
	procedures := map[uint32]oncrpc.Procedure{}
	for p := nfs3.ProcGetAttr; p < nfs3.Procs; p++ {
		procedures[uint32(p)] = oncrpc.Procedure{Handle: func(_ context.Context, in *oncrpc.Incoming) error {
			args := p.Args()
			if args.Decode(in.Args) != nil || in.Args.End() != nil {
				return nil
			}
			f.carryOut(p, args).Encode(in.Results)
			return nil
		}}
	}
	f.rpc = oncrpc.NewServer(oncrpc.ServerConfig{})
	err := f.rpc.Register(&oncrpc.Program{Number: nfs3.Program, Versions: []oncrpc.ProgramVersion{{Number: 3, Procedures: procedures}}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", f.address)
	if err != nil {
		t.Fatal(err)
	}
	f.address = l.Addr().String()
	f.ended = make(chan error, 1)
	go func(s *oncrpc.Server, ended chan error) { ended <- s.ServeTCP(context.Background(), l) }(f.rpc, f.ended)
}

func (f *fake) stop(t *testing.T) {
	t.Helper()
	if err := f.rpc.Close(); err != nil {
		t.Error(err)
	}
	if err := <-f.ended; !errors.Is(err, oncrpc.ErrClosed) {
		t.Error(err)
	}
}

// crash has the fake forget what is not on stable storage.
func (f *fake) crash(t *testing.T) {
	t.Helper()
	f.stop(t)
	f.mu.Lock()
	f.forget()
	f.mu.Unlock()
	f.start(t)
}

// answer has do answer a procedure's calls from now on, where it returns a result.
func (f *fake) answer(p nfs3.Proc, do func(nfs3.Codec) nfs3.Codec) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.instead == nil {
		f.instead = map[nfs3.Proc]func(nfs3.Codec) nfs3.Codec{}
	}
	f.instead[p] = do
}

func (f *fake) forget() {
	f.memory = append([]byte(nil), f.stable...)
	f.verifier[0]++
}

// kept returns what would survive a crash.
func (f *fake) kept() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.stable)
}

// count returns how many calls of a procedure there were.
func (f *fake) count(p nfs3.Proc) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[p]
}

func (f *fake) attr() nfs3.PostOpAttr {
	return nfs3.PostOpAttr{Present: true, Attr: nfs3.Attr{Type: nfs3.Regular, Mode: 0o644, Links: 1, Size: uint64(len(f.memory))}}
}

func (f *fake) carryOut(p nfs3.Proc, args nfs3.Codec) nfs3.Codec {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[p]++
	if do := f.instead[p]; do != nil {
		if res := do(args); res != nil {
			return res
		}
	}
	switch a := args.(type) {
	case *nfs3.ReadArgs:
		from := min(a.Offset, uint64(len(f.memory)))
		to := min(from+uint64(a.Count), uint64(len(f.memory)))
		return &nfs3.ReadRes{EOF: to == uint64(len(f.memory)), Data: append([]byte(nil), f.memory[from:to]...)}
	case *nfs3.WriteArgs:
		return f.write(a)
	case *nfs3.CommitArgs:
		f.stable = append([]byte(nil), f.memory...)
		return &nfs3.CommitRes{Verifier: f.verifier}
	case *nfs3.SetAttrArgs:
		if a.Attr.Size != nil {
			f.memory = append(f.memory, make([]byte, *a.Attr.Size)...)[:*a.Attr.Size]
			f.stable = append([]byte(nil), f.memory...)
		}
		return &nfs3.WccRes{}
	}
	switch p {
	case nfs3.ProcGetAttr:
		return &nfs3.GetAttrRes{Attr: f.attr().Attr}
	case nfs3.ProcFSInfo:
		return &nfs3.FSInfoRes{ReadMax: 1 << 20, WriteMax: 1 << 20, DirPref: 8192}
	case nfs3.ProcLookup:
		return &nfs3.LookupRes{Object: fakeHandle, Attr: f.attr()}
	case nfs3.ProcCreate:
		return &nfs3.NewRes{Object: nfs3.PostOpHandle{Present: true, Handle: fakeHandle}, Attr: f.attr()}
	}
	res := p.Results()
	if s, ok := res.(nfs3.Result); ok {
		*s.Stat() = nfs3.ErrNotSupp
	}
	return res
}

func (f *fake) write(a *nfs3.WriteArgs) nfs3.Codec {
	end := a.Offset + uint64(len(a.Data))
	if end > uint64(len(f.memory)) {
		f.memory = append(f.memory, make([]byte, end-uint64(len(f.memory)))...)
	}
	copy(f.memory[a.Offset:], a.Data)
	if a.Stable != nfs3.Unstable {
		f.stables++
		f.stable = append([]byte(nil), f.memory...)
	}
	return &nfs3.WriteRes{Count: uint32(len(a.Data)), Committed: a.Stable, Verifier: f.verifier}
}
