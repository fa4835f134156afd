package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"urnic/internal/test/selfcopy"
	"urnic/rnic"
	"urnic/ulp/nfs"
	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
)

// Users of these tests.
const (
	userAlice = 4242
	userBob   = 4243
	userOther = 65534
)

// asUser dials as another user's process would.
type asUser int

func (u asUser) Dial(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = syscall.Fchown(int(fd), int(u), -1) }), err)
	}}
	return d.DialContext(ctx, "tcp", address)
}

func (asUser) Listen(context.Context, string) (net.Listener, error) {
	return nil, errors.ErrUnsupported
}

// mountAs mounts as a process of one user, whose calls claim to be another's.
func mountAs(t *testing.T, url string, user int, claim oncrpc.Sys) (*nfs.Client, error) {
	t.Helper()
	dev, err := rnic.Open(rnic.Config{Network: asUser(user)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	c, err := nfs.Dial(t.Context(), url, nfs.Config{
		Device: dev, Credential: &claim, Retry: oncrpc.ClientConfig{Dials: 1, Sends: 1},
		Dialer: &net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			return errors.Join(c.Control(func(fd uintptr) { err = syscall.Fchown(int(fd), user, -1) }), err)
		}},
	})
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// needRoot skips what only root can try, and fails where all has to be tried.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() == 0 {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("this needs root, to be other users")
	}
	t.Skip("this needs root, to be other users")
}

// withSecret makes a directory with a file of Alice's that nobody else may read.
func withSecret(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	err := errors.Join(os.WriteFile(secret, []byte("hers"), 0o600), os.Chown(secret, userAlice, userAlice), os.Chmod(dir, 0o777))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A local user can call as nobody else, over both transports: not even by groups.
func TestLocalUsersCallAsThemselves(t *testing.T) {
	needRoot(t)
	dir := withSecret(t)
	shadow := filepath.Join(dir, "shadow")
	if err := errors.Join(os.WriteFile(shadow, []byte("theirs"), 0o640), os.Chown(shadow, 0, 42), os.Chmod(shadow, 0o640)); err != nil {
		t.Fatal(err)
	}
	s := startNFSD(t, "--export", "/d="+dir)
	defer s.stop(t)
	for transport, url := range s.urls("/d") {
		for _, tc := range []struct {
			name    string
			user    int
			claim   oncrpc.Sys
			mounts  bool
			secret  error
			ofGroup error
		}{
			{"Alice", userAlice, oncrpc.Sys{UID: userAlice, GID: userAlice}, true, nil, nfs3.ErrAcces},
			{"Alice in a group that she is not in", userAlice, oncrpc.Sys{UID: userAlice, GID: 42, Groups: []uint32{42}}, true, nil, nfs3.ErrAcces},
			{"Bob", userBob, oncrpc.Sys{UID: userBob, GID: userBob}, true, nfs3.ErrAcces, nfs3.ErrAcces},
			{"Bob as Alice", userBob, oncrpc.Sys{UID: userAlice, GID: userAlice}, false, nil, nil},
			{"Bob as root", userBob, oncrpc.Sys{}, false, nil, nil},
			{"root as Alice", 0, oncrpc.Sys{UID: userAlice, GID: 42}, true, nil, nil},
			{"root", 0, oncrpc.Sys{}, true, nfs3.ErrAcces, nfs3.ErrAcces},
		} {
			c, err := mountAs(t, url, tc.user, tc.claim)
			if !tc.mounts {
				if !errors.Is(err, nfs3.MountErrAcces) {
					t.Errorf("%s, %s mounts: %v", transport, tc.name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: %v", transport, tc.name, err)
				continue
			}
			for name, want := range map[string]error{"secret": tc.secret, "shadow": tc.ofGroup} {
				if _, err := c.ReadFile(t.Context(), name); !errors.Is(err, want) {
					t.Errorf("%s, %s reads %s: %v; want %v", transport, tc.name, name, err, want)
				}
			}
		}
	}

	// Where that is wanted, all are believed.
	s = startNFSD(t, "--export", "/d="+dir, "--insecure")
	defer s.stop(t)
	for transport, url := range s.urls("/d") {
		c, err := mountAs(t, url, userBob, oncrpc.Sys{UID: userAlice})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ReadFile(t.Context(), "secret"); err != nil {
			t.Errorf("%s, insecure: %v", transport, err)
		}
	}
}

// A server that is not root takes nobody but its own user for the owner of its files.
func TestOthersAreNobodyToTheServerOfAUser(t *testing.T) {
	needRoot(t)
	dir, program := selfcopy.Dir(t)
	tree := filepath.Join(dir, "tree")
	secret := filepath.Join(tree, "secret")
	err := errors.Join(os.Mkdir(tree, 0o700), os.Chmod(tree, 0o777), os.Chown(tree, userOther, userOther),
		os.WriteFile(secret, []byte("theirs"), 0o600), os.Chown(secret, userOther, userOther))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "nfsd", "--export", "/d="+tree, "--tcp", "127.0.0.1:0", "--rdma", "127.0.0.1:0", "--json")
	cmd.Env = append(os.Environ(), asCommand+"=1", "XDG_STATE_HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: userOther, Gid: userOther}}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	s := &nfsdProcess{}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(line), s); err != nil {
		t.Fatalf("%v: %q", err, line)
	}
	for transport, url := range s.urls("/d") {
		own, err := mountAs(t, url, userOther, oncrpc.Sys{UID: userOther, GID: userOther})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := own.ReadFile(t.Context(), "secret"); err != nil {
			t.Errorf("%s: the server's user: %v", transport, err)
		}
		if err := own.WriteFile(t.Context(), "new "+transport, nil, 0o644); err != nil {
			t.Errorf("%s: the server's user: %v", transport, err)
		}
		if c, err := mountAs(t, url, userAlice, oncrpc.Sys{UID: userOther, GID: userOther}); !errors.Is(err, nfs3.MountErrAcces) {
			t.Errorf("%s: another user mounts as the server's: %v, %v", transport, c, err)
		}
		for name, uid := range map[string]int{"another user": userAlice, "root": 0} {
			c, err := mountAs(t, url, uid, oncrpc.Sys{UID: uint32(uid), GID: userOther})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.ReadFile(t.Context(), "secret"); !errors.Is(err, nfs3.ErrAcces) {
				t.Errorf("%s: %s reads the file of the server's user: %v", transport, name, err)
			}
			if err := c.WriteFile(t.Context(), "program", nil, 0o4755); !errors.Is(err, nfs3.ErrAcces) {
				t.Errorf("%s: %s makes a file that is the server's user's: %v", transport, name, err)
			}
		}
	}
}

// Whoever the exports are not for has the connection closed, on either transport, before
// it takes a place.
func TestExcludedPeersTakeNoPlace(t *testing.T) {
	s := startNFSD(t, "--memory", "--allow", "127.0.0.2")
	defer s.stop(t)
	for _, address := range []string{s.TCP, s.RDMA} {
		for range 2 {
			c, err := net.Dial("tcp", address)
			if err != nil {
				if errors.Is(err, syscall.ECONNRESET) {
					continue
				}
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: a peer that is excluded reads %v", address, err)
			}
			_ = c.Close()
		}
	}
	c, err := nfs.Dial(t.Context(), s.urls("/memory")["tcp"], nfs.Config{
		Dialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}},
	})
	if err != nil {
		t.Fatalf("a peer that is allowed: %v", err)
	}
	_ = c.Close()
}
