package nfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc/xdr"
)

type instead = map[nfs3.Proc]func(nfs3.Codec) nfs3.Codec

// dir makes the fake's file a directory with these entries on one page.
func dir(entries ...nfs3.EntryPlus) instead {
	return instead{
		nfs3.ProcGetAttr: func(nfs3.Codec) nfs3.Codec { return &nfs3.GetAttrRes{Attr: nfs3.Attr{Type: nfs3.Directory}} },
		nfs3.ProcReadDirPlus: func(nfs3.Codec) nfs3.Codec {
			return &nfs3.ReadDirPlusRes{Entries: entries, EOF: true}
		},
	}
}

func named(name string, cookie uint64) nfs3.EntryPlus {
	return nfs3.EntryPlus{Entry: nfs3.Entry{Name: name, Cookie: cookie}}
}

// Names that would lead a program somewhere else are refused.
func TestNamesThatAreNone(t *testing.T) {
	for _, name := range []string{"", "a/b", "/etc/passwd", "../x", "x\x00y"} {
		_, c := newFake(t, Config{}, dir(named("fine", 1), named(name, 2)))
		if entries, err := c.ReadDir(t.Context(), "/"); !errors.Is(err, ErrName) || len(entries) != 0 {
			t.Errorf("%q: %v, %v", name, entries, err)
		}
	}
	_, c := newFake(t, Config{}, dir(named(".", 1), named("..", 2), named("a\nb", 3)))
	if entries, err := c.ReadDir(t.Context(), "/"); err != nil || len(entries) != 1 || entries[0].Name() != "a\nb" {
		t.Errorf("%v, %v", entries, err)
	}
}

// A listing that has no end is given up.
func TestListingWithoutEnd(t *testing.T) {
	for name, page := range map[string][]nfs3.EntryPlus{"nothing": nil, "the same cookie": {named("a", 7)}} {
		s, c := newFake(t, Config{}, instead{
			nfs3.ProcGetAttr:     dir()[nfs3.ProcGetAttr],
			nfs3.ProcReadDirPlus: func(nfs3.Codec) nfs3.Codec { return &nfs3.ReadDirPlusRes{Entries: page} },
		})
		if _, err := c.ReadDir(t.Context(), "/"); !errors.Is(err, ErrServer) {
			t.Errorf("%s: %v", name, err)
		}
		if n := s.count(nfs3.ProcReadDirPlus); n > 2 {
			t.Errorf("%s: %d calls", name, n)
		}
	}
}

// A server without READDIRPLUS is asked by READDIR.
func TestListingWithoutAttributes(t *testing.T) {
	_, c := newFake(t, Config{}, instead{
		nfs3.ProcGetAttr: dir()[nfs3.ProcGetAttr],
		nfs3.ProcReadDir: func(args nfs3.Codec) nfs3.Codec {
			a, _ := args.(*nfs3.ReadDirArgs)
			if a.Cookie == 0 {
				return &nfs3.ReadDirRes{Verifier: nfs3.Verifier{9}, Entries: []nfs3.Entry{{FileID: 1, Name: "b", Cookie: 5}}}
			}
			if a.Cookie != 5 || a.Verifier != (nfs3.Verifier{9}) {
				return &nfs3.ReadDirRes{Status: nfs3.ErrBadCookie}
			}
			return &nfs3.ReadDirRes{Entries: []nfs3.Entry{{FileID: 2, Name: "a", Cookie: 6}}, EOF: true}
		},
	})
	entries, err := c.ReadDir(t.Context(), "/")
	if err != nil || len(entries) != 2 || entries[0].Name() != "a" {
		t.Fatalf("%v, %v", entries, err)
	}
	if info, err := entries[1].Info(); err != nil || info.Name() != "b" || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info, err)
	}
}

// Answers that can't be are errors, and nothing is taken from them.
func TestAnswersThatCannotBe(t *testing.T) {
	read := func(f *File) error { _, err := f.ReadAt(make([]byte, 10), 0); return err }
	write := func(f *File) error { _, err := f.WriteAt(make([]byte, 10), 0); return err }
	for name, tc := range map[string]struct {
		proc nfs3.Proc
		res  nfs3.Codec
		do   func(*File) error
		want error
	}{
		"no data and no end":       {nfs3.ProcRead, &nfs3.ReadRes{}, read, ErrServer},
		"more data than asked for": {nfs3.ProcRead, &nfs3.ReadRes{Data: make([]byte, 12)}, read, xdr.ErrLong},
		"nothing was written":      {nfs3.ProcWrite, &nfs3.WriteRes{Committed: nfs3.FileSync}, write, ErrServer},
		"more was written":         {nfs3.ProcWrite, &nfs3.WriteRes{Count: 11}, write, ErrServer},
		"the end":                  {nfs3.ProcRead, &nfs3.ReadRes{EOF: true}, read, io.EOF},
	} {
		_, c := newFake(t, Config{}, instead{tc.proc: func(nfs3.Codec) nfs3.Codec { return tc.res }})
		if err := tc.do(openFake(t, c)); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, c := newFake(t, Config{Sync: true}, instead{nfs3.ProcWrite: func(nfs3.Codec) nfs3.Codec { return &nfs3.WriteRes{Count: 10} }})
	if err := write(openFake(t, c)); !errors.Is(err, ErrServer) {
		t.Errorf("less stable than asked for: %v", err)
	}
}

// What a server says of sizes is kept within reason.
func TestSizesOfServers(t *testing.T) {
	for _, tc := range []struct{ server, own, want int }{{0, 0, minSize}, {1 << 30, 0, defaultSize}, {65536, 0, 65536}, {65536, 4096, 4096}, {1 << 30, 1 << 30, nfs3.MaxData}} {
		_, c := newFake(t, Config{ReadSize: tc.own, WriteSize: tc.own}, instead{nfs3.ProcFSInfo: func(nfs3.Codec) nfs3.Codec {
			return &nfs3.FSInfoRes{ReadMax: uint32(tc.server), WriteMax: uint32(tc.server)}
		}})
		if r, w := c.Sizes(); r != tc.want || w != tc.want {
			t.Errorf("%d of the server and %d: %d and %d, not %d", tc.server, tc.own, r, w, tc.want)
		}
	}
}

// Symbolic links lead to no place outside, and not on forever.
func TestSymbolicLinks(t *testing.T) {
	target := ""
	s, c := newFake(t, Config{}, instead{
		nfs3.ProcLookup: func(args nfs3.Codec) nfs3.Codec {
			a, _ := args.(*nfs3.NameArgs)
			if path.Base(a.Name) != a.Name || a.Name == "." || a.Name == ".." {
				t.Errorf("the server was asked for %q", a.Name)
			}
			res := &nfs3.LookupRes{Object: fakeHandle, Attr: nfs3.PostOpAttr{Present: true, Attr: nfs3.Attr{Type: nfs3.Directory}}}
			if a.Name == "link" {
				res.Attr.Attr.Type = nfs3.Symlink
			}
			return res
		},
		nfs3.ProcReadLink: func(nfs3.Codec) nfs3.Codec { return &nfs3.ReadLinkRes{Path: []byte(target)} },
	})
	says := func(text string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		target = text
	}
	for _, text := range []string{"../../..", "/", "a/../.."} {
		says(text)
		if _, err := c.Stat(t.Context(), "link"); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]error{
		"link": ErrLoop, "a/link/link": ErrLoop, "": ErrServer, "a\x00b": ErrServer, strings.Repeat("x/", 2048) + "link": nfs3.ErrNameTooLong,
	} {
		says(text)
		if _, err := c.Stat(t.Context(), "link"); !errors.Is(err, want) && !errors.Is(err, xdr.ErrLong) {
			t.Errorf("%.20q: %v, not %v", text, err, want)
		}
	}
	if n := s.count(nfs3.ProcReadLink); n > 200 {
		t.Errorf("%d links were read", n)
	}
}

// A tree that is too deep can't be removed, and ends no program.
func TestTreeWithoutEnd(t *testing.T) {
	s, c := newFake(t, Config{}, instead{
		nfs3.ProcLookup: func(nfs3.Codec) nfs3.Codec {
			return &nfs3.LookupRes{Object: fakeHandle, Attr: nfs3.PostOpAttr{Present: true, Attr: nfs3.Attr{Type: nfs3.Directory}}}
		},
		nfs3.ProcRmdir: func(nfs3.Codec) nfs3.Codec { return &nfs3.WccRes{Status: nfs3.ErrNotEmpty} },
		nfs3.ProcReadDir: func(nfs3.Codec) nfs3.Codec {
			return &nfs3.ReadDirRes{Entries: []nfs3.Entry{{Name: "d", Cookie: 1}}, EOF: true}
		},
	})
	if err := c.RemoveAll(t.Context(), "d"); !errors.Is(err, ErrDepth) {
		t.Errorf("%.200v", err)
	}
	if n := s.count(nfs3.ProcRmdir); n > depthMost+2 {
		t.Errorf("%d calls", n)
	}
}

// A server that is not ready is asked again.
func TestJukebox(t *testing.T) {
	times := 0
	s, c := newFake(t, Config{}, instead{nfs3.ProcGetAttr: func(nfs3.Codec) nfs3.Codec {
		if times++; times < 2 {
			return &nfs3.GetAttrRes{Status: nfs3.ErrJukebox}
		}
		return nil
	}})
	if _, err := c.Stat(t.Context(), "."); err != nil || s.count(nfs3.ProcGetAttr) != 2 {
		t.Errorf("%v after %d calls", err, s.count(nfs3.ProcGetAttr))
	}
}

// A file that is created by O_EXCL is asked for with a verifier, and by GUARDED of servers
// that know none (RFC 1813 §3.3.8).
func TestExclusiveCreate(t *testing.T) {
	var modes []nfs3.CreateMode
	s, c := newFake(t, Config{}, instead{
		nfs3.ProcLookup: func(nfs3.Codec) nfs3.Codec { return &nfs3.LookupRes{Status: nfs3.ErrNoEnt} },
		nfs3.ProcCreate: func(args nfs3.Codec) nfs3.Codec {
			a, _ := args.(*nfs3.CreateArgs)
			if modes = append(modes, a.Mode); a.Mode == nfs3.Exclusive {
				if a.Verifier == (nfs3.Verifier{}) {
					t.Error("there is no verifier")
				}
				return &nfs3.NewRes{Status: nfs3.ErrNotSupp}
			}
			return nil
		},
	})
	f, err := c.OpenFile(t.Context(), "f", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || len(modes) != 2 || modes[0] != nfs3.Exclusive || modes[1] != nfs3.Guarded {
		t.Fatalf("%v, %v", modes, err)
	}
	if err := f.Close(); err != nil { // there is nothing to commit
		t.Error(err)
	}
}

// Flags, offsets and files that are closed are checked before anything is sent.
func TestMisuse(t *testing.T) {
	_, c := newFake(t, Config{}, nil)
	f := openFake(t, c)
	_, err1 := f.ReadAt(make([]byte, 1), -1)
	_, err2 := f.WriteAt(make([]byte, 1), -1)
	_, err3 := f.Seek(-1, io.SeekStart)
	_, err4 := f.Seek(0, 9)
	for i, err := range []error{err1, err2, err3, err4, f.Truncate(-1), c.Truncate(t.Context(), "f", -1), c.Mknod(t.Context(), "f", 0, 0, 0), c.Symlink(t.Context(), "", "x")} {
		if !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	_, err1 = f.Read(nil)
	_, err2 = f.Write(nil)
	_, err3 = f.Stat()
	for i, err := range []error{err1, err2, err3, f.Sync(), f.Close(), f.Truncate(0), f.Chmod(0)} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%d: %v", i, err)
		}
	}
	g, err := c.OpenHandle(t.Context(), fakeHandle, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Write([]byte("x")); !errors.Is(err, errBadMode) {
		t.Error(err)
	}
	if _, err := g.ReadDir(0); !errors.Is(err, nfs3.ErrNotDir) {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
