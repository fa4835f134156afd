package memfs

import (
	"testing"

	"urnic/internal/test/leakcheck"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/vfstest"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

func TestFS(t *testing.T) {
	vfstest.Test(t, func(*testing.T) vfs.FS { return New(Options{}) })
}
