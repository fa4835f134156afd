package vfstest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"urnic/ulp/nfs/vfs"
)

// Agree carries out the same n operations, drawn with the seed, on two empty FSs, and
// fails if they differ in what they say, or in what is there in the end. Both must be able
// to do the same.
func Agree(t *testing.T, a, b vfs.FS, seed uint64, n int) {
	m := &agree{T: t, fs: [2]vfs.FS{a, b}, rnd: rand.New(rand.NewPCG(seed, 1813)), can: a.Features()}
	m.can.SetOwner = m.can.SetOwner && b.Features().SetOwner
	m.files = [][2]vfs.Handle{{a.Root(), b.Root()}}
	for i := range n {
		what := m.step()
		if t.Failed() {
			t.Fatalf("operation %d of seed %d: %s", i, seed, what)
		}
	}
	m.compare([2]vfs.Handle{a.Root(), b.Root()}, "/", make(map[uint64]uint64))
}

type agree struct {
	*testing.T
	fs    [2]vfs.FS
	rnd   *rand.Rand
	can   vfs.Features
	files [][2]vfs.Handle // all that were ever there
}

// outcome is what is compared. Handles and file numbers are each FS's own.
type outcome struct {
	err     string
	attr    string
	content []byte
	more    string
}

// errName returns which error it is.
func errName(err error) string {
	for _, e := range []error{
		vfs.ErrStale, vfs.ErrNotExist, vfs.ErrExist, vfs.ErrNotOwner, vfs.ErrAccess, vfs.ErrNotDirectory,
		vfs.ErrIsDirectory, vfs.ErrNotEmpty, vfs.ErrInvalid, vfs.ErrNameTooLong, vfs.ErrTooBig,
		vfs.ErrTooManyLinks, vfs.ErrNotSupported,
	} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	if err != nil {
		return "another: " + err.Error()
	}
	return ""
}

// show writes of attributes what both must say.
func (m *agree) show(a vfs.Attr) string {
	s := fmt.Sprintf("type %d, mode %o, device %d:%d", a.Type, a.Mode, a.Major, a.Minor)
	if a.Type != vfs.Directory {
		s = fmt.Sprintf("%s, %d links, %d bytes", s, a.Links, a.Size)
	}
	if m.can.SetOwner {
		s = fmt.Sprintf("%s, of %d:%d", s, a.UID, a.GID)
	}
	return s
}

// both does the same on both, and compares. Two new handles are kept.
func (m *agree) both(do func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error)) {
	m.Helper()
	var h [2]vfs.Handle
	var o [2]outcome
	for i, fs := range m.fs {
		var a vfs.Attr
		var err error
		h[i], a, o[i], err = do(fs, i)
		o[i].err = errName(err)
		if err == nil && a.Type != 0 {
			o[i].attr = m.show(a)
		}
	}
	if o[0].err != o[1].err || o[0].attr != o[1].attr || o[0].more != o[1].more || !bytes.Equal(o[0].content, o[1].content) {
		m.Errorf("%+v, and the other %+v", o[0], o[1])
	}
	if h[0] != "" && h[1] != "" && !slices.Contains(m.files, h) {
		m.files = append(m.files, h)
	}
}

func (m *agree) name() string { return string(rune('a' + m.rnd.IntN(5))) }

// file draws a file: often one of the latest.
func (m *agree) file() [2]vfs.Handle {
	if m.rnd.IntN(4) == 0 {
		return m.files[0]
	}
	last := min(len(m.files), 30)
	return m.files[len(m.files)-1-m.rnd.IntN(last)]
}

func (m *agree) set() vfs.SetAttr {
	var s vfs.SetAttr
	if m.rnd.IntN(2) == 0 {
		s.Mode = new(m.rnd.Uint32() & 0o777)
		if !m.can.SetOwner {
			*s.Mode |= 0o700 // who serves it needs it, most likely
		}
	}
	if m.can.SetOwner && m.rnd.IntN(3) == 0 {
		s.UID, s.GID = new(m.rnd.Uint32N(10)), new(m.rnd.Uint32N(10))
		s.Mode = new(uint32(0o644))
	}
	if m.rnd.IntN(3) == 0 {
		s.Mtime = new(time.Unix(m.rnd.Int64N(1<<31), 5000))
	}
	return s
}

// step does one operation, and says which.
func (m *agree) step() string {
	ctx := m.Context()
	f, g, name, other, s := m.file(), m.file(), m.name(), m.name(), m.set()
	off, size := uint64(m.rnd.IntN(1<<m.rnd.IntN(19))), m.rnd.IntN(1<<m.rnd.IntN(17))
	none := func(err error) (vfs.Handle, vfs.Attr, outcome, error) { return "", vfs.Attr{}, outcome{}, err }
	plain := func(h vfs.Handle, a vfs.Attr, err error) (vfs.Handle, vfs.Attr, outcome, error) {
		return h, a, outcome{}, err
	}
	type result = func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error)
	ops := []struct {
		name string
		do   result
	}{
		{"Create", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			return plain(fs.Create(ctx, f[i], name, s))
		}},
		{"Mkdir", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			return plain(fs.Mkdir(ctx, f[i], name, s))
		}},
		{"Symlink", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			return plain(fs.Symlink(ctx, f[i], name, other, vfs.SetAttr{}))
		}},
		{"FIFO", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			return plain(fs.Mknod(ctx, f[i], name, vfs.FIFO, 0, 0, s))
		}},
		{"Lookup", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			return plain(fs.Lookup(ctx, f[i], name))
		}},
		{"Lookup ..", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			return plain(fs.Lookup(ctx, f[i], ".."))
		}},
		{"GetAttr", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			a, err := fs.GetAttr(ctx, f[i])
			return plain("", a, err)
		}},
		{"SetAttr", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			if a, err := fs.GetAttr(ctx, f[i]); err == nil && a.Type == vfs.Symlink {
				s.Mode = nil
			}
			a, err := fs.SetAttr(ctx, f[i], s)
			return plain("", a, err)
		}},
		{"truncate", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			a, err := fs.SetAttr(ctx, f[i], vfs.SetAttr{Size: &off})
			return plain("", a, err)
		}},
		{"Write", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			p := make([]byte, size)
			for i := range p {
				p[i] = byte(int(off)*7 + i*13)
			}
			return none(fs.Write(ctx, f[i], p, off, false))
		}},
		{"Read", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			p := make([]byte, size)
			n, end, err := fs.Read(ctx, f[i], p, off)
			return "", vfs.Attr{}, outcome{content: p[:n], more: fmt.Sprint(end)}, err
		}},
		{"ReadLink", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			to, err := fs.ReadLink(ctx, f[i])
			return "", vfs.Attr{}, outcome{more: to}, err
		}},
		{"Remove", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) { return none(fs.Remove(ctx, f[i], name)) }},
		{"Rmdir", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) { return none(fs.Rmdir(ctx, f[i], name)) }},
		{"Rename", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			return none(fs.Rename(ctx, f[i], name, g[i], other))
		}},
		{"Link", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			a, err := fs.Link(ctx, f[i], g[i], name)
			return plain("", a, err)
		}},
		{"ReadDir", func(fs vfs.FS, i int) (vfs.Handle, vfs.Attr, outcome, error) {
			var names []string
			end, err := fs.ReadDir(ctx, f[i], 0, true, func(e vfs.Entry) bool {
				names = append(names, fmt.Sprintf("%q %s", e.Name, m.show(*e.Attr)))
				return true
			})
			slices.Sort(names)
			return "", vfs.Attr{}, outcome{more: fmt.Sprint(end, names)}, err
		}},
	}
	op := ops[m.rnd.IntN(len(ops))]
	m.both(op.do)
	return fmt.Sprintf("%s of file %d, %q, %d at %d, with file %d, %q",
		op.name, slices.Index(m.files, f), name, size, off, slices.Index(m.files, g), other)
}

// compare compares two directories and all in them. ids are the numbers of files of the
// one in the other.
func (m *agree) compare(dir [2]vfs.Handle, path string, ids map[uint64]uint64) {
	var lists [2][]vfs.Entry
	for i, fs := range m.fs {
		s := &suite{T: m.T, fs: fs, ctx: m.Context()}
		lists[i] = s.listing(dir[i], 3, true)
		slices.SortFunc(lists[i], func(a, b vfs.Entry) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	}
	if len(lists[0]) != len(lists[1]) {
		m.Fatalf("%s has %d names, and the other %d", path, len(lists[0]), len(lists[1]))
	}
	for i, a := range lists[0] {
		b := lists[1][i]
		if a.Name != b.Name || m.show(*a.Attr) != m.show(*b.Attr) {
			m.Fatalf("%s%s: %s, and the other %s: %s", path, a.Name, m.show(*a.Attr), b.Name, m.show(*b.Attr))
		}
		if id, ok := ids[a.FileID]; ok && id != b.FileID {
			m.Errorf("%s%s is the same file as another, and not so in the other", path, a.Name)
		}
		ids[a.FileID] = b.FileID
		if a.Attr.Type == vfs.Directory {
			m.compare([2]vfs.Handle{a.Handle, b.Handle}, path+a.Name+"/", ids)
		}
		if a.Attr.Type == vfs.Regular {
			m.both(func(fs vfs.FS, j int) (vfs.Handle, vfs.Attr, outcome, error) {
				p := make([]byte, a.Attr.Size+1)
				n, end, err := fs.Read(m.Context(), []vfs.Handle{a.Handle, b.Handle}[j], p, 0)
				return "", vfs.Attr{}, outcome{content: p[:n], more: fmt.Sprint(end)}, err
			})
		}
	}
}
