package main

import (
	"testing"

	"urnic/ulp/nfs/nfsd"
)

// A server that is not root makes all files as its own user, so all callers are that user,
// unless the flags say otherwise.
func TestWhoseCallsAreSquashed(t *testing.T) {
	dir, memory := nfsdTree{"/d", "/srv/d"}, nfsdTree{"/m", ""}
	for _, c := range []struct {
		name     string
		flags    nfsdOptions
		tree     nfsdTree
		uid, gid int
		want     nfsd.Squash
		wantUID  uint32
		wantGID  uint32
	}{
		{"root", nfsdOptions{}, dir, 0, 0, nfsd.SquashRoot, nfsd.Nobody, nfsd.Nobody},
		{"a user", nfsdOptions{}, dir, 1000, 100, nfsd.SquashAll, 1000, 100},
		{"a user, in memory", nfsdOptions{}, memory, 1000, 100, nfsd.SquashRoot, nfsd.Nobody, nfsd.Nobody},
		{"a user who says none", nfsdOptions{squash: "none", squashs: nfsd.SquashNone}, dir, 1000, 100, nfsd.SquashNone, nfsd.Nobody, nfsd.Nobody},
		{"a user who says which", nfsdOptions{anonUID: 7, anonGID: 8}, dir, 1000, 100, nfsd.SquashAll, 7, 8},
		{"a user in group 0", nfsdOptions{}, dir, 1000, 0, nfsd.SquashAll, 1000, 1},
		{"a system without users", nfsdOptions{}, dir, -1, -1, nfsd.SquashRoot, nfsd.Nobody, nfsd.Nobody},
	} {
		if c.flags.squash == "" {
			c.flags.squashs = nfsd.SquashRoot // as check has it
		}
		e := c.flags.export(c.tree, nil, c.uid, c.gid)
		if e.Squash != c.want || e.AnonUID != c.wantUID || e.AnonGID != c.wantGID {
			t.Errorf("%s: got %v, %d, %d", c.name, e.Squash, e.AnonUID, e.AnonGID)
		}
	}
}
