package nfs

import (
	"strings"
	"testing"

	"urnic/ulp/nfs/nfs3"
)

func TestParseURL(t *testing.T) {
	for s, want := range map[string]Target{
		"nfs://host/export/a b": {TCP, "host", 0, 0, "/export/a b"},
		"nfs://host":            {TCP, "host", 0, 0, "/"},
		"nfs+rdma://192.0.2.7:20050/e?mountport=7": {RDMA, "192.0.2.7", 20050, 7, "/e"},
		"nfs://[2001:db8::7]:1/x/../y/":            {TCP, "2001:db8::7", 1, 0, "/y"},
		"nfs://[::1]/%3F%20":                       {TCP, "::1", 0, 0, "/? "},
	} {
		got, err := ParseURL(s)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
		if again, err := ParseURL(got.String()); err != nil || again != got {
			t.Errorf("%s is told as %s: %+v, %v", s, got, again, err)
		}
	}
	for s, want := range map[string]string{
		"http://host/x": "no address of files", "nfs:///x": "names no host", "nfs://host:0/": "no port", "nfs://host:70000/": "port",
		"nfs://u@host/": "only a host", "nfs://host/x#y": "only a host", "nfs://host/?x=1": "only parameter", "nfs://host/?mountport=0": "mountport",
		"nfs://host/?mountport=1&mountport=2": "once", "nfs://host/%00": "NUL", "%": "give nfs://", "host:/x": "no address",
	} {
		if _, err := ParseURL(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, without %q", s, err, want)
		}
	}
}

func TestTargetIsChecked(t *testing.T) {
	for _, tc := range []Target{{}, {Transport: TCP}, {Transport: "udp", Host: "h", Path: "/"}, {Transport: TCP, Host: "h", Path: "x"}, {Transport: TCP, Host: "h", Path: "/", Port: -1}, {Transport: TCP, Host: "h", Path: "/", MountPort: 1 << 16}} {
		if _, err := DialTarget(t.Context(), tc, Config{}); err == nil {
			t.Errorf("%+v is taken", tc)
		}
	}
	if _, err := Dial(t.Context(), "nfs+rdma://127.0.0.1/", Config{}); err == nil || !strings.Contains(err.Error(), "Config.Device") {
		t.Errorf("RDMA without a device: %v", err)
	}
	if _, err := Dial(t.Context(), "nfs://127.0.0.1/", Config{Depth: -1}); err == nil {
		t.Error("a depth below 0 is taken")
	}
}

func TestContaining(t *testing.T) {
	for name, want := range map[string]string{"/a/b/c": "/a/b", "/a/b": "/a/b", "/a/bc": "/a", "/x": ""} {
		exports := []string{"/a", "/a/b/", "/a/b/c/d"}
		if got, ok := containing(exportsOf(exports), name); got != want || ok != (want != "") {
			t.Errorf("%s is in %q", name, got)
		}
	}
	if got, ok := containing(exportsOf([]string{"/"}), "/x"); got != "/" || !ok {
		t.Errorf("/x is in %q", got)
	}
	for _, tc := range [][3]string{{"/a/b/c", "/a", "b/c"}, {"/a", "/a", "."}, {"/a/b", "/", "a/b"}} {
		if got := below(tc[0], tc[1]); got != tc[2] {
			t.Errorf("%s below %s is %q", tc[0], tc[1], got)
		}
	}
}

func exportsOf(dirs []string) (exports []nfs3.Export) {
	for _, d := range dirs {
		exports = append(exports, nfs3.Export{Dir: d})
	}
	return exports
}
