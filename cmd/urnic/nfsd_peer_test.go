package main

import (
	"slices"
	"testing"
)

// A server that only this host may mount listens at no other address, unless it is told
// where.
func TestNFSDListensWhereItIsFor(t *testing.T) {
	loopback := []string{"127.0.0.1:2049", "[::1]:2049"}
	all := []string{":2049"}
	for _, tc := range []struct {
		allow []string
		given bool
		want  []string
	}{
		{nil, false, loopback},
		{nil, true, all},
		{[]string{"127.0.0.1"}, false, loopback},
		{[]string{"::1"}, false, loopback},
		{[]string{"127.0.0.0/8", "192.0.2.0/24"}, false, all},
		{[]string{"::1/64"}, false, all},
		{[]string{"126.0.0.0/7"}, false, all},
		{[]string{"0.0.0.0/0"}, false, all},
		{[]string{"all"}, false, all},
	} {
		o := nfsdOptions{tcp: ":2049", rdma: "off", memory: true, allow: tc.allow}
		if err := o.check(); err != nil {
			t.Fatal(err)
		}
		if got := o.addresses(o.tcp, tc.given); !slices.Equal(got, tc.want) {
			t.Errorf("--allow %q: %q; want %q", tc.allow, got, tc.want)
		}
	}
	o := nfsdOptions{tcp: "192.0.2.1:2049", rdma: "off", memory: true}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	if got := o.addresses(o.tcp, false); !slices.Equal(got, []string{"192.0.2.1:2049"}) {
		t.Errorf("%q", got)
	}
}

// Directories are not given to everybody unless that is said.
func TestNFSDRefusesWhatIsUnsafe(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{dir, "--squash", "none", "--insecure"}, "--squash none --insecure: anybody who reaches the server"},
		{[]string{dir, "--squash", "none", "--allow", "all"}, "--squash none --allow all: root of any machine"},
		{[]string{dir, "--squash", "none", "--allow", "192.0.2.0/24", "--allow", "0.0.0.0/0"}, "--squash none --allow all: root of any machine"},
		{[]string{dir, "--squash", "none", "--allow", "::/0"}, "--squash none --allow all: root of any machine"},
		{[]string{"--export", "/d=" + dir, "--memory", "--squash", "none", "--insecure"}, "--unsafe if you want that"},
	} {
		args := append([]string{"nfsd", "--tcp", "127.0.0.1:0", "--rdma", "off"}, tc.args...)
		status, out, errOut := urnic(t, nil, args...)
		if out != "" {
			t.Errorf("%v: %q is on stdout", args, out)
		}
		wantError(t, args, status, errOut, tc.want)
		startNFSD(t, append(tc.args, "--unsafe")...).stop(t)
	}
	for _, args := range [][]string{
		{dir, "--squash", "none"}, {dir, "--insecure"}, {dir, "--allow", "all"}, {"--memory", "--squash", "none", "--insecure", "--allow", "all"},
	} {
		startNFSD(t, args...).stop(t)
	}
}
