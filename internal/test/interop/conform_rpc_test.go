//go:build interop

package interop

import (
	"fmt"
	"net"
	"testing"

	"urnic/conformance"
	"urnic/conformance/cases"
	"urnic/conformance/profile"
)

// pageOfKernelRPC explains what the suite finds in the kernel's RPC-over-RDMA.
const pageOfKernelRPC = project + "/docs/conformance-svcrdma.md"

// TestConformanceOfKernelRPC runs the cases of RPC-over-RDMA against the kernel's server,
// with an export, but for what crashes it, and against its client, which mounts again and
// again. Each failure is one
// that docs/conformance-svcrdma.md explains, and each that it explains is seen.
func TestConformanceOfKernelRPC(t *testing.T) {
	f := &findings{
		file: pageOfKernelRPC, target: "Linux RPC-over-RDMA on siw",
		page: readPage(t, pageOfKernelRPC), failed: map[string]conformance.Result{},
	}
	g := bootFor(t, "conform-rpc")
	s := &nfsServer{g: g}
	s.start(t) // it can't be stopped after that: the guest goes as a whole
	t.Run("server", func(t *testing.T) {
		export := profile.Export{Path: "/export/rw", Mount: s.mount()}
		f.run(t, cases.All(), profile.NewRPCRDMA(s.rdma(), nil, patienceWithSIW, export), true, nil)
	})
	t.Run("client", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		mountAgain(t, g, l.Addr().(*net.TCPAddr).Port)
		f.run(t, cases.All(), profile.NewRPCRDMA("", l.(*net.TCPListener), patienceWithSIW, profile.Export{}), false, nil)
	})
	f.compare(t)
}

// mountAgain has the guest mount from a port of this machine again and again. The file
// handle comes from the guest's own MOUNT. It gives up soon, but not before the tester
// has seen that it does not.
func mountAgain(t *testing.T, g *guest, port int) {
	t.Helper()
	const options = "vers=3,rdma,mountaddr=127.0.0.1,mountproto=tcp,nolock,soft,timeo=20,retrans=1,retry=0"
	g.start(t, fmt.Sprintf("mkdir -p /mnt/conform; while :; do timeout 5 mount -t nfs -o %s,port=%d,mountport=%d %s:/export/rw /mnt/conform 2>&1; umount -fl /mnt/conform 2>/dev/null; done",
		options, port, portMount, hostOfGuest))
}
