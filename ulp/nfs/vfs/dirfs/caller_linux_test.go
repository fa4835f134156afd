package dirfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urnic/internal/test/selfcopy"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/vfstest"
)

var (
	alice = vfs.Caller{UID: 1000, GID: 100, Groups: []uint32{102, 101}}
	bob   = vfs.Caller{UID: 1001, GID: 200}
)

// needRoot ends a test that only a process can pass that may act for others.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.SkipNow() // TestAsUser runs all tests as root and as an ordinary user
	}
	if newProcess() == nil {
		t.Fatal("this root can't act for others: it wants CAP_SETUID and CAP_SETGID")
	}
}

// calling is an FS all of whose calls are made for a caller.
type calling struct {
	*linuxFS
	c vfs.Caller
}

func (f calling) as(ctx context.Context) context.Context { return vfs.WithCaller(ctx, f.c) }

func (f calling) Features() vfs.Features {
	a := f.linuxFS.Features()
	a.SetOwner = false
	return a
}

func (f calling) SetAttr(ctx context.Context, h vfs.Handle, s vfs.SetAttr) (vfs.Attr, error) {
	return f.linuxFS.SetAttr(f.as(ctx), h, s)
}

func (f calling) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, error) {
	return f.linuxFS.Lookup(f.as(ctx), dir, name)
}

func (f calling) Read(ctx context.Context, h vfs.Handle, p []byte, off uint64) (int, bool, error) {
	return f.linuxFS.Read(f.as(ctx), h, p, off)
}

func (f calling) Write(ctx context.Context, h vfs.Handle, p []byte, off uint64, sync bool) error {
	return f.linuxFS.Write(f.as(ctx), h, p, off, sync)
}

func (f calling) Commit(ctx context.Context, h vfs.Handle, off, n uint64) error {
	return f.linuxFS.Commit(f.as(ctx), h, off, n)
}

func (f calling) Create(ctx context.Context, dir vfs.Handle, name string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	return f.linuxFS.Create(f.as(ctx), dir, name, s)
}

func (f calling) Mkdir(ctx context.Context, dir vfs.Handle, name string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	return f.linuxFS.Mkdir(f.as(ctx), dir, name, s)
}

func (f calling) Symlink(ctx context.Context, dir vfs.Handle, name, target string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	return f.linuxFS.Symlink(f.as(ctx), dir, name, target, s)
}

func (f calling) Mknod(ctx context.Context, dir vfs.Handle, name string, t vfs.Type, major, minor uint32, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	return f.linuxFS.Mknod(f.as(ctx), dir, name, t, major, minor, s)
}

func (f calling) Remove(ctx context.Context, dir vfs.Handle, name string) error {
	return f.linuxFS.Remove(f.as(ctx), dir, name)
}

func (f calling) Rmdir(ctx context.Context, dir vfs.Handle, name string) error {
	return f.linuxFS.Rmdir(f.as(ctx), dir, name)
}

func (f calling) Rename(ctx context.Context, from vfs.Handle, name string, to vfs.Handle, newName string) error {
	return f.linuxFS.Rename(f.as(ctx), from, name, to, newName)
}

func (f calling) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, error) {
	return f.linuxFS.Link(f.as(ctx), h, dir, name)
}

func (f calling) ReadDir(ctx context.Context, dir vfs.Handle, cookie uint64, plus bool, add func(vfs.Entry) bool) (bool, error) {
	return f.linuxFS.ReadDir(f.as(ctx), dir, cookie, plus, add)
}

// serveTo serves a directory of alice's, with calls of hers.
func serveTo(t *testing.T, c vfs.Caller) calling {
	t.Helper()
	dir := t.TempDir()
	do(t, os.Chown(dir, int(alice.UID), int(alice.GID)), os.Chmod(dir, 0o755))
	return calling{serve(t, dir, Options{Async: true}), c}
}

// All that an owner can do on the machine can be done by NFS.
func TestFSForACaller(t *testing.T) {
	needRoot(t)
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprintf("without faccessat2, openat2 and proc: %v", old), func(t *testing.T) {
			vfstest.Test(t, func(t *testing.T) vfs.FS {
				fs := serveTo(t, alice)
				if old {
					withoutOpenat2(t, fs.linuxFS)
					fs.faccess, fs.procFD = false, false
				}
				return fs
			})
		})
	}
}

// exchanging has each opening of the name new, other than the making itself, find another file:
// the machine's users may exchange the two at any time.
func exchanging(t *testing.T, fs *linuxFS, dir, victim string) (exchanged *int) {
	t.Helper()
	open := fs.openAt
	exchanged = new(int)
	fs.openAt = func(in int, name string, flags, mode uint64) (int, error) {
		if name == "new" && flags&unix.O_CREAT == 0 && *exchanged == 0 {
			var wg sync.WaitGroup
			wg.Go(func() { // not with the caller's identity, which this thread may have
				if _, err := os.Lstat(dir + "/new"); err == nil {
					*exchanged++
					do(t, unix.Renameat2(unix.AT_FDCWD, dir+"/new", unix.AT_FDCWD, dir+"/"+victim, unix.RENAME_EXCHANGE))
				}
			})
			wg.Wait()
		}
		return open(in, name, flags, mode)
	}
	return exchanged
}

// A file of root's that takes the name of something new gets neither the owner nor the mode
// that this was to get, and is not removed, whoever calls.
func TestNewNamesAreTakenByOthersFiles(t *testing.T) {
	needRoot(t)
	mode := uint32(0o777)
	uid, gid := alice.UID, alice.GID
	past := time.Unix(1, 0)
	makers := map[string]func(fs vfs.FS, ctx context.Context, s vfs.SetAttr) error{
		"Create": func(fs vfs.FS, ctx context.Context, s vfs.SetAttr) error {
			_, _, err := fs.Create(ctx, fs.Root(), "new", s)
			return err
		},
		"Mkdir": func(fs vfs.FS, ctx context.Context, s vfs.SetAttr) error {
			_, _, err := fs.Mkdir(ctx, fs.Root(), "new", s)
			return err
		},
		"Symlink": func(fs vfs.FS, ctx context.Context, s vfs.SetAttr) error {
			_, _, err := fs.Symlink(ctx, fs.Root(), "new", "to", s)
			return err
		},
		"Mknod": func(fs vfs.FS, ctx context.Context, s vfs.SetAttr) error {
			_, _, err := fs.Mknod(ctx, fs.Root(), "new", vfs.FIFO, 0, 0, s)
			return err
		},
	}
	victims := map[string]func(path string) error{
		"a file":             func(p string) error { return os.WriteFile(p, []byte("secret"), 0o600) },
		"an empty file":      func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"a directory":        func(p string) error { return os.MkdirAll(p+"/in", 0o700) },
		"an empty directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"a FIFO":             func(p string) error { return unix.Mkfifo(p, 0o600) },
		"a link":             func(p string) error { return os.Symlink("elsewhere", p) },
	}
	for what, make := range makers {
		for which, plant := range victims {
			for who, ctx := range map[string]context.Context{"the process": t.Context(), "a caller": vfs.WithCaller(t.Context(), alice)} {
				for _, broken := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s of %s, %s, broken %v", what, who, which, broken), func(t *testing.T) {
						dir := t.TempDir()
						do(t, plant(dir+"/victim"), os.Chmod(dir, 0o777))
						var before, after unix.Stat_t
						do(t, unix.Lstat(dir+"/victim", &before))
						fs := serve(t, dir, Options{})
						if broken { // so that what was made is to be removed again
							fs.sync = func(int, bool) error { return unix.EIO }
						}
						exchanged := exchanging(t, fs, dir, "victim")
						s := vfs.SetAttr{Mode: &mode, Atime: &past, Mtime: &past}
						if who == "the process" {
							s.UID, s.GID = &uid, &gid
						}
						if err := make(fs, ctx, s); broken && err == nil {
							t.Error("it is said to be done")
						}
						if *exchanged == 0 && (what != "Create" || broken) {
							t.Fatal("nothing was exchanged")
						}
						at := "/victim"
						if *exchanged == 1 {
							at = "/new"
						}
						do(t, unix.Lstat(dir+at, &after))
						if after.Ino != before.Ino || after.Mode != before.Mode || after.Uid != before.Uid || after.Gid != before.Gid || after.Mtim != before.Mtim {
							t.Errorf("the file of root's was %+v, and is %+v", before, after)
						}
					})
				}
			}
		}
	}
}

// The same by chance: one user exchanges names in a loop while calls make directories.
func TestExchangeRace(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	do(t, os.Chmod(dir, 0o777|os.ModeSticky), os.WriteFile(dir+"/victim", nil, 0o600), os.Mkdir(dir+"/victims", 0o700))
	fs := serve(t, dir, Options{Async: true})
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for _, v := range []string{"victim", "victims"} {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_ = unix.Renameat2(unix.AT_FDCWD, dir+"/new", unix.AT_FDCWD, dir+"/"+v, unix.RENAME_EXCHANGE)
			}
		})
	}
	mode := uint32(0o777)
	ctx := vfs.WithCaller(t.Context(), alice)
	for range 500 {
		_, _, _ = fs.Mkdir(ctx, fs.Root(), "new", vfs.SetAttr{Mode: &mode})
		_ = fs.Rmdir(ctx, fs.Root(), "new")
		_, _, _ = fs.Mknod(ctx, fs.Root(), "new", vfs.FIFO, 0, 0, vfs.SetAttr{Mode: &mode})
		_ = fs.Remove(ctx, fs.Root(), "new")
	}
	close(stop)
	wg.Wait()
	roots := 0
	for _, name := range []string{"new", "victim", "victims"} {
		var st unix.Stat_t
		if unix.Lstat(dir+"/"+name, &st) == nil && st.Uid == 0 && st.Mode&0o077 == 0 {
			roots++
		}
	}
	if roots != 2 {
		t.Errorf("of root's 2 files %d are left as they were", roots)
	}
}

// A thread serves nobody else with a caller's identity, and a caller with no capability.
func TestIdentityIsTheCallers(t *testing.T) {
	needRoot(t)
	p := newProcess()
	var in string
	show := func() string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", unix.Gettid()))
		if err != nil {
			return err.Error()
		}
		var lines []string
		for l := range strings.Lines(string(b)) {
			if strings.HasPrefix(l, "Uid:") || strings.HasPrefix(l, "Gid:") || strings.HasPrefix(l, "Groups:") || strings.HasPrefix(l, "CapEff:") {
				lines = append(lines, strings.Join(strings.Fields(l), " "))
			}
		}
		return strings.Join(lines, "; ")
	}
	status := func() string { in = show(); return in }
	before := ""
	do(t, p.as(&vfs.Caller{UID: uint32(p.uid), GID: uint32(p.gid)}, func() error { before = status(); return nil }))
	do(t, p.as(&alice, func() error { status(); return nil }))
	if want := "Uid: 0 0 0 1000; Gid: 0 0 0 100; Groups: 101 102; CapEff: 0000000000000000"; in != want {
		t.Errorf("a thread that acts for a caller is %q, want %q", in, want)
	}
	do(t, p.as(&vfs.Caller{GID: 100}, func() error { status(); return nil }))
	if !strings.HasPrefix(in, "Uid: 0 0 0 0; Gid: 0 0 0 100;") || strings.HasSuffix(in, "CapEff: 0000000000000000") {
		t.Errorf("a thread that acts for root is %q", in)
	}
	// What fails, or panics, leaves nothing behind.
	for _, c := range []vfs.Caller{{UID: 1<<32 - 1, GID: 1}, {UID: 1, GID: 1<<32 - 1}, {UID: 1, GID: 1, Groups: []uint32{1<<32 - 1}}} {
		err := p.as(&c, func() error { t.Errorf("it acts for %+v, which is nobody", c); return nil })
		if !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("acting for %+v: %v, want %v", c, err, vfs.ErrAccess)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_ = p.as(&alice, func() error { panic("in a call") })
	}()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				c := alice
				c.UID += uint32(i)
				err := p.as(&c, func() error {
					if uid, _ := fsIDs(); uid != int(c.UID) {
						return fmt.Errorf("it acts for %d instead of %d", uid, c.UID)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	tasks, err := os.ReadDir("/proc/self/task")
	do(t, err)
	for _, task := range tasks {
		b, err := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
		if err != nil {
			continue // it has ended
		}
		if !strings.Contains(string(b), "\nUid:\t0\t0\t0\t0\n") || !strings.Contains(string(b), "\nGid:\t0\t0\t0\t0\n") {
			t.Errorf("a thread is left as\n%s", b)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(b)), " "), before[strings.Index(before, "CapEff:"):]) {
			t.Errorf("a thread has lost capabilities:\n%s", b)
		}
	}
}

// A descriptor that one caller has opened is none of another's.
func TestDescriptorsAreCheckedForEachCaller(t *testing.T) {
	needRoot(t)
	fs := serveTo(t, alice)
	ctx, other := fs.as(t.Context()), vfs.WithCaller(t.Context(), bob)
	private, shared := uint32(0o600), uint32(0o644)
	h, _, err := fs.Create(ctx, fs.Root(), "f", vfs.SetAttr{Mode: &private})
	do(t, err, fs.Write(ctx, h, []byte("mine"), 0, false))
	holds(t, fs, h, "mine")
	refused := func(when string) {
		t.Helper()
		if n, _, err := fs.linuxFS.Read(other, h, make([]byte, 4), 0); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("%s: Read: %d, %v, want %v", when, n, err, vfs.ErrAccess)
		}
		if err := fs.linuxFS.Write(other, h, []byte("his"), 0, false); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("%s: Write: %v, want %v", when, err, vfs.ErrAccess)
		}
		if err := fs.linuxFS.Commit(other, h, 0, 0); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("%s: Commit: %v, want %v", when, err, vfs.ErrAccess)
		}
		size := uint64(0)
		if _, err := fs.linuxFS.SetAttr(other, h, vfs.SetAttr{Size: &size}); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("%s: SetAttr of the size: %v, want %v", when, err, vfs.ErrAccess)
		}
		if _, err := fs.linuxFS.SetAttr(other, h, vfs.SetAttr{Mode: &shared}); !errors.Is(err, vfs.ErrNotOwner) {
			t.Errorf("%s: SetAttr of the mode: %v, want %v", when, err, vfs.ErrNotOwner)
		}
	}
	refused("with descriptors that are open")
	if _, err := fs.SetAttr(ctx, h, vfs.SetAttr{Mode: &shared}); err != nil {
		t.Fatal(err)
	}
	if n, _, err := fs.linuxFS.Read(other, h, make([]byte, 4), 0); n != 4 || err != nil {
		t.Errorf("Read of what everybody may read: %d, %v", n, err)
	}
	// What was granted is forgotten as descriptors are.
	fs.recheck = 0
	fs.mu.Lock()
	clear(fs.grants)
	fs.mu.Unlock()
	if _, err := fs.SetAttr(ctx, h, vfs.SetAttr{Mode: &private}); err != nil {
		t.Fatal(err)
	}
	refused("after the mode was set back")
	// The owner may go on whatever the mode is.
	none := uint32(0)
	if _, err := fs.SetAttr(ctx, h, vfs.SetAttr{Mode: &none}); err != nil {
		t.Fatal(err)
	}
	do(t, fs.Write(ctx, h, []byte("still"), 0, false))
	holds(t, fs, h, "still")
	if got, err := fs.Access(ctx, h, 7); got != 0 || err != nil {
		t.Errorf("Access says %o, %v, want what the mode says: nothing", got, err)
	}
}

// LINK does not do what fs.protected_hardlinks forbids, whether that is set or not.
func TestLinksToOthersFiles(t *testing.T) {
	needRoot(t)
	for _, proc := range []bool{true, false} {
		dir := t.TempDir()
		do(t, os.Chmod(dir, 0o777))
		fs := serve(t, dir, Options{Async: true})
		fs.procFD = fs.procFD && proc
		ctx := vfs.WithCaller(t.Context(), alice)
		for name, tc := range map[string]struct {
			mode os.FileMode
			uid  int
			want error
		}{
			"mine":         {0o600, 1000, nil},
			"shared":       {0o666, 0, nil},
			"readable":     {0o644, 0, vfs.ErrNotOwner},
			"secret":       {0o600, 0, vfs.ErrNotOwner},
			"set-user-id":  {0o777 | os.ModeSetuid, 0, vfs.ErrNotOwner},
			"set-group-id": {0o777 | os.ModeSetgid, 0, vfs.ErrNotOwner},
			"locked":       {0o767 | os.ModeSetgid, 0, nil},
			"my program":   {0o777 | os.ModeSetuid, 1000, nil},
			"somebody's":   {0o660, 1001, vfs.ErrNotOwner},
		} {
			p := dir + "/" + name
			do(t, os.WriteFile(p, nil, 0o600), os.Chown(p, tc.uid, 0), os.Chmod(p, tc.mode))
			h, _, err := fs.Lookup(ctx, fs.Root(), name)
			do(t, err)
			_, err = fs.Link(ctx, h, fs.Root(), name+" 2")
			if !errors.Is(err, tc.want) {
				t.Errorf("Link of %q: %v, want %v", name, err, tc.want)
			}
			if _, err := os.Lstat(dir + "/" + name + " 2"); (err == nil) != (tc.want == nil) {
				t.Errorf("the new name of %q: %v", name, err)
			}
		}
		do(t, unix.Mkfifo(dir+"/fifo", 0o666), os.Chmod(dir+"/fifo", 0o666))
		h, _, err := fs.Lookup(ctx, fs.Root(), "fifo")
		do(t, err)
		if _, err := fs.Link(ctx, h, fs.Root(), "fifo 2"); !errors.Is(err, vfs.ErrNotOwner) {
			t.Errorf("Link of a FIFO: %v, want %v", err, vfs.ErrNotOwner)
		}
		do(t, os.WriteFile(dir+"/mine too", nil, 0o600), os.Chown(dir+"/mine too", 1000, 0), os.Mkdir(dir+"/theirs", 0o755))
		h, _, err = fs.Lookup(ctx, fs.Root(), "mine too")
		do(t, err)
		d, _, err := fs.Lookup(ctx, fs.Root(), "theirs")
		do(t, err)
		if _, err := fs.Link(ctx, h, d, "x"); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("Link in somebody's directory: %v, want %v", err, vfs.ErrAccess)
		}
	}
}

// Directories with the set-group-ID bit, sticky ones, and those with a default access control
// list are what they are for the machine's users.
func TestDirectoriesWithRules(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	do(t, os.Chmod(dir, 0o755), os.Mkdir(dir+"/group", 0), os.Chown(dir+"/group", 0, 300), os.Chmod(dir+"/group", 0o777|os.ModeSetgid),
		os.Mkdir(dir+"/sticky", 0), os.Chmod(dir+"/sticky", 0o777|os.ModeSticky), os.WriteFile(dir+"/sticky/roots", nil, 0o666), os.Chmod(dir+"/sticky/roots", 0o666))
	fs := serve(t, dir, Options{Async: true})
	ctx := vfs.WithCaller(t.Context(), alice)
	group, _, err := fs.Lookup(ctx, fs.Root(), "group")
	do(t, err)
	mode := uint32(0o755)
	_, a, err := fs.Mkdir(ctx, group, "d", vfs.SetAttr{Mode: &mode})
	if err != nil || a.UID != alice.UID || a.GID != 300 || a.Mode != 0o2755 {
		t.Errorf("Mkdir in a set-group-ID directory: %+v, %v", a, err)
	}
	mode = 0o2775
	_, a, err = fs.Create(ctx, group, "f", vfs.SetAttr{Mode: &mode})
	if err != nil || a.UID != alice.UID || a.GID != 300 || a.Mode != 0o775 {
		t.Errorf("Create of a set-group-ID file of a group that is not the caller's: %+v, %v", a, err)
	}
	sticky, _, err := fs.Lookup(ctx, fs.Root(), "sticky")
	do(t, err)
	_, _, err = fs.Create(ctx, sticky, "mine", vfs.SetAttr{})
	do(t, err)
	for what, err := range map[string]error{
		"Remove":      fs.Remove(ctx, sticky, "roots"),
		"Rename":      fs.Rename(ctx, sticky, "roots", sticky, "x"),
		"Rename over": fs.Rename(ctx, sticky, "mine", sticky, "roots"),
	} {
		if !errors.Is(err, vfs.ErrNotOwner) {
			t.Errorf("%s in a sticky directory: %v, want %v", what, err, vfs.ErrNotOwner)
		}
	}
	do(t, fs.Remove(ctx, sticky, "mine"))
	// The umask of the process takes nothing from what the caller asks for.
	mode = 0o777
	if _, a, err := fs.Mkdir(ctx, sticky, "open", vfs.SetAttr{Mode: &mode}); err != nil || a.Mode != 0o777 {
		t.Errorf("Mkdir: %+v, %v", a, err)
	}
	// Names that can't be seen can't be told from others.
	do(t, os.Mkdir(dir+"/closed", 0o700), os.WriteFile(dir+"/closed/f", nil, 0o666))
	closed, _, err := fs.Lookup(ctx, fs.Root(), "closed")
	do(t, err)
	for _, name := range []string{"f", "none"} {
		_, _, err1 := fs.Lookup(ctx, closed, name)
		for what, err := range map[string]error{"Lookup": err1, "Remove": fs.Remove(ctx, closed, name), "Rename": fs.Rename(ctx, closed, name, sticky, "x")} {
			if !errors.Is(err, vfs.ErrAccess) {
				t.Errorf("%s of %s in a closed directory: %v, want %v", what, name, err, vfs.ErrAccess)
			}
		}
	}
	if _, err := fs.ReadDir(ctx, closed, 0, false, func(vfs.Entry) bool { return true }); !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("ReadDir of a closed directory: %v, want %v", err, vfs.ErrAccess)
	}
	do(t, os.Chmod(dir+"/closed", 0o744))
	listed := 0
	_, err = fs.ReadDir(ctx, closed, 0, true, func(e vfs.Entry) bool {
		listed++
		if e.Handle != "" || e.Attr != nil {
			t.Errorf("%q of a directory that can't be searched is listed with a handle", e.Name)
		}
		return true
	})
	if err != nil || listed != 1 {
		t.Errorf("ReadDir of a directory that can be read: %d names, %v", listed, err)
	}
}

// In a user namespace that has only one user, root is that user and can be nobody else.
func TestInAUserNamespace(t *testing.T) {
	if os.Getenv("URNIC_TEST_USERNS") != "" {
		fs := serve(t, t.TempDir(), Options{Async: true})
		if fs.Features().Callers {
			t.Error("it says that it can act for others")
		}
		ctx := vfs.WithCaller(t.Context(), alice)
		if _, a, err := fs.Mkdir(ctx, fs.Root(), "d", vfs.SetAttr{}); err != nil || a.UID != 0 {
			t.Errorf("Mkdir: %+v, %v", a, err)
		}
		return
	}
	dir, bin := selfcopy.Dir(t)
	cmd := exec.CommandContext(t.Context(), bin, "-test.count=1", "-test.run=^TestInAUserNamespace$|^TestFS$")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "URNIC_TEST_USERNS=1", "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) && os.Getenv("CI") == "" {
		t.Skip("user namespaces are forbidden here")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
