//go:build !linux

package dirfs

import "urnic/ulp/nfs/vfs"

// New serves a directory. It fails if dir is none.
func New(dir string, o Options) (vfs.FS, error) { return newPortable(dir, o) }
