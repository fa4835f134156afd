//go:build unix

package dirfs

import (
	"io/fs"
	"syscall"

	"urnic/ulp/nfs/vfs/pathfs"
)

// identities says that files have something that tells them apart.
const identities = true

type identity struct{ dev, ino uint64 }

// identify adds what Unix knows of a file.
func identify(i fs.FileInfo, info *pathfs.Info) {
	st, ok := i.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	a := &info.Attr
	info.ID = identity{uint64(st.Dev), uint64(st.Ino)}
	a.FileID, a.Links, a.UID, a.GID = uint64(st.Ino), uint32(st.Nlink), st.Uid, st.Gid
	a.Used = uint64(st.Blocks) * 512
	a.Atime, a.Ctime = timesOf(st)
}
