package nfsd

import (
	"context"
	"encoding/binary"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/vfs"
)

// Cookies of what filesystems do not list.
const (
	cookieDot    = 1
	cookieDotDot = 2
)

// listingMax is how many bytes of a directory one call lists at most.
const listingMax = 1 << 20

// listing returns the verifier of cookies of an export. Those of a filesystem are good
// for as long as the filesystem is, so that it only tells cookies from those of others.
func (x *export) listing() (v nfs3.Verifier) {
	binary.BigEndian.PutUint32(v[:], x.number)
	copy(v[4:], "list")
	return v
}

// list lists a directory behind a cookie as long as add takes the entries, and returns
// whether that was all. An entry has a handle and attributes if plus is set.
func (dir *object) list(ctx context.Context, cookie uint64, verifier nfs3.Verifier, plus bool, add func(vfs.Entry) bool) (bool, error) {
	if err := dir.directory(modeRead); err != nil {
		return false, err
	}
	has, err := dir.access(ctx)
	if err != nil {
		return false, err
	}
	if has&vfs.AccessRead == 0 {
		return false, nfs3.ErrAcces
	}
	if cookie != 0 && verifier != dir.x.listing() {
		return false, nfs3.ErrBadCookie
	}
	plus = plus && has&vfs.AccessExec != 0 // or else names are all there is to see
	if cookie == 0 {
		e := vfs.Entry{Name: ".", FileID: dir.attr.FileID, Cookie: cookieDot}
		if plus {
			e.Handle, e.Attr = dir.h, &dir.attr
		}
		if !add(e) {
			return false, nil
		}
	}
	if cookie <= cookieDot {
		h, attr, err := dir.x.FS.Lookup(ctx, dir.h, "..")
		if err != nil {
			return false, err
		}
		e := vfs.Entry{Name: "..", FileID: attr.FileID, Cookie: cookieDotDot}
		if plus {
			e.Handle, e.Attr = h, &attr
		}
		if !add(e) {
			return false, nil
		}
	}
	if cookie <= cookieDotDot {
		cookie = 0
	}
	return dir.x.FS.ReadDir(dir.as(ctx), dir.h, cookie, plus, add)
}

// readDir is READDIR (RFC 1813 §3.3.16).
func (s *Server) readDir(ctx context.Context, c *call, a *nfs3.ReadDirArgs, r *nfs3.ReadDirRes) error {
	dir, err := s.object(ctx, c, &a.Dir)
	if err != nil {
		return err
	}
	r.Dir, r.Verifier = dir.present(&dir.attr), dir.x.listing()
	left := int(min(a.Count, listingMax)) - r.Size()
	r.EOF, err = dir.list(ctx, a.Cookie, a.Verifier, false, func(v vfs.Entry) bool {
		e := nfs3.Entry{FileID: v.FileID, Name: v.Name, Cookie: v.Cookie}
		if left -= e.Size(); left < 0 {
			return false
		}
		r.Entries = append(r.Entries, e)
		return true
	})
	if err == nil && len(r.Entries) == 0 && left < 0 {
		return nfs3.ErrTooSmall
	}
	return err
}

// readDirPlus is READDIRPLUS (§3.3.17). There is at least one entry, however small
// DirCount is.
func (s *Server) readDirPlus(ctx context.Context, c *call, a *nfs3.ReadDirPlusArgs, r *nfs3.ReadDirPlusRes) error {
	dir, err := s.object(ctx, c, &a.Dir)
	if err != nil {
		return err
	}
	r.Dir, r.Verifier = dir.present(&dir.attr), dir.x.listing()
	left := int(min(a.MaxCount, listingMax)) - r.Size()
	names := int(min(a.DirCount, listingMax))
	r.EOF, err = dir.list(ctx, a.Cookie, a.Verifier, true, func(v vfs.Entry) bool {
		e := nfs3.EntryPlus{Entry: nfs3.Entry{FileID: v.FileID, Name: v.Name, Cookie: v.Cookie}}
		if v.Attr != nil {
			e.Attr = dir.present(v.Attr)
			if h, err := s.handle(dir.x, v.Handle); err == nil {
				e.Handle = nfs3.PostOpHandle{Present: true, Handle: h}
			}
		}
		left -= e.Size()
		names -= e.Entry.Size()
		if left < 0 || names < 0 && len(r.Entries) > 0 {
			return false
		}
		r.Entries = append(r.Entries, e)
		return true
	})
	if err == nil && len(r.Entries) == 0 && left < 0 {
		return nfs3.ErrTooSmall
	}
	return err
}
