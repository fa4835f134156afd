package nfs

import (
	"testing"

	"urnic/ulp/nfs/nfs3"
)

// Linux's server counts the entries of a listing alone: with attributes of the directory,
// verifier, end of the list and end of the directory there are 104 bytes more.
func TestListingsHaveRoomForWhatLinuxDoesNotCount(t *testing.T) {
	const count = 8192
	for p, args := range map[nfs3.Proc]nfs3.Codec{
		nfs3.ProcReadDir:     &nfs3.ReadDirArgs{Count: count},
		nfs3.ProcReadDirPlus: &nfs3.ReadDirPlusArgs{MaxCount: count},
	} {
		if n := longest(p, args); n < 4+count+104 {
			t.Errorf("%v: room for %d bytes", p, n)
		}
	}
	if n, most := longest(nfs3.ProcNull, nil), nfs3.ProcNull.MaxReply(nil); n != most {
		t.Errorf("NULL: room for %d bytes, not %d", n, most)
	}
}
