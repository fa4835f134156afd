package nfsbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"urnic/ulp/nfs"
)

// A Test is one that can be measured.
type Test string

// The tests.
const (
	Write  Test = "write"  // a file from its beginning to its end, with a COMMIT
	Read   Test = "read"   // the same
	Random Test = "random" // short reads anywhere in the file
	Null   Test = "null"   // calls that do nothing
)

// Tests are all of them, in the order in which they are done.
var Tests = []Test{Write, Read, Random, Null}

// Options say what is measured.
type Options struct {
	// Dial mounts the tree, for clients that move so many bytes by one call, with so
	// many calls of a transfer outstanding.
	Dial func(ctx context.Context, size, depth int) (*nfs.Client, error)

	Dir      string // where the file is made and removed
	Tests    []Test
	Sizes    []int // bytes of one READ or WRITE
	Depths   []int // calls of one transfer outstanding
	Callers  []int // who read at random, or do nothing, at a time
	Short    int   // bytes of a read at random
	FileSize int64
	Duration time.Duration // of a round
	Rounds   int           // of which the median counts

	Begin  func()       // a result is being measured
	Result func(Result) // it is there
}

// A Result is what came of one test.
type Result struct {
	Test    Test    `json:"test"`
	Size    int     `json:"size,omitempty"`    // bytes of a call's data
	Depth   int     `json:"depth,omitempty"`   // calls of a transfer outstanding
	Callers int     `json:"callers,omitempty"` // at a time
	Calls   float64 `json:"calls_per_second"`  // COMMITs not counted
	Bytes   float64 `json:"bytes_per_second,omitempty"`

	Latency *Latency  `json:"latency_ns,omitempty"` // of random reads and null calls
	Samples []float64 `json:"samples"`              // of each round: bytes a second, or calls
}

// A Latency says how long calls took, in nanoseconds.
type Latency struct {
	P50  int64 `json:"p50"`
	P99  int64 `json:"p99"`
	P999 int64 `json:"p99_9"`
	Max  int64 `json:"max"`
}

// Run measures. It returns what there is when something goes wrong, too.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	o.Rounds = max(1, o.Rounds)
	b := &bench{Options: o, name: fmt.Sprintf("%s/.urnic-bench-%016x", o.Dir, rand.Uint64())}
	c, err := o.Dial(ctx, 1<<20, 4)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if slices.ContainsFunc(o.Tests, func(t Test) bool { return t != Null }) {
		defer func() {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			err = errors.Join(err, c.RemoveAll(clean, b.name))
		}()
		if err := b.make(ctx, c); err != nil {
			return nil, err
		}
	}
	for _, t := range Tests {
		if !slices.Contains(o.Tests, t) {
			continue
		}
		if err := b.test(ctx, t); err != nil {
			return b.results, fmt.Errorf("%s: %w", t, err)
		}
	}
	return b.results, nil
}

type bench struct {
	Options
	name    string
	data    []byte // what the file holds
	results []Result
}

// make makes the file.
func (b *bench) make(ctx context.Context, c *nfs.Client) error {
	b.data = make([]byte, b.FileSize)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(b.data) // never fails
	return c.WriteFile(ctx, b.name, b.data, 0o600)
}

func (b *bench) test(ctx context.Context, t Test) error {
	if t == Random || t == Null {
		for _, n := range b.Callers {
			if err := b.measure(ctx, Result{Test: t, Callers: n}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, size := range b.Sizes {
		for _, depth := range b.Depths {
			if err := b.measure(ctx, Result{Test: t, Size: size, Depth: depth}); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure measures one result.
func (b *bench) measure(ctx context.Context, r Result) (err error) {
	if b.Begin != nil {
		b.Begin()
	}
	size, depth := r.Size, r.Depth
	if size == 0 {
		size, depth = 1<<20, 4
	}
	c, err := b.Dial(ctx, size, depth)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	round, check := b.short(c, &r), func() error { return nil }
	if r.Depth > 0 {
		long, err := b.long(ctx, c, &r)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, long.f.Close()) }()
		round, check = long.round, long.check
	}
	for range b.Rounds {
		sample, err := round(ctx)
		if err != nil {
			return err
		}
		r.Samples = append(r.Samples, sample)
		if err := check(); err != nil {
			return err
		}
	}
	median := Median(r.Samples)
	switch {
	case r.Depth > 0:
		r.Bytes, r.Calls = median, median/float64(r.Size)
	default:
		r.Calls, r.Bytes = median, median*float64(r.Size)
	}
	b.results = append(b.results, r)
	if b.Result != nil {
		b.Result(r)
	}
	return nil
}

// Median returns the median of the samples of rounds; of none, 0.
func Median(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(samples))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// A long is a test of long transfers.
type long struct {
	*bench
	f     *nfs.File
	write bool
	into  []byte
}

func (b *bench) long(ctx context.Context, c *nfs.Client, r *Result) (*long, error) {
	f, err := c.OpenFile(ctx, b.name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	read, write := c.Sizes()
	l := &long{bench: b, f: f.WithContext(ctx), write: r.Test == Write, into: make([]byte, len(b.data))}
	if r.Size = read; l.write { // the server may take less
		r.Size = write
	}
	return l, nil
}

// round moves the file again and again. It returns bytes a second.
func (l *long) round(ctx context.Context) (float64, error) {
	begun := time.Now()
	for moved := 0; ; {
		var err error
		if l.write {
			if _, err = l.f.WriteAt(l.data, 0); err == nil {
				err = l.f.Sync()
			}
		} else if _, err = l.f.ReadAt(l.into, 0); err == io.EOF { //nolint:errorlint // one that is wrapped is a lost connection
			err = nil
		}
		if err != nil {
			return 0, err
		}
		moved += len(l.data)
		if took := time.Since(begun); took >= l.Duration || ctx.Err() != nil {
			return float64(moved) / took.Seconds(), ctx.Err()
		}
	}
}

// check compares what was moved with what it should be.
func (l *long) check() error {
	if l.write {
		if _, err := l.f.ReadAt(l.into, 0); err != nil {
			return err
		}
	}
	if !slices.Equal(l.into, l.data) {
		return errors.New("what was read is not what was written")
	}
	clear(l.into)
	return nil
}

// short returns a round of calls that are made by several callers, each one at a time. It
// returns calls a second.
func (b *bench) short(c *nfs.Client, r *Result) func(context.Context) (float64, error) {
	if r.Test == Random {
		r.Size = b.Short
	}
	var all *hdrhistogram.Histogram
	return func(ctx context.Context) (float64, error) {
		limited, cancel := context.WithTimeout(ctx, b.Duration)
		defer cancel()
		var mu sync.Mutex
		var errs []error
		var calls atomic.Int64
		var callers sync.WaitGroup
		begun := time.Now()
		for range r.Callers {
			callers.Go(func() {
				h := hdrhistogram.New(1, int64(time.Minute), 3)
				n, err := b.caller(ctx, limited, c, r.Test, h)
				calls.Add(n)
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
				if all == nil {
					all = h
				} else {
					all.Merge(h)
				}
			})
		}
		callers.Wait()
		took := time.Since(begun)
		r.Latency = &Latency{P50: all.ValueAtPercentile(50), P99: all.ValueAtPercentile(99), P999: all.ValueAtPercentile(99.9), Max: all.Max()}
		return float64(calls.Load()) / took.Seconds(), errors.Join(errs...)
	}
}

// caller makes calls until the second context ends.
func (b *bench) caller(ctx, limited context.Context, c *nfs.Client, t Test, h *hdrhistogram.Histogram) (n int64, err error) {
	call := func() error { return c.Null(ctx) }
	if t == Random {
		f, err := c.Open(ctx, b.name)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		f = f.WithContext(ctx)
		p := make([]byte, b.Short)
		places := int64(len(b.data)/b.Short) - 1
		call = func() error {
			off := rand.Int64N(max(1, places)) * int64(b.Short)
			if _, err := f.ReadAt(p, off); err != nil {
				return err
			}
			if n%64 == 0 && !slices.Equal(p, b.data[off:off+int64(b.Short)]) {
				return errors.New("what was read is not what was written")
			}
			return nil
		}
	}
	for limited.Err() == nil {
		begun := time.Now()
		if err := call(); err != nil {
			return n, err
		}
		_ = h.RecordValue(min(max(int64(time.Since(begun)), 1), int64(time.Minute))) // which it has room for
		n++
	}
	return n, ctx.Err()
}
