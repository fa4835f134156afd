package nfstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"urnic/ulp/nfs"
)

// remount checks that what one mount has done is there for the next one.
func remount(w *world) {
	first, err := w.Dial(w.ctx)
	w.must(err)
	w.must(first.MkdirAll(w.ctx, w.path("a/b"), 0o755))
	data := pattern(9).data(200_000, 0)
	w.must(first.WriteFile(w.ctx, w.path("a/b/f"), data, 0o644))
	w.must(first.Close())
	if _, err := first.Stat(w.ctx, w.dir); err == nil {
		w.Error("a client that was closed still works")
	}
	w.holds(w.dial(), w.path("a/b/f"), data)
}

// killed kills the server three times while writers continue: nothing fails, and in the end
// all is there that was written.
func killed(w *world) {
	const count, part = 4, 96 << 10
	var parts atomic.Int64 // that were written
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	done := make([]int, count)
	var all sync.WaitGroup
	for i := range count {
		c := w.dial()
		all.Go(func() {
			n, err := w.load(ctx, c, i, part, &parts)
			if err != nil {
				w.Errorf("writer %d: %v", i, err)
			}
			done[i] = n
		})
	}
	for range 3 {
		// Each time, writers have got on, and are in the middle of something.
		for from := parts.Load(); parts.Load() < from+20 && !w.Failed(); {
			w.must(w.c.Null(w.ctx))
		}
		w.must(w.Restart(w.ctx))
	}
	for from := parts.Load(); parts.Load() < from+20 && !w.Failed(); {
		w.must(w.c.Null(w.ctx))
	}
	stop()
	all.Wait()
	other := w.dial()
	for i, n := range done {
		w.holds(other, w.path(fmt.Sprintf("writer%d/data", i)), pattern(100+i).data(n*part, 0))
		if names := w.names(other, w.path(fmt.Sprintf("writer%d/names", i))); len(names) != n {
			w.Errorf("writer %d has made %d names of %d", i, len(names), n)
		}
	}
}

// load writes parts of a file, and makes a name for each, until the context ends.
func (w *world) load(ctx context.Context, c *nfs.Client, i, part int, parts *atomic.Int64) (n int, err error) {
	dir := w.path(fmt.Sprintf("writer%d", i))
	if err := c.MkdirAll(w.ctx, dir+"/names", 0o755); err != nil {
		return 0, err
	}
	f, err := c.Create(w.ctx, dir+"/data")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	p := make([]byte, part)
	for ; ctx.Err() == nil; n++ {
		off := int64(n) * int64(part)
		pattern(100+i).fill(p, off)
		if _, err := f.WriteAt(p, off); err != nil {
			return n, err
		}
		if n%8 == 7 {
			if err := f.Sync(); err != nil {
				return n, err
			}
		}
		if _, err := f.ReadAt(p, off); err != nil {
			return n, err
		}
		if k := differ(p, pattern(100+i).data(part, off)); k < part {
			return n, fmt.Errorf("part %d differs at byte %d after it was written", n, k)
		}
		g, err := c.OpenFile(w.ctx, fmt.Sprintf("%s/names/%d", dir, n), os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return n, err
		}
		if err := g.Close(); err != nil {
			return n, err
		}
		parts.Add(1)
	}
	return n, nil
}
