//go:build interop

package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"urnic/internal/test/loopback"
	"urnic/mpa"
	"urnic/rnic"
	"urnic/ulp/nfs"
	"urnic/ulp/nfs/nfstest"
	"urnic/ulp/oncrpc"
)

// An nfsd is `urnic nfsd`, another process, which can be killed.
type nfsd struct {
	args      []string
	rdma, tcp int
	cmd       *exec.Cmd
}

// startNFSD serves what the arguments say on 127.0.0.1, to all users as they are, until the
// test ends.
func startNFSD(t *testing.T, args ...string) *nfsd {
	t.Helper()
	return startNFSDAt(t, "127.0.0.1", args...)
}

// startNFSDAt is startNFSD on another address.
func startNFSDAt(t *testing.T, host string, args ...string) *nfsd {
	t.Helper()
	s := &nfsd{}
	s.rdma, s.tcp = int(loopback.Port(t)), int(loopback.Port(t))
	s.args = append([]string{
		"nfsd", "--squash", "none", "--crc", "off", // see TestOurNFSClientAtKernelServer
		"--insecure", "--unsafe", // the guest's calls come from a process of this host's, for all the guest's users
		"--rdma", net.JoinHostPort(host, strconv.Itoa(s.rdma)), "--tcp", net.JoinHostPort(host, strconv.Itoa(s.tcp)),
	}, args...)
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

// start starts the server, and returns when it listens.
func (s *nfsd) start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(filepath.Join(project, "bin", "urnic"), s.args...)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = s.cmd.Stdout
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "listening at ") {
			return
		}
	}
	t.Fatalf("urnic nfsd ended: %v\n%s", s.cmd.Wait(), said.String())
}

// kill kills the server, if it runs.
func (s *nfsd) kill() {
	_ = s.cmd.Process.Kill() // it has ended if that fails
	_ = s.cmd.Wait()         // that it was killed is known
}

func (s *nfsd) target(path string) nfsTarget {
	return nfsTarget{port: s.rdma, mountPort: s.tcp, path: path}
}

// The kernel's client, on siw, at our server: a directory of this machine, whose files
// are written for good.
func TestKernelNFSClientAtOurServer(t *testing.T) {
	s := startNFSD(t, "--export", "/export="+t.TempDir())
	m := theGuest.mountNFS(t, s.target("/export"))
	m.workload(t, "-s", "64", "-n", "1", "-e", "300", "-t", "2", "-w", "2")
	if stats := m.stats(t); !strings.Contains(stats, "xprt:\trdma ") {
		t.Errorf("the mount does not use RDMA:\n%s", stats)
	}
	m.unmount(t)
}

// A tree in memory passes as well, and by small READs and WRITEs, of which some travel
// in the message and some beside it.
func TestKernelNFSClientAtOurServerInMemory(t *testing.T) {
	s := startNFSD(t, "--memory")
	target := s.target("/memory")
	target.options = []string{"rsize=4096", "wsize=4096"}
	m := theGuest.mountNFS(t, target)
	m.workload(t, "-s", "1", "-n", "1", "-e", "50", "-t", "2", "-w", "2", "-p", "files,direct,tree,dirs,rename,links")
	m.unmount(t)
}

// Over IPv6 too, by either transport.
func TestKernelNFSClientAtOurServerOverIPv6(t *testing.T) {
	s := startNFSDAt(t, "::1", "--memory")
	rdma := s.target("/memory")
	rdma.ipv6 = true
	tcp := rdma
	tcp.tcp, tcp.port = true, s.tcp
	for xprt, target := range map[string]nfsTarget{"rdma": rdma, "tcp": tcp} {
		t.Run(xprt, func(t *testing.T) {
			m := theGuest.mountNFS(t, target)
			m.workload(t, "-s", "1", "-n", "1", "-e", "50", "-t", "2", "-w", "2", "-p", "files")
			if stats := m.stats(t); !strings.Contains(stats, "xprt:\t"+xprt+" ") || !strings.Contains(stats, "proto="+xprt+"6") {
				t.Errorf("the mount does not use %s over IPv6:\n%s", xprt, stats)
			}
			m.unmount(t)
		})
	}
}

// The server is killed under load and started again: a hard mount goes on, and nothing is
// lost that was committed (RFC 1813 §4.8).
func TestOurServerIsKilledUnderLoad(t *testing.T) {
	s := startNFSD(t, "--export", "/export="+t.TempDir())
	m := theGuest.mountNFS(t, s.target("/export"))
	const files = 8
	writer := theGuest.start(t, fmt.Sprintf(`cd %s && for i in $(seq %d); do
		dd if=/dev/urandom of=/tmp/source bs=64k count=48 status=none
		echo "writing $i"
		dd if=/tmp/source of=file$i bs=64k conv=fsync status=none || exit 1
		sha256sum </tmp/source | sed "s/-/file$i/" >>/tmp/sums
		echo "written $i"
	done; mkdir dir && mv file1 dir/file1 && mv dir/file1 file1 && rmdir dir`, m.dir, files))
	for _, i := range []int{2, 4, 6} {
		writer.expect(fmt.Sprintf("writing %d", i))
		s.kill()
		s.start(t)
		writer.expect(fmt.Sprintf("written %d", i))
	}
	writer.wait()
	m.unmount(t)
	s.kill()
	s.start(t)
	m.again(t)
	if out := theGuest.run(t, fmt.Sprintf("cd %s && sha256sum -c /tmp/sums; rm /tmp/sums /tmp/source", m.dir)); strings.Count(out, ": OK") != files {
		t.Errorf("after three restarts:\n%s", out)
	}
	m.unmount(t)
}

// Our client at the kernel's server: the workload that it does with ours. The server is killed
// under it by killing its machine, which has the files on a disk. nfsd alone has been seen not to
// end: a thread of it that waits for an RDMA Read or a Send, which siw may never complete once
// the connection has ended, keeps it from that.
func TestOurNFSClientAtKernelServer(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.WriteFile(disk, nil, 0o600), os.Truncate(disk, 1<<30)); err != nil {
		t.Fatal(err)
	}
	s := startNFS(t, bootFor(t, "nfsd", "-d", disk), "-d", "/dev/vdb")
	dev, err := rnic.Open(rnic.Config{}) // without a recording, of hundreds of MiB
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg := nfs.Config{
		Device:     dev,
		Credential: &oncrpc.Sys{Machine: "urnic"},
		Retry:      oncrpc.ClientConfig{DialTimeout: patience, BackoffMost: time.Second, Patience: patience},
	}
	// siw takes an FPDU whose CRC comes in two pieces for broken, and QEMU's network cuts
	// where it likes.
	cfg.RDMA.Conn.MPA = settled(mpa.Config{CRC: mpa.CRCOff, ReplyTimeout: patience})
	_, mount, err := net.SplitHostPort(s.mount())
	if err != nil {
		t.Fatal(err)
	}
	d := openDoor(t, s.rdma())
	url := fmt.Sprintf("nfs+rdma://%s%s?mountport=%s", d.address, exportRW, mount)
	nfstest.Run(t, nfstest.Mount{
		Dial:     func(ctx context.Context) (*nfs.Client, error) { return nfs.Dial(ctx, url, cfg) },
		Restart:  func(context.Context) error { return errors.Join(d.shut(), s.crash(), d.open()) },
		FileSize: 64 << 20,
		Names:    300,
		Lacks:    nfstest.Forgetting, // nfsd keeps files open for some time
	})
}
