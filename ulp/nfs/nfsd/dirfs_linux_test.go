package nfsd_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/internal/test/selfcopy"
	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/dirfs"
)

// overDirfs has the tests use directories instead of trees in memory.
const overDirfs = "URNIC_TEST_NFSD_DIRFS"

func init() {
	if os.Getenv(overDirfs) != "" {
		empty = func(t testing.TB) vfs.FS { return directory(t, t.TempDir()) }
	}
}

// directory serves a directory that everybody may write.
func directory(t testing.TB, dir string) vfs.FS {
	t.Helper()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	fs, err := dirfs.New(dir, dirfs.Options{Async: true})
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// again runs tests of this program once more, in another environment, as a user.
func again(t *testing.T, uid uint32, run string, env ...string) {
	t.Helper()
	dir, bin := selfcopy.Dir(t)
	if err := errors.Join(os.Mkdir(dir+"/tmp", 0o700), os.Chown(dir+"/tmp", int(uid), int(uid))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, "-test.count=1", "-test.run="+run, "-test.skip=^TestDirectories")
	cmd.Dir = "/"
	cmd.Env = append(append(os.Environ(), "TMPDIR="+dir+"/tmp"), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as user %d: %v\n%s", uid, err, out)
	}
}

// What the server says over a tree in memory, where it checks modes itself, the kernel says
// over a directory, where it is asked with the caller's rights.
func TestDirectoriesAskTheKernel(t *testing.T) {
	if os.Geteuid() != 0 {
		return // a process that is not root can't act for others
	}
	again(t, 0, ".", overDirfs+"=1")
}

// An aclEntry is one of an access control list of POSIX.
type aclEntry struct {
	tag, perm uint16
	id        uint32
}

// Tags of entries, as in acl(5).
const (
	aclUserObj  = 1
	aclUser     = 2
	aclGroupObj = 4
	aclMask     = 16
	aclOther    = 32
	aclNoID     = 0xffffffff
)

// setACL gives a file an access control list. It reports whether the filesystem has them.
func setACL(t *testing.T, path string, acl ...aclEntry) {
	t.Helper()
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range acl {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.perm)
		b = binary.LittleEndian.AppendUint32(b, e.id)
	}
	err := unix.Setxattr(path, "system.posix_acl_access", b, 0)
	if errors.Is(err, unix.EOPNOTSUPP) && os.Getenv("CI") == "" {
		t.Skipf("the filesystem of %s has no access control lists", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// aclTree makes a tree in which a file and a directory of root's have a list: the group may
// nothing, carol (1002) may all but execute, and the mode says that the group may what she
// may.
func aclTree(t *testing.T) *bed {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(dir+"/file", []byte("secret"), 0o660), os.Mkdir(dir+"/dir", 0o770), os.WriteFile(dir+"/dir/in", nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Chown(dir+"/file", 500, int(alice.gid)), os.Chown(dir+"/dir", 500, int(alice.gid))); err != nil {
			t.Fatal(err)
		}
	}
	setACL(t, dir+"/file", aclEntry{aclUserObj, 6, aclNoID}, aclEntry{aclUser, 6, 1002}, aclEntry{aclGroupObj, 0, aclNoID}, aclEntry{aclMask, 6, aclNoID}, aclEntry{aclOther, 0, aclNoID})
	setACL(t, dir+"/dir", aclEntry{aclUserObj, 7, aclNoID}, aclEntry{aclUser, 7, 1002}, aclEntry{aclGroupObj, 0, aclNoID}, aclEntry{aclMask, 7, aclNoID}, aclEntry{aclOther, 0, aclNoID})
	fs := directory(t, dir)
	t.Cleanup(func() { _ = fs.Close() })
	return on(t, nfsd.Config{}, nfsd.Export{FS: fs, Squash: nfsd.SquashNone})
}

// lists says what each procedure that needs rights says to a caller.
func lists(b *bed, who *user, file, dir nfs3.Handle) map[string]nfs3.Status {
	b.Helper()
	size := uint64(6)
	return map[string]nfs3.Status{
		"READ":                        b.read(who, file, 0, 10).Status,
		"READ beyond":                 b.read(who, file, 100, 10).Status,
		"WRITE":                       b.write(who, file, 0, "secret").Status,
		"WRITE of no bytes":           b.write(who, file, 0, "").Status,
		"COMMIT":                      do[nfs3.CommitRes](b, who, nfs3.ProcCommit, &nfs3.CommitArgs{File: file}).Status,
		"SETATTR":                     b.setAttr(who, file, nfs3.SetAttr{Size: &size}).Status,
		"SETATTR of the present time": b.setAttr(who, file, nfs3.SetAttr{Mtime: nfs3.SetTime{How: nfs3.SetToServerTime}}).Status,
		"LOOKUP":                      b.lookup(who, dir, "in").Status,
		"LOOKUP of .":                 b.lookup(who, dir, ".").Status,
		"LOOKUP of ..":                b.lookup(who, dir, "..").Status,
		"READDIR":                     do[nfs3.ReadDirRes](b, who, nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: dir, Count: 4096}).Status,
		"READDIRPLUS":                 do[nfs3.ReadDirPlusRes](b, who, nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusArgs{Dir: dir, DirCount: 4096, MaxCount: 4096}).Status,
		"MKDIR":                       do[nfs3.NewRes](b, who, nfs3.ProcMkdir, &nfs3.MkdirArgs{Where: at(dir, "new")}).Status,
		"RMDIR":                       do[nfs3.WccRes](b, who, nfs3.ProcRmdir, new(at(dir, "new"))).Status,
		"CREATE":                      do[nfs3.NewRes](b, who, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(dir, "new")}).Status,
		"RENAME":                      do[nfs3.RenameRes](b, who, nfs3.ProcRename, &nfs3.RenameArgs{From: at(dir, "new"), To: at(dir, "newer")}).Status,
		"REMOVE":                      do[nfs3.WccRes](b, who, nfs3.ProcRemove, new(at(dir, "newer"))).Status,
	}
}

func (b *bed) access(who *user, h nfs3.Handle) uint32 {
	b.Helper()
	return ok(b, do[nfs3.AccessRes](b, who, nfs3.ProcAccess, &nfs3.AccessArgs{Object: h, Access: 0x3f})).Access
}

// An access control list gives over NFS what it gives on the machine, and no more. The
// mode's bits for the group are not what the group may do.
func TestAccessControlListsAreKept(t *testing.T) {
	if os.Geteuid() != 0 {
		return // TestDirectoriesDenyWhereTheyCannotAsk shows what holds then
	}
	b := aclTree(t)
	file, dir := ok(b, b.lookup(root, b.root, "file")).Object, ok(b, b.lookup(root, b.root, "dir")).Object
	verifier := ok(b, b.write(root, file, 0, "secret")).Verifier
	carol, owner := &user{uid: 1002, gid: 300}, &user{uid: 500, gid: 300}
	const fileRW = nfs3.AccessRead | nfs3.AccessModify | nfs3.AccessExtend
	const dirAll = nfs3.AccessRead | nfs3.AccessModify | nfs3.AccessExtend | nfs3.AccessDelete | nfs3.AccessLookup
	for _, tc := range []struct {
		name   string
		who    *user
		want   nfs3.Status
		onFile uint32
		onDir  uint32
	}{
		{"the owner", owner, nfs3.OK, fileRW, dirAll},
		{"whom the list names", carol, nfs3.OK, fileRW, dirAll},
		{"the group, to which it gives nothing", alice, nfs3.ErrAcces, 0, 0},
		{"others", bob, nfs3.ErrAcces, 0, 0},
		{"the owner again", owner, nfs3.OK, fileRW, dirAll},
		{"the group again, now that there are descriptors", alice, nfs3.ErrAcces, 0, 0},
	} {
		for what, got := range lists(b, tc.who, file, dir) {
			if got != tc.want {
				t.Errorf("%s of %s: %v, want %v", what, tc.name, got, tc.want)
			}
		}
		if got := b.access(tc.who, file); got != tc.onFile {
			t.Errorf("ACCESS of %s to the file: %#x, want %#x", tc.name, got, tc.onFile)
		}
		if got := b.access(tc.who, dir); got != tc.onDir {
			t.Errorf("ACCESS of %s to the directory: %#x, want %#x", tc.name, got, tc.onDir)
		}
	}
	if r := ok(b, b.write(root, file, 0, "secret")); r.Verifier != verifier {
		t.Error("calls that were refused have changed the write verifier, as if data were lost")
	}
}

// A server that can't ask the kernel for others gives nobody but the owner what has a list.
func TestDirectoriesDenyWhereTheyCannotAsk(t *testing.T) {
	if os.Geteuid() == 0 {
		again(t, 65534, "^TestACLsOfAnOrdinaryServer$")
		return
	}
	testOrdinaryACLs(t)
}

func TestACLsOfAnOrdinaryServer(t *testing.T) {
	if os.Geteuid() != 0 {
		testOrdinaryACLs(t)
	}
}

func testOrdinaryACLs(t *testing.T) {
	b := aclTree(t)
	me := &user{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}
	file, dir := ok(b, b.lookup(me, b.root, "file")).Object, ok(b, b.lookup(me, b.root, "dir")).Object
	ours := &user{uid: 77, gid: me.gid}
	for _, tc := range []struct {
		who  *user
		want nfs3.Status
	}{{me, nfs3.OK}, {ours, nfs3.ErrAcces}, {&user{uid: 1002, gid: 300}, nfs3.ErrAcces}, {bob, nfs3.ErrAcces}} {
		for what, got := range lists(b, tc.who, file, dir) {
			if got != tc.want {
				t.Errorf("%s of %+v: %v, want %v", what, tc.who, got, tc.want)
			}
		}
		if tc.want != nfs3.OK && (b.access(tc.who, file) != 0 || b.access(tc.who, dir) != 0) {
			t.Errorf("ACCESS of %+v grants something", tc.who)
		}
	}
	var r nfs3.MountRes
	if err := b.callMount(ours, nfs3.MountProcMnt, &nfs3.MountArgs{Path: "/tree/dir/in"}, &r); err != nil || r.Status != nfs3.MountErrAcces {
		t.Errorf("MNT through the directory: %v, %v", r.Status, err)
	}
}

// The bits that give a program its owner's rights are gone after somebody else has written
// to it, also where the writer may not set the mode.
func TestWritersTakePrivilegesAway(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	dir := t.TempDir()
	fs := directory(t, dir)
	t.Cleanup(func() { _ = fs.Close() })
	b := on(t, nfsd.Config{}, nfsd.Export{FS: fs, Squash: nfsd.SquashNone})
	size := uint64(3)
	for name, change := range map[string]func(nfs3.Handle) nfs3.Status{
		"write":    func(h nfs3.Handle) nfs3.Status { return b.write(bob, h, 0, "x").Status },
		"truncate": func(h nfs3.Handle) nfs3.Status { return b.setAttr(bob, h, nfs3.SetAttr{Size: &size}).Status },
		"open": func(nfs3.Handle) nfs3.Status {
			return do[nfs3.NewRes](b, bob, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, "open"), Attr: nfs3.SetAttr{Size: &size}}).Status
		},
	} {
		if err := errors.Join(os.WriteFile(dir+"/"+name, []byte("program"), 0o777), os.Chmod(dir+"/"+name, 0o777|os.ModeSetuid|os.ModeSetgid)); err != nil {
			t.Fatal(err)
		}
		h := ok(b, b.lookup(bob, b.root, name)).Object
		if got := change(h); got != nfs3.OK {
			t.Errorf("%s: %v", name, got)
		}
		if a := b.getAttr(h); a.Mode != 0o777 {
			t.Errorf("after %s the mode is %o, want 777", name, a.Mode)
		}
	}
	if p, err := os.ReadFile(dir + "/write"); err != nil || !bytes.Equal(p, []byte("xrogram")) {
		t.Errorf("%q, %v", p, err)
	}
}
