package dirfs

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// What a caller makes does not lend its mode and owner to another file of the same caller's
// that takes the name meanwhile: who may change the directory may exchange the two.
func TestNewNamesAreTakenByTheCallersFiles(t *testing.T) {
	needRoot(t)
	mode := uint32(0o777)
	uid, gid := alice.UID, alice.GID
	for who, c := range map[string]vfs.Caller{"root": {}, "alice": alice} {
		t.Run(who, func(t *testing.T) {
			dir := t.TempDir()
			do(t, os.Mkdir(dir+"/victim", 0o700), os.WriteFile(dir+"/victim/secret", nil, 0o600), os.Chmod(dir, 0o777),
				os.Chown(dir+"/victim", int(c.UID), int(c.GID)))
			var before, after unix.Stat_t
			do(t, unix.Lstat(dir+"/victim", &before))
			fs := serve(t, dir, Options{})
			exchanged := exchanging(t, fs, dir, "victim")
			s := vfs.SetAttr{Mode: &mode}
			if c.UID == 0 {
				s.UID, s.GID = &uid, &gid
			}
			_, _, err := fs.Mkdir(vfs.WithCaller(t.Context(), c), fs.Root(), "new", s)
			do(t, unix.Lstat(dir+"/new", &after))
			if *exchanged != 1 || after.Ino != before.Ino {
				t.Fatal("nothing was exchanged")
			}
			if after.Mode != before.Mode || after.Uid != before.Uid || after.Gid != before.Gid {
				t.Errorf("%v: the directory had mode %o and owner %d, and has %o and %d", err, before.Mode, before.Uid, after.Mode, after.Uid)
			}
		})
	}
}
