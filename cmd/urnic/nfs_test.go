package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urnic/internal/test/ownnet"
	"urnic/ulp/nfs/nfsbench"
)

// A nfsdProcess is a run of urnic nfsd.
type nfsdProcess struct {
	*process
	TCP, RDMA string
	Exports   []string
}

// startNFSD serves in the background.
func startNFSD(t *testing.T, args ...string) *nfsdProcess {
	t.Helper()
	return startNFSDAt(t, "127.0.0.1", args...)
}

// startNFSDAt is startNFSD at another address.
func startNFSDAt(t *testing.T, host string, args ...string) *nfsdProcess {
	t.Helper()
	address := net.JoinHostPort(host, "0")
	p := start(t, append([]string{"nfsd", "--tcp", address, "--rdma", address, "--json"}, args...)...)
	p.out.wait(t, "\n")
	s := &nfsdProcess{process: p}
	if err := json.Unmarshal([]byte(p.out.String()), s); err != nil {
		t.Fatalf("%v: %q", err, p.out.String())
	}
	return s
}

// urls are the URLs of a path over each transport.
func (s *nfsdProcess) urls(name string) map[string]string {
	_, port, _ := net.SplitHostPort(s.TCP)
	return map[string]string{
		"tcp":  "nfs://" + s.TCP + name,
		"rdma": "nfs+rdma://" + s.RDMA + name + "?mountport=" + port,
	}
}

// stop interrupts the server, which ends without a complaint.
func (s *nfsdProcess) stop(t *testing.T) {
	t.Helper()
	s.interrupt()
	s.end(t)
}

// localTree makes a tree of files, and returns its root.
func localTree(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	for name, n := range map[string]int{"a": 0, "b b": 10, "d/c": 3 << 20, "d/e/f": 70_000} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, bytes.Repeat([]byte(name[len(name)-1:]), n), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("d/c", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sameTrees compares names, contents and symbolic links.
func sameTrees(t *testing.T, a, b string) {
	t.Helper()
	list := func(dir string) map[string]string {
		all := map[string]string{}
		err := filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(dir, name)
			switch {
			case info.Mode()&os.ModeSymlink != 0:
				all[rel], err = os.Readlink(name)
			case !info.IsDir():
				var data []byte
				data, err = os.ReadFile(name)
				all[rel] = string(data)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	la, lb := list(a), list(b)
	if len(la) != len(lb) || len(la) == 0 {
		t.Errorf("%d files and %d", len(la), len(lb))
	}
	for name, data := range la {
		if lb[name] != data {
			t.Errorf("%s differs: %d bytes and %d", name, len(data), len(lb[name]))
		}
	}
}

// Of a server whose root is not exported, ls lists the exports.
func TestNFSListsExports(t *testing.T) {
	s := startNFSD(t, "--memory", "--export", "/a=", "--export", "/dir="+t.TempDir())
	for transport, url := range s.urls("") {
		if out := ok(t, "nfs", "ls", url); out != "/a\n/dir\n" {
			t.Errorf("%s: %q", transport, out)
		}
	}
	if out := ok(t, "nfs", "ls", "--json", s.urls("/")["tcp"]); out != "{\"format\":\"urnic-nfs-ls/1\",\"export\":\"/a\"}\n{\"format\":\"urnic-nfs-ls/1\",\"export\":\"/dir\"}\n" {
		t.Errorf("%q", out)
	}
}

// Addresses of IPv6 do as well, in URLs and in what the server says.
func TestNFSOverIPv6(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		l.Close()
		nfsOverIPv6(t)
		return
	}
	ownnet.Run(t, nfsOverIPv6)
}

func nfsOverIPv6(t *testing.T) {
	s := startNFSDAt(t, "::1", "--memory", "--squash", "none")
	defer s.stop(t)
	for transport, url := range s.urls("/memory/file") {
		if !strings.Contains(url, "://[::1]:") {
			t.Errorf("the server is at %s", url)
		}
		status, _, errOut := urnic(t, strings.NewReader(transport), "nfs", "put", "-", url)
		if status != 0 || errOut != "" {
			t.Fatalf("put %s: status %d, %s", url, status, errOut)
		}
		if out := ok(t, "nfs", "ls", url); out != "file\n" {
			t.Errorf("ls %s: %q", url, out)
		}
		if out := ok(t, "nfs", "cat", url); out != transport {
			t.Errorf("cat %s: %q", url, out)
		}
	}
	for _, args := range [][]string{{s.TCP, "nfs", "3"}, {s.TCP, "mountd", "3"}, {s.RDMA, "nfs", "3", "--rdma"}} {
		if out := ok(t, append([]string{"rpc", "call"}, args...)...); !strings.Contains(out, "at [::1]:") {
			t.Errorf("%v: %s", args, out)
		}
	}
	p := start(t, "nfsd", "--memory", "--tcp", "[::1]:0", "--rdma", "[::1]:0")
	p.out.wait(t, "listening at ")
	p.interrupt()
	p.end(t)
	// mount.nfs(8) wants to be told of the family: "tcp" and "rdma" are those of IPv4.
	for _, want := range []string{"proto=tcp6,port=", "proto=rdma6,port=", "mountproto=tcp6,", " [::1]:/memory /mnt"} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("no %q in\n%s", want, p.out.String())
		}
	}
}

func TestNFSCopiesTrees(t *testing.T) {
	tree := localTree(t)
	s := startNFSD(t, "--memory", "--squash", "none")
	for transport := range s.urls("/memory") {
		t.Run(transport, func(t *testing.T) {
			to := s.urls("/memory/" + transport)[transport]
			ok(t, "nfs", "put", "-R", tree, to)
			out := ok(t, "nfs", "ls", "-R", to)
			if want := "a\nb b\nd\nd/c\nd/e\nd/e/f\nlink\n"; out != want {
				t.Errorf("%q, not %q", out, want)
			}
			back := filepath.Join(t.TempDir(), "back")
			ok(t, "nfs", "get", "-R", to, back)
			sameTrees(t, tree, back)
			ok(t, "nfs", "get", "-R", to, back) // into it
			sameTrees(t, tree, filepath.Join(back, transport))

			// A second put replaces what is there.
			name := filepath.Join(tree, "b b")
			if err := os.WriteFile(name, []byte("new"), 0o600); err != nil {
				t.Fatal(err)
			}
			for line := range strings.SplitSeq(strings.TrimSpace(ok(t, "nfs", "put", "--json", name, to)), "\n") {
				var c nfsCopy
				if err := json.Unmarshal([]byte(line), &c); err != nil || c.From != name || c.Bytes != 3 || !strings.HasSuffix(c.To, "b b") {
					t.Errorf("%s: %+v, %v", line, c, err)
				}
			}
			if out := ok(t, "nfs", "cat", s.urls("/memory/" + transport + "/b%20b")[transport]); out != "new" {
				t.Errorf("cat: %q", out)
			}
			status, out, errOut := urnic(t, strings.NewReader("from a pipe"), "nfs", "put", "-v", "-", s.urls("/memory/pipe")[transport])
			if status != 0 || !strings.Contains(out, "standard input -> pipe: 11 bytes") || errOut != "" {
				t.Errorf("status %d, %q, %q", status, out, errOut)
			}
			if out := ok(t, "nfs", "cat", s.urls("/memory/pipe")[transport], s.urls("/memory/pipe")[transport]); out != "from a pipefrom a pipe" {
				t.Errorf("cat: %q", out)
			}
		})
	}
	s.stop(t)
}

// READs and WRITEs may be as long as the flags say, over both transports.
func TestNFSMovesLongTransfers(t *testing.T) {
	s := startNFSD(t, "--memory", "--squash", "none", "--rsize", "16M", "--wsize", "16M")
	defer s.stop(t)
	data := strings.Repeat("0123456789abcdef", 17<<16)
	for transport, url := range s.urls("/memory/file") {
		status, _, errOut := urnic(t, strings.NewReader(data), "nfs", "put", "-", url, "--wsize", "16M", "--depth", "1")
		if status != 0 {
			t.Fatalf("put over %s: %s", transport, errOut)
		}
		if out := ok(t, "nfs", "cat", url, "--rsize", "16M", "--depth", "1"); out != data {
			t.Errorf("cat over %s: %d bytes; want %d", transport, len(out), len(data))
		}
	}
}

func TestNFSLists(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("12345"), 0o604); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "file"), 0o604); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("fi\x1ble", filepath.Join(dir, "li\nnk")); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no symbolic link with a line feed in its name can be made here: %v", err)
		}
		t.Skipf("no symbolic link with a line feed in its name can be made here: %v", err)
	}
	s := startNFSD(t, "--ro", "--export", "/x/y="+dir)
	if len(s.Exports) != 1 || s.Exports[0] != "/x/y" {
		t.Errorf("exports %q", s.Exports)
	}
	url := s.urls("/x/y")["tcp"]
	out := ok(t, "nfs", "ls", "-l", url)
	for _, want := range []string{"-rw----r--   1 ", " 5 20", ` file` + "\n", `"li\nnk" -> "fi\x1ble"` + "\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var e nfsEntry
	if out := ok(t, "nfs", "ls", "--json", s.urls("/x/y/file")["rdma"]); json.Unmarshal([]byte(out), &e) != nil || e.Path != "file" || e.Type != "file" || e.Size != 5 || e.Mode != "0604" {
		t.Errorf("%s", out)
	}
	// What is read-only can't be written to.
	status, _, errOut := urnic(t, strings.NewReader("x"), "nfs", "put", "-", s.urls("/x/y/new")["tcp"])
	wantError(t, nil, status, errOut, "NFS3ERR_ROFS")
	s.stop(t)
}

func TestNFSBench(t *testing.T) {
	s := startNFSD(t, "--memory", "--squash", "none")
	for transport, url := range s.urls("/memory") {
		args := []string{"nfs", "bench", url, "--duration", "10ms", "--file-size", "1M", "--size", "64K", "--callers", "1,2"}
		out := ok(t, args...)
		for _, want := range []string{"write", "read", "random", "null", "MB/s", "p99 µs"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", transport, want, out)
			}
		}
		var report struct{ Results []nfsbench.Result }
		out = ok(t, append(args, "--json", "--test", "write,null", "--depth", "1,3", "--rounds", "2")...)
		if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Results) != 4 {
			t.Fatalf("%v: %s", err, out)
		}
		for _, r := range report.Results {
			if r.Calls <= 0 || len(r.Samples) != 2 || r.Test == nfsbench.Write && (r.Size != 64<<10 || r.Bytes <= 0) || r.Test == nfsbench.Null && r.Latency.P50 <= 0 {
				t.Errorf("%+v", r)
			}
		}
		if out := ok(t, "nfs", "ls", url); out != "" {
			t.Errorf("it leaves %q behind", out)
		}
	}
	s.stop(t)
}

// A server in the same process is measured beside RDMA itself, in each round.
func TestNFSBenchLocal(t *testing.T) {
	args := []string{"nfs", "bench", "--local", "--duration", "10ms", "--file-size", "1M", "--size", "64K", "--callers", "1,2", "--rounds", "2"}
	out := ok(t, args...)
	for _, want := range []string{"write", "read", "random", "null", "Write MB/s", "to TCP", "Send µs"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var report nfsLocalReport
	if out = ok(t, append(args, "--json", "--crc", "off")...); json.Unmarshal([]byte(out), &report) != nil {
		t.Fatal(out)
	}
	if report.CRC || report.FileSize != 1<<20 || len(report.Results) != 6 {
		t.Errorf("%+v", report)
	}
	for _, r := range report.Results {
		raw := r.Depth > 0 || r.Test == nfsbench.Null && r.Callers == 1
		if len(r.RDMA.Calls) != 2 || len(r.TCP.Calls) != 2 || r.ToTCP <= 0 || raw != (r.Raw != nil) || raw != (r.ToRaw > 0) {
			t.Errorf("%+v", r)
		}
		var ratios []float64
		for i, calls := range r.TCP.Calls {
			if calls > 0 { // on a machine that does much else, a round may be over before one call is
				ratios = append(ratios, r.RDMA.Calls[i]/calls)
			}
		}
		if want := nfsbench.Median(ratios); r.ToTCP != want {
			t.Errorf("%s: %v times TCP; want %v", r.Test, r.ToTCP, want)
		}
	}
}

// The exports say who may mount them.
func TestNFSDAllows(t *testing.T) {
	s := startNFSD(t, "--memory", "--allow", "192.0.2.0/24", "--allow", "2001:db8::1")
	for _, url := range s.urls("/memory") {
		status, _, errOut := urnic(t, nil, "nfs", "ls", url)
		wantError(t, nil, status, errOut, "its exports are not for this host")
	}
	s.stop(t)
	s = startNFSD(t, "--memory", "--allow", "all", "--squash", "all")
	for _, url := range s.urls("/memory") {
		ok(t, "nfs", "ls", url)
	}
	s.stop(t)
}

// What a server says to people tells where it listens, and how to mount it.
func TestNFSDTells(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "nfsd", dir, "--tcp", "127.0.0.1:0", "--rdma", "127.0.0.1:0")
	p.out.wait(t, "listening at ")
	p.interrupt()
	p.end(t)
	out := p.out.String()
	for _, want := range []string{"exporting " + filepath.ToSlash(dir) + ": " + dir + "\n", "proto=rdma,port=", "proto=tcp,port=", "mountport=", " 127.0.0.1:" + filepath.ToSlash(dir) + " /mnt", "(TCP) and 127.0.0.1:"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	p = start(t, "nfsd", dir, "--tcp", "127.0.0.1:0", "--rdma", "off")
	p.out.wait(t, "(TCP)\n")
	p.interrupt()
	p.end(t)
	if strings.Contains(p.out.String(), "rdma") {
		t.Errorf("it tells of RDMA:\n%s", p.out.String())
	}
}

// What passes over RDMA is recorded, on either side.
func TestNFSRecords(t *testing.T) {
	theirs, ours := filepath.Join(t.TempDir(), "theirs"), filepath.Join(t.TempDir(), "ours")
	s := startNFSD(t, "--memory", "--squash", "none", "--pcap", theirs)
	status, _, errOut := urnic(t, strings.NewReader("recorded"), "nfs", "put", "-", s.urls("/memory/f")["rdma"], "--pcap", ours)
	if status != 0 {
		t.Fatal(errOut)
	}
	s.stop(t)
	for _, name := range []string{theirs, ours} {
		if out := ok(t, "dissect", "--summary", name); !strings.Contains(out, "0 errors") && !strings.Contains(out, "connections") {
			t.Errorf("%s", out)
		}
	}
}

func TestNFSErrorsAreAdvice(t *testing.T) {
	s := startNFSD(t, "--memory", "--squash", "none")
	defer s.stop(t)
	memory := s.urls("/memory")["tcp"]
	_, port, _ := net.SplitHostPort(s.TCP)
	_, rport, _ := net.SplitHostPort(s.RDMA)
	const self = "nfs_test.go"
	dir := t.TempDir()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"nfs", "ls"}, "give URL...: see `urnic nfs ls --help`"},
		{[]string{"nfs", "put", "x"}, "give LOCAL URL: see"},
		{[]string{"nfs", "ls", "http://x"}, "nfs://HOST/PATH or nfs+rdma://HOST/PATH"},
		{[]string{"nfs", "ls", "nfs://127.0.0.1:" + unusedPort + "/x"}, "start the server first, such as `urnic nfsd`"},
		{[]string{"nfs", "ls", "nfs+rdma://127.0.0.1:" + unusedPort + "/x?mountport=" + unusedPort}, "start the server first"},
		{[]string{"nfs", "ls", s.urls("/none")["tcp"]}, "give a path that it exports"},
		{[]string{"nfs", "ls", memory + "/none"}, "NFS3ERR_NOENT"},
		{[]string{"nfs", "cat", memory}, "NFS3ERR_ISDIR"},
		{[]string{"nfs", "get", memory, dir}, "copy it with -R"},
		{[]string{"nfs", "put", dir, memory}, "copy it with -R"},
		{[]string{"nfs", "put", dir + "/none", memory}, "no such file"},
		{[]string{"nfs", "put", self, memory + "/none/"}, "/none/ names no directory of the server"},
		{[]string{"nfs", "put", "-", memory + "/none/"}, "/none/ names no directory of the server"},
		{[]string{"nfs", "ls", "nfs://" + s.RDMA + "/memory"}, "give that for TCP"},
		{[]string{"nfs", "ls", "nfs+rdma://" + s.RDMA + "/memory?mountport=" + rport}, "give that for TCP"},
		{[]string{"nfs", "ls", "nfs+rdma://" + s.TCP + "/memory?mountport=" + port}, "give that for RDMA"},
		{[]string{"rpc", "call", s.RDMA, "nfs", "3"}, "if the port belongs to the other transport"},
		{[]string{"rpc", "call", s.TCP, "nfs", "3", "--rdma"}, "if the port belongs to the other transport"},
		{[]string{"nfs", "ls", memory, "--trace"}, "give nfs+rdma://"},
		{[]string{"nfs", "ls", memory, "--uid", "-7"}, "must be 0 or more"},
		{[]string{"nfs", "cat", memory, "--rsize", "7"}, "--rsize 7: give bytes, 512 to 16M"},
		{[]string{"nfs", "cat", memory, "--depth", "-1"}, "--depth -1"},
		{[]string{"nfs", "cat", memory, "--pcap", "-"}, "record into a file"},
		{[]string{"nfs", "bench"}, "--local"},
		{[]string{"nfs", "bench", memory, "--local"}, "a URL or --local"},
		{[]string{"nfs", "bench", "--local", "--sync"}, "leave --local out"},
		{[]string{"nfs", "bench", "--local", "--crc", "x"}, "--crc x"},
		{[]string{"nfs", "bench", memory, "--test", "x"}, "must be one of write, read, random, null"},
		{[]string{"nfs", "bench", memory, "--size", "1"}, "--size 1"},
		{[]string{"nfs", "bench", memory, "--depth", "0"}, "--depth 0"},
		{[]string{"nfs", "bench", memory, "--callers", "2000"}, "up to 1024"},
		{[]string{"nfs", "bench", memory, "--duration", "0s"}, "give --duration more than 0"},
		{[]string{"nfs", "bench", memory, "--file-size", "1"}, "--file-size 1"},
		{[]string{"nfsd"}, "give a directory to serve, or --memory"},
		{[]string{"nfsd", dir + "/none"}, "can't be served"},
		{[]string{"nfsd", "a", "b"}, "--export PATH=DIR"},
		{[]string{"nfsd", dir, "--tcp", s.TCP}, "give another port with --tcp"},
		{[]string{"nfsd", dir, "--tcp", "127.0.0.1:0", "--rdma", s.RDMA}, "give another port with --rdma"},
		{[]string{"nfsd", dir, "--tcp", "x"}, "--tcp x: give ADDRESS:PORT"},
		{[]string{"nfsd", dir, "--allow", "x"}, "--allow x: give an address"},
		{[]string{"nfsd", dir, "--squash", "x"}, "must be one of root, all, none"},
		{[]string{"nfsd", dir, "--anonuid", "0"}, "the anonymous user must not be root"},
		{[]string{"nfsd", dir, "--anonuid", "x"}, "--anonuid x: give a whole number"},
		{[]string{"nfsd", "--export", "x=y"}, "give PATH=DIR"},
		{[]string{"nfsd", "--export", "/x="}, "give a directory, or --memory"},
		{[]string{"nfsd", dir, "--tcp", "127.0.0.1:0", "--rdma", "127.0.0.1:0", "--rsize", "1"}, "--rsize 1"},
		{[]string{"nfsd", "--memory", "--tcp", "127.0.0.1:0", "--rdma", "off", "--max-memory", "x"}, "--max-memory x"},
		{[]string{"nfsd", dir, "--json", "--pcap", "-"}, "record into a file"},
	} {
		status, out, errOut := urnic(t, nil, tc.args...)
		if out != "" {
			t.Errorf("%v: %q is on stdout", tc.args, out)
		}
		wantError(t, tc.args, status, errOut, tc.want)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("%q were left behind", left)
	}
}

// A get that fails leaves nothing behind.
func TestNFSGetIsWholeOrNothing(t *testing.T) {
	s := startNFSD(t, "--memory", "--squash", "none")
	defer s.stop(t)
	url := s.urls("/memory/f")["tcp"]
	status, _, errOut := urnic(t, strings.NewReader(strings.Repeat("x", 1<<20)), "nfs", "put", "-", url)
	if status != 0 {
		t.Fatal(errOut)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "f"), 0o755); err != nil { // in the way of the name
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "f", "f"), 0o755); err != nil {
		t.Fatal(err)
	}
	status, _, errOut = urnic(t, nil, "nfs", "get", url, filepath.Join(dir, "f"))
	wantError(t, nil, status, errOut, "f")
	if left, _ := filepath.Glob(filepath.Join(dir, "f", ".*.part")); len(left) > 0 {
		t.Errorf("%q were left behind", left)
	}
}
