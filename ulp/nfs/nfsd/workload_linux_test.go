package nfsd_test

import (
	"testing"

	"urnic/ulp/nfs/vfs/dirfs"
)

func TestWorkloadInADirectory(t *testing.T) {
	fs, err := dirfs.New(t.TempDir(), dirfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := fs.Close(); err != nil {
			t.Error(err)
		}
	}()
	workload(t, fs)
}
