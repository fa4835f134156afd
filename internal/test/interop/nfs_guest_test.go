//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"urnic/mpa"
	"urnic/rnic"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// The Linux kernel as a peer of NFS over RDMA, in both roles.
//
// Its server is started in a guest by startNFS; what runs here reaches it through
// forwarded ports, at the addresses that nfsServer's methods return:
//
//	s := startNFS(t, theGuest)
//	err := u.qp.Connect(ctx, s.rdma(), rnic.ConnParam{MPA: settled(mpa.Config{})})
//
// Its client mounts a server of ours, which listens on 127.0.0.1, by mountNFS, and
// workload then puts the mount to the test:
//
//	m := theGuest.mountNFS(t, nfsTarget{port: rdmaPort, mountPort: tcpPort, path: "/"})
//	m.workload(t, "-s", "8", "-e", "300")
//	m.unmount(t)
//
// A mount is hard: what a program does on it waits for a server that is gone, for ever,
// and goes on when it is back at the same port. A test that lets that happen wants a guest
// of its own, from boot, so that nothing that hangs outlives it; so does one that leaves a
// kernel unwell. All others share theGuest, one after the other.

// The directories that the kernel's server exports. Both are empty, but for readme.
const (
	exportRW = "/export/rw"
	exportRO = "/export/ro" // with the file readme, of which this is all:
	readme   = "This file is to be read.\n"
)

// An nfsServer is the kernel's NFS server in a guest: NFSv3 over RDMA and TCP, MOUNTv3 and
// rpcbind over TCP.
type nfsServer struct {
	g       *guest
	options []string // of nfs-server.sh start
}

// startNFS starts the server with its exports empty, and with options of nfs-server.sh start.
// It is stopped with the test.
func startNFS(t *testing.T, g *guest, options ...string) *nfsServer {
	t.Helper()
	s := &nfsServer{g, options}
	g.tellOnFailure(t)
	t.Cleanup(func() {
		if out, err := g.try(t, "nfs-server.sh stop"); err != nil {
			t.Errorf("stopping the kernel's NFS server: %v\n%s", err, out)
		}
	})
	s.start(t)
	return s
}

// kill ends the server and all its connections; files remain. start has it go on.
func (s *nfsServer) kill(t *testing.T)  { t.Helper(); s.g.run(t, "nfs-server.sh stop -k") }
func (s *nfsServer) start(t *testing.T) { t.Helper(); s.g.run(t, s.command()) }

func (s *nfsServer) command() string {
	return strings.Join(append([]string{"nfs-server.sh start"}, s.options...), " ")
}

// crash kills the server with its whole machine, and starts both again. What remains is what
// is on the disk, which boot and startNFS were given for that.
func (s *nfsServer) crash() error {
	if err := errors.Join(s.g.kill(), s.g.up()); err != nil {
		return err
	}
	if out, err := s.g.tryFor(patience, s.command()); err != nil {
		return fmt.Errorf("%s: %w: %s", s.command(), err, out)
	}
	return nil
}

// Where to reach it. A connection to rdma has to be made with settled: siw may overlook
// a call that follows the MPA Reply too closely.
func (s *nfsServer) rdma() string    { return s.g.address(portNFSRDMA) }
func (s *nfsServer) tcp() string     { return s.g.address(portNFS) }
func (s *nfsServer) mount() string   { return s.g.address(portMount) }
func (s *nfsServer) rpcbind() string { return s.g.address(portRpcbind) }

// target is what a guest is to mount, to have an export of this server.
func (s *nfsServer) target(path string) nfsTarget {
	return nfsTarget{port: s.g.ports[portNFSRDMA], mountPort: s.g.ports[portMount], path: path}
}

// An nfsTarget is what a guest can mount: a server on 127.0.0.1 of this machine, or on ::1.
type nfsTarget struct {
	tcp       bool     // in place of RDMA
	ipv6      bool     // all of it on ::1
	port      int      // of NFS, where it is over RDMA or TCP as above
	mountPort int      // of MOUNT, always TCP
	path      string   // what is exported, as "/"
	options   []string // of mount, more than those that follow from the above; as "ro", "rsize=65536", "noacl"
}

// command returns what mounts it at a directory. It tries once.
func (n nfsTarget) command(dir string) string {
	proto, version, host := "rdma", "", hostOfGuest
	if n.tcp {
		proto = "tcp"
	}
	if n.ipv6 {
		version, host = "6", "["+hostOfIPv6+"]"
	}
	options := append([]string{
		"proto=" + proto + version, fmt.Sprintf("port=%d", n.port), "vers=3",
		"mountproto=tcp" + version, fmt.Sprintf("mountport=%d", n.mountPort), "nolock", "retry=0",
	}, n.options...)
	return fmt.Sprintf("mount -t nfs -o %s %s:%s %s", strings.Join(options, ","), host, n.path, dir)
}

// An nfsMount is a mount in a guest.
type nfsMount struct {
	g      *guest
	target nfsTarget
	dir    string // in the guest
}

// mountNFS has the guest mount a server. The mount is gone with the test, also if
// the server no longer answers.
func (g *guest) mountNFS(t *testing.T, target nfsTarget) *nfsMount {
	t.Helper()
	g.tellOnFailure(t)
	dir := strings.TrimSpace(g.run(t, "mktemp -d /mnt/XXXXXX"))
	m := &nfsMount{g, target, dir}
	t.Cleanup(func() {
		// -f has calls fail that wait for the server, and -l hides what still uses it.
		unmount := fmt.Sprintf("if grep -q ' %s ' /proc/mounts; then umount -fl %[1]s; fi; rmdir %[1]s", dir)
		if out, err := g.tryFor(patience, unmount); err != nil {
			t.Errorf("unmounting: %v\n%s", err, out)
		}
	})
	m.again(t)
	return m
}

// again mounts what was unmounted.
func (m *nfsMount) again(t *testing.T) {
	t.Helper()
	m.g.run(t, m.target.command(m.dir))
}

// unmount unmounts as a user would: what was written is on the server then.
func (m *nfsMount) unmount(t *testing.T) {
	t.Helper()
	m.g.run(t, "umount "+m.dir)
}

// workloadTime is how long the workload may take: in its full size and between two
// guests it takes 6 minutes, on an idle machine.
const workloadTime = 20 * time.Minute

// workload runs the guest's nfs-workload.sh with these options in the mount, which it
// unmounts and mounts again meanwhile. All its checks have to pass. The log gets its lines.
func (m *nfsMount) workload(t *testing.T, options ...string) {
	t.Helper()
	command := fmt.Sprintf("nfs-workload.sh -r 'umount %s && %s' %s %[1]s", m.dir, m.target.command(m.dir), strings.Join(options, " "))
	out, err := m.g.tryFor(workloadTime, command)
	t.Logf("%s\n%s", command, out)
	if err != nil {
		t.Errorf("the workload failed: %v", err)
	}
}

// stats returns the kernel's statistics of the mount (nfs(5), /proc/self/mountstats): the
// line "xprt:" has those of the transport, "READ:" and so on the count of calls first.
func (m *nfsMount) stats(t *testing.T) string {
	t.Helper()
	return m.g.run(t, fmt.Sprintf("sed -n '\\, on %s ,,/^$/p' /proc/self/mountstats", m.dir))
}

// tellOnFailure has the end of the guest's kernel log in the test's, if it fails.
func (g *guest) tellOnFailure(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			out, err := g.tryFor(time.Minute, "dmesg | tail -n 40")
			t.Logf("the kernel log of %s (%v):\n%s", g.name, err, out)
		}
	})
}

// callNULL calls procedure 0 of a program over TCP (RFC 5531 §12.1).
func callNULL(ctx context.Context, address string, program, version uint32) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var e xdr.Encoder
	call := oncrpc.Call{XID: xidNULL, Program: program, Version: version}
	if err := call.Encode(&e); err != nil {
		return err
	}
	if err := oncrpc.WriteRecord(conn, &e); err != nil {
		return err
	}
	record, err := oncrpc.NewRecordReader(conn, 1024).Next(nil)
	if err != nil {
		return err
	}
	return checkNULL(xdr.NewDecoder(record))
}

const xidNULL = 0x1234567

// checkNULL checks a reply to procedure 0.
func checkNULL(d *xdr.Decoder) error {
	var reply oncrpc.Reply
	if err := reply.Decode(d); err != nil {
		return err
	}
	if reply.XID != xidNULL {
		return fmt.Errorf("the reply's xid is %x", reply.XID)
	}
	return d.End()
}

// The programs of the kernel's server answer.
func TestKernelNFSServerAnswers(t *testing.T) {
	s := startNFS(t, theGuest)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, c := range []struct {
		name, address    string
		program, version uint32
	}{
		{"NFS", s.tcp(), 100003, 3},
		{"MOUNT", s.mount(), 100005, 3},
		{"rpcbind", s.rpcbind(), 100000, 2},
		{"rpcbind", s.rpcbind(), 100000, 4},
	} {
		if err := callNULL(ctx, c.address, c.program, c.version); err != nil {
			t.Errorf("%s version %d: %v", c.name, c.version, err)
		}
	}
}

// The server answers over RDMA, too: one message there and one back, without chunks
// (RFC 8166 §4.2).
func TestKernelNFSServerAnswersOverRDMA(t *testing.T) {
	s := startNFS(t, theGuest)
	u := newULP(t, newDevice(t))
	buf := make([]byte, 1024)
	mr := u.register(buf, rnic.LocalWrite)
	if err := u.qp.PostRecv(rnic.RecvWR{ID: 1, SGL: []rnic.SGE{mr.SGE(0, len(buf))}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := u.qp.Connect(ctx, s.rdma(), rnic.ConnParam{MPA: settled(mpa.Config{})}); err != nil {
		t.Fatal(err)
	}
	var e xdr.Encoder
	for _, word := range []uint32{xidNULL, 1, 1, 0, 0, 0, 0} { // version 1, one credit, RDMA_MSG, no chunks
		e.Uint32(word)
	}
	call := oncrpc.Call{XID: xidNULL, Program: 100003, Version: 3}
	if err := call.Encode(&e); err != nil {
		t.Fatal(err)
	}
	message := u.register(e.AppendTo(nil), 0)
	u.do(rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{message.SGE(0, e.Len())}})
	wc := u.next()
	if err := wc.Err(); err != nil {
		t.Fatal(err)
	}
	d := xdr.NewDecoder(buf[:wc.ByteLen])
	xid, version, credits, proc := d.Uint32(), d.Uint32(), d.Uint32(), d.Uint32()
	chunks := [3]bool{d.Bool(), d.Bool(), d.Bool()}
	if err := checkNULL(d); err != nil || xid != xidNULL || version != 1 || credits == 0 || proc != 0 || chunks != [3]bool{} {
		t.Errorf("xid %x, version %d, %d credits, type %d, chunks %v: %v", xid, version, credits, proc, chunks, err)
	}
	u.disconnect()
}

// The kernel's client at the kernel's server, both on siw, by way of this machine: all
// the others that use the same lab and workload can trust them.
func TestKernelNFSClientAtKernelServer(t *testing.T) {
	s := startNFS(t, theGuest)
	m := theGuest.mountNFS(t, s.target(exportRW))
	m.workload(t, "-s", "1", "-e", "50", "-t", "2", "-w", "2", "-p", "files,direct,tree,dirs,rename,links,attr,concurrent,remount")
	if stats := m.stats(t); !strings.Contains(stats, "xprt:\trdma ") {
		t.Errorf("the mount does not use RDMA:\n%s", stats)
	}

	// The server ends and starts again, and the mount goes on.
	theGuest.run(t, "echo before >"+m.dir+"/file")
	s.kill(t)
	p := theGuest.start(t, fmt.Sprintf("echo trying; cat %s/file; echo after >>%[1]s/file; cat %[1]s/file", m.dir))
	p.expect("trying")
	s.start(t)
	if out := p.wait(); out != "trying\nbefore\nbefore\nafter" {
		t.Errorf("after the server was restarted: %q", out)
	}
	m.unmount(t)

	target := s.target(exportRO)
	target.tcp, target.port = true, theGuest.ports[portNFS]
	ro := theGuest.mountNFS(t, target)
	if out := theGuest.run(t, "cat "+ro.dir+"/readme"); out != readme {
		t.Errorf("readme is %q", out)
	}
	if out, err := theGuest.try(t, "LC_ALL=C touch "+ro.dir+"/new"); err == nil || !strings.Contains(out, "Read-only file system") {
		t.Errorf("writing to what is exported read-only: %v, %s", err, out)
	}
}

// The workload passes on a file system that is known to be right, and fails on one that is
// full: what it says of others can be believed.
func TestWorkload(t *testing.T) {
	script := "lab/guest/nfs-workload.sh"
	if out, err := exec.Command(script, "-s", "8", "-e", "300", t.TempDir()).CombinedOutput(); err != nil {
		t.Errorf("on this machine: %v\n%s", err, out)
	}
	out, err := theGuest.try(t, "mkdir /tmp/small && mount -t tmpfs -o size=1m tmpfs /tmp/small || exit 9; "+
		"nfs-workload.sh -s 2 -p files /tmp/small; status=$?; umount /tmp/small; exit $status")
	if err == nil || !containsAll(out, []string{"FAILED  2 files of 2 MiB are written", "No space left on device", "ok      all is removed"}) {
		t.Errorf("on a tmpfs that is full: %v\n%s", err, out)
	}
}
