package nfstest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"urnic/ulp/nfs"
)

// A Mount is what the workload is done on.
type Mount struct {
	// Dial mounts the tree, each time anew.
	Dial func(ctx context.Context) (*nfs.Client, error)

	// Restart kills the server, so that what it has in memory only is lost, and starts
	// it again. Clients of Dial must be patient enough. nil if the server can't be
	// killed.
	Restart func(ctx context.Context) error

	// FileSize is the length of large files, in bytes; 0 stands for 64 MiB.
	FileSize int64
	// Names is how many a large directory has; 0 stands for 2,000.
	Names int

	// Lacks are what the server can't do.
	Lacks Feature
}

// A Feature is something that not all servers can do.
type Feature uint

// What servers may lack.
const (
	HardLinks   Feature = 1 << iota
	Symlinks            // with any target
	FIFOs               //
	AccessTimes         // that can be set apart from those of content
	Directories         // whose listing stays valid while they change
	Identity            // files that are renamed keep their handles
	Restarts            // while it is used
	Statuses            // that tell what is wrong with a call
	Statistics          // of the filesystem
	Forgetting          // at once what is removed, also while its handle is in use
)

// A world is one subtest's.
type world struct {
	*testing.T
	Mount
	ctx context.Context
	c   *nfs.Client
	dir string
}

// Run does the whole workload.
func Run(t *testing.T, m Mount) {
	if m.FileSize == 0 {
		m.FileSize = 64 << 20
	}
	if m.Names == 0 {
		m.Names = 2000
	}
	if m.Restart == nil {
		m.Lacks |= Restarts
	}
	for _, test := range []struct {
		name  string
		needs Feature
		do    func(*world)
	}{
		{"tree", 0, tree},
		{"large file", 0, largeFile},
		{"parts of files", 0, parts},
		{"small directory", 0, smallDirectory},
		{"large directory", 0, largeDirectory},
		{"removal while listing", Directories, removal},
		{"rename", 0, rename},
		{"handles", Identity, handles},
		{"symbolic links", Symlinks, symlinks},
		{"hard links", HardLinks, hardLinks},
		{"truncate", 0, truncate},
		{"sparse file", 0, sparse},
		{"attributes", 0, attributes},
		{"times", 0, times},
		{"FIFO", FIFOs, fifo},
		{"exclusive creation", 0, exclusive},
		{"errors", Statuses, mistakes},
		{"append", 0, appends},
		{"concurrent writers", 0, writers},
		{"file system", Statistics, statfs},
		{"io/fs", 0, ioFS},
		{"mounted again", 0, remount},
		{"server killed under load", Restarts, killed},
	} {
		if test.needs&m.Lacks != 0 {
			t.Logf("%s is left out, as Mount.Lacks wants it: the server can't do that", test.name)
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			w := &world{T: t, Mount: m, ctx: t.Context()}
			w.c = w.dial()
			w.dir = fmt.Sprintf("nfstest-%x", []byte(test.name))
			w.must(w.c.RemoveAll(w.ctx, w.dir))
			w.must(w.c.Mkdir(w.ctx, w.dir, 0o755))
			test.do(w)
			w.must(w.c.RemoveAll(w.ctx, w.dir))
		})
	}
}

// dial mounts the tree until the subtest ends.
func (w *world) dial() *nfs.Client {
	w.Helper()
	c, err := w.Dial(w.ctx)
	w.must(err)
	w.Cleanup(func() {
		if err := c.Close(); err != nil {
			w.Errorf("the client does not close: %v", err)
		}
	})
	return c
}

// must ends the subtest if there is an error.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// fails checks that there is an error of a kind.
func (w *world) fails(err, target error) {
	w.Helper()
	if !errors.Is(err, target) {
		w.Errorf("got %v, want %v", err, target)
	}
}

// path returns a path in the subtest's directory.
func (w *world) path(name string) string { return w.dir + "/" + name }
