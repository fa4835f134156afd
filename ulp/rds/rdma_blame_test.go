package rds

import (
	"testing"

	"urnic/rnic"
	"urnic/stag"
	"urnic/ulp/rds/wire"
)

// The operation to blame is the oldest one that fits best what the peer has refused.
func TestWhichOperationIsToBlame(t *testing.T) {
	const key, other = 0x1234, 0x5678
	cookie := wire.NewCookie(key, 0)
	ops := []*Operation{
		Write(wire.NewCookie(other, 0), 0, make([]byte, 100)),
		Write(cookie, 0, make([]byte, 5000)),
		Write(cookie, 0, make([]byte, 100)),
		Read(cookie, 0, make([]byte, 100)),
		Write(cookie, 50, make([]byte, 100)),
		FetchAdd(cookie, 0, 1, 0),
	}
	at := func(key stag.STag, to uint64) rnic.Remote { return rnic.Remote{STag: key, TO: to} }
	for name, tt := range map[string]struct {
		r    rnic.Refusal
		want int
	}{
		"all of a Write":               {rnic.Refusal{Write: true, Remote: at(key, 50), Length: 100, Last: true}, 4},
		"the first of several":         {rnic.Refusal{Write: true, Remote: at(key, 0), Length: 1400}, 1},
		"a segment that is not in any": {rnic.Refusal{Write: true, Remote: at(key, 9000), Length: 100, Last: true}, 1},
		"without a length":             {rnic.Refusal{Write: true, Remote: at(key, 60)}, 1},
		"another region":               {rnic.Refusal{Write: true, Remote: at(other, 0), Length: 100, Last: true}, 0},
		"nobody's region":              {rnic.Refusal{Write: true, Remote: at(1, 0), Length: 100, Last: true}, -1},
		"a Read or an atomic":          {rnic.Refusal{Read: true}, 3},
		"any":                          {rnic.Refusal{Write: true, Read: true}, 0},
		"none":                         {rnic.Refusal{}, -1},
	} {
		got := -1
		for _, suspect := range suspicions(&tt.r) {
			for i, o := range ops {
				if got < 0 && suspect(o) {
					got = i
				}
			}
		}
		if got != tt.want {
			t.Errorf("%s: operation %d is blamed; want %d", name, got, tt.want)
		}
	}
}
