package nfs_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urnic/ulp/nfs"
)

// libnfs runs a program of libnfs, which others wrote.
func libnfs(t *testing.T, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%v: on Debian, apt-get install libnfs-utils", err)
		}
		t.Skipf("%v: on Debian, apt-get install libnfs-utils", err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, stderr.Bytes())
	}
	return out
}

// libnfs's programs list, read and write the files of our server over TCP.
func TestLibnfs(t *testing.T) {
	s := serve(t, inMemory(t))
	c, err := nfs.Dial(t.Context(), s.url(nfs.TCP), nfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, port, _ := net.SplitHostPort(s.tcp)
	at := func(name string) string {
		return fmt.Sprintf("nfs://127.0.0.1/export/%s?nfsport=%s&mountport=%[2]s&version=3", name, port)
	}
	data := bytes.Repeat([]byte("what libnfs has to bring back\n"), 300_000)
	if err := c.MkdirAll(t.Context(), "dir/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteFile(t.Context(), "dir/ours", data, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := c.Symlink(t.Context(), "ours", "dir/link"); err != nil {
		t.Fatal(err)
	}

	t.Run("nfs-ls", func(t *testing.T) {
		out := string(libnfs(t, "nfs-ls", at("dir")))
		for _, want := range []string{
			"-rw-r-----  1", fmt.Sprint(" ", len(data), " ours\n"), "drwxr-xr-x  2", " sub\n", "lrwxrwxrwx  1", " link\n",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
		for i := range 700 { // many pages
			f, err := c.OpenFile(t.Context(), fmt.Sprintf("dir/sub/a name that takes some room %03d", i), os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if n := bytes.Count(libnfs(t, "nfs-ls", "-R", at("dir")), []byte("takes some room")); n != 700 {
			t.Errorf("%d names of 700 are listed", n)
		}
	})
	t.Run("nfs-cat", func(t *testing.T) {
		if out := libnfs(t, "nfs-cat", at("dir/ours")); !bytes.Equal(out, data) {
			t.Errorf("%d bytes that are not the %d of the file", len(out), len(data))
		}
	})
	t.Run("nfs-cp", func(t *testing.T) {
		local := filepath.Join(t.TempDir(), "local")
		if err := os.WriteFile(local, data, 0o600); err != nil {
			t.Fatal(err)
		}
		libnfs(t, "nfs-cp", local, at("theirs"))
		got, err := c.ReadFile(t.Context(), "theirs")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, data) {
			t.Errorf("%d bytes arrived that are not the %d that were sent", len(got), len(data))
		}
		libnfs(t, "nfs-cp", at("theirs"), local+"2")
		if got, err := os.ReadFile(local + "2"); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes came back that are not the %d that were sent: %v", len(got), len(data), err)
		}
	})
}
