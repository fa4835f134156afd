package main

import (
	"strings"
	"testing"

	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs"
)

// A server that is not root makes all files as its own user, so all other callers are
// nobody, unless the flags say otherwise.
func TestWhoseCallsAreSquashed(t *testing.T) {
	dir, memory := nfsdTree{"/d", "/srv/d"}, nfsdTree{"/m", ""}
	for _, c := range []struct {
		name     string
		flags    nfsdOptions
		tree     nfsdTree
		uid      int
		want     nfsd.Squash
		wantUser uint32
		wantUID  uint32
		wantGID  uint32
	}{
		{"root", nfsdOptions{}, dir, 0, nfsd.SquashRoot, 0, nfsd.Nobody, nfsd.Nobody},
		{"a user", nfsdOptions{}, dir, 1000, nfsd.SquashOthers, 1000, nfsd.Nobody, nfsd.Nobody},
		{"a user, in memory", nfsdOptions{}, memory, 1000, nfsd.SquashRoot, 0, nfsd.Nobody, nfsd.Nobody},
		{"a user who says none", nfsdOptions{squash: "none", squashs: nfsd.SquashNone}, dir, 1000, nfsd.SquashNone, 0, nfsd.Nobody, nfsd.Nobody},
		{"a user who says which", nfsdOptions{anonUID: 7, anonGID: 8}, dir, 1000, nfsd.SquashOthers, 1000, 7, 8},
		{"a system without users", nfsdOptions{}, dir, -1, nfsd.SquashRoot, 0, nfsd.Nobody, nfsd.Nobody},
	} {
		if c.flags.squash == "" {
			c.flags.squashs = nfsd.SquashRoot // as check has it
		}
		e := c.flags.export(c.tree, nil, c.uid)
		if e.Squash != c.want || e.User != c.wantUser || e.AnonUID != c.wantUID || e.AnonGID != c.wantGID || e.Insecure {
			t.Errorf("%s: got %v, %d, %d, %d, %v", c.name, e.Squash, e.User, e.AnonUID, e.AnonGID, e.Insecure)
		}
	}
}

// A server of root's that can't act as its callers warns, but for trees in memory.
func TestNFSDWarnsOfRightsThatItLacks(t *testing.T) {
	dir := nfsdTree{"/d", "/srv/d"}
	for _, tc := range []struct {
		tree    nfsdTree
		uid     int
		callers bool
		warns   bool
	}{
		{dir, 0, false, true},
		{dir, 0, true, false},
		{dir, 1000, false, false},
		{dir, -1, false, false}, // systems without users
		{nfsdTree{"/m", ""}, 0, false, false},
	} {
		var said strings.Builder
		if err := warnOfRights(&said, tc.tree, tc.uid, vfs.Features{Callers: tc.callers}); err != nil {
			t.Error(err)
		}
		if warns := strings.Contains(said.String(), "CAP_SETUID"); warns != tc.warns || !tc.warns && said.Len() > 0 {
			t.Errorf("%+v: it says %q", tc, said.String())
		}
	}
}
