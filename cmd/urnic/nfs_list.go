package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"urnic/internal/host/printable"
	"urnic/ulp/nfs"
)

// treeDepthMost is how deeply directories may lie in each other: a server may have each lie
// in itself.
const treeDepthMost = 1024

// A lister lists directories of a server for commands that go down into them, and keeps no
// more than nfs.ListingMost bytes of all listings that it is in the middle of.
type lister struct {
	c        *nfs.Client
	unsorted bool // each page is handled as it comes, and nothing is kept

	held, depth int
}

// each calls do for the entries of a directory, sorted by name, until it returns an error.
func (l *lister) each(ctx context.Context, name string, do func(e *nfs.DirEntry) error) error {
	if l.depth == treeDepthMost {
		return fmt.Errorf("%s: %w: %d", printable.Name(name), nfs.ErrDepth, treeDepthMost)
	}
	l.depth++
	held := l.held
	defer func() {
		l.depth--
		l.held = held
	}()
	var entries []*nfs.DirEntry
	for e, err := range l.c.Entries(ctx, name) {
		if err != nil {
			return err
		}
		if l.unsorted {
			if err := do(e); err != nil {
				return err
			}
			continue
		}
		if l.held += e.Memory(); l.held > nfs.ListingMost {
			return fmt.Errorf("%s: %w to be sorted; `urnic nfs ls -U` lists it as it is", printable.Name(name), nfs.ErrEntries)
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b *nfs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if err := do(e); err != nil {
			return err
		}
	}
	return nil
}

// failures are errors that do not end a command. It keeps the first of them.
type failures struct {
	errs []error
	more int
}

// failuresMost is how many errors are shown of a command.
const failuresMost = 100

func (f *failures) add(err error) {
	switch {
	case err == nil:
	case len(f.errs) < failuresMost:
		f.errs = append(f.errs, err)
	default:
		f.more++
	}
}

func (f *failures) err() error {
	err := errors.Join(f.errs...)
	if f.more > 0 {
		err = errors.Join(err, fmt.Errorf("and %d more errors", f.more))
	}
	return err
}
