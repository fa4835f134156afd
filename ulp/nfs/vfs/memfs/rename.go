package memfs

import (
	"context"
	"errors"

	"urnic/ulp/nfs/vfs"
)

// Locks are taken in this order, so that nobody waits for whoever waits for them:
//
//   - move, by whoever moves something to another directory: one at a time;
//   - mu of a directory before that of anything in it, however deep; of two directories of
//     which neither holds the other, in any order, but only with move held;
//   - io of a file before its mu; its mu last, never two files'.

// Rename gives a file another name. What had that name before is replaced in the listing
// of its directory too, at the same place.
func (fs *FS) Rename(ctx context.Context, from vfs.Handle, name string, to vfs.Handle, newName string) error {
	a, err := fs.directory(ctx, from)
	if err != nil {
		return err
	}
	b, err := fs.directory(ctx, to)
	if err == nil {
		err = vfs.CheckName(name, MaxName)
	}
	if err == nil {
		err = vfs.CheckName(newName, MaxName)
	}
	if err != nil {
		return err
	}
	if a == b {
		a.mu.Lock()
		defer a.mu.Unlock()
	} else {
		fs.move.Lock()
		defer fs.move.Unlock()
		outer, inner := a, b
		if b.contains(a) {
			outer, inner = b, a
		}
		outer.mu.Lock()
		defer outer.mu.Unlock()
		inner.mu.Lock()
		defer inner.mu.Unlock()
	}
	return fs.rename(a, name, b, newName)
}

// contains says whether d is n or holds it, at any depth. The caller holds move.
func (d *node) contains(n *node) bool {
	for ; n != d; n = n.dir.parent.Load() {
		if n == n.dir.parent.Load() {
			return false
		}
	}
	return true
}

// rename does so with the locks held.
func (fs *FS) rename(a *node, name string, b *node, newName string) error {
	if a.links == 0 || b.links == 0 {
		return vfs.ErrStale
	}
	n := a.dir.child(name)
	if n == nil {
		return vfs.ErrNotExist
	}
	directory := n.dir != nil
	if a != b && directory && n.contains(b) {
		return vfs.ErrInvalid
	}
	old, more := b.dir.names.Get(newName), nameCost(newName)-nameCost(name)
	switch {
	case old != nil && old.Item == n:
		return nil
	case old != nil:
		if err := fs.replace(a, b, old.Item, directory); err != nil {
			return err
		}
	case a != b && directory && b.links >= fs.links:
		return vfs.ErrTooManyLinks
	case more > 0:
		if err := fs.takeBytes(more); err != nil {
			return err
		}
	}
	a.dir.names.Remove(name)
	if old != nil {
		old.Item = n
		fs.giveBytes(nameCost(name))
	} else {
		if more < 0 {
			fs.giveBytes(-more)
		}
		b.dir.names.Add(newName, n)
	}
	if directory && a != b {
		n.dir.parent.Store(b)
		a.links--
		b.links++
	}
	a.changed(true)
	if a != b {
		b.changed(true)
	}
	n.mu.Lock()
	n.changed(false)
	n.mu.Unlock()
	return nil
}

// replace takes its name in b from the target of a rename.
func (fs *FS) replace(a, b, target *node, directory bool) error {
	if directory != (target.dir != nil) {
		return vfs.ErrExist
	}
	// What holds the source is not empty, and its lock may be held.
	if directory && a != b && target.contains(a) {
		return vfs.ErrExist
	}
	gone, err := target.unlink()
	if errors.Is(err, vfs.ErrNotEmpty) {
		return vfs.ErrExist
	}
	if err != nil {
		return err
	}
	fs.names.Add(-1)
	if directory {
		b.links--
	}
	if gone {
		fs.drop(target)
	}
	return nil
}
