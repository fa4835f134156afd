//go:build dropin

package dropintest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// libfabric's provider verbs, as connections, as reliable datagrams over these or over unreliable ones, and bare. It leaves out the
// interface lo.
func TestPackageLibfabric(t *testing.T) {
	for _, provider := range []string{"verbs msg", "verbs;ofi_rxm rdm", "verbs;ofi_rxd rdm", "verbs dgram"} {
		for _, transport := range []string{"iwarp", "ethernet"} {
			name, kind, _ := strings.Cut(provider, " ")
			if transport == "iwarp" && (kind == "dgram" || strings.HasSuffix(name, "rxd")) {
				continue // iWARP has no datagrams
			}
			t.Run(provider+" "+transport, func(t *testing.T) {
				t.Parallel()
				const port = 47592
				n := oneHost(t)
				line := []string{"fi_pingpong", "-p", name, "-e", kind, "-c"}
				server := n.start(t, interpose.runArgs("--transport "+transport, line...))
				server.listens(n, port)
				client := n.start(t, interpose.runArgs("--transport "+transport, append(line, "192.0.2.1")...))
				size := "\n1m " // the largest, or that of a datagram
				if kind == "dgram" {
					size = "\n1k "
				}
				wantText(t, client.wait(), size, 1)
				server.wait()
			})
		}
	}
}

// DAPL's provider cma connects by rdma_cm, and scm by ibv_modify_qp.
func TestPackageDAPL(t *testing.T) {
	dir := directory(t)
	conf := filepath.Join(dir, "dat.conf")
	const providers = `cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "192.0.2.1 0" ""
scm u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 "urnic0 1" ""
`
	if err := os.WriteFile(conf, []byte(providers), 0o644); err != nil { //nolint:gosec // for the unprivileged user
		t.Fatal(err)
	}
	for _, provider := range []string{"cma iwarp", "cma ethernet", "scm ethernet"} {
		t.Run("dtest "+provider, func(t *testing.T) {
			t.Parallel()
			const port = 15828
			name, transport, _ := strings.Cut(provider, " ")
			n := oneHost(t)
			line, env := "dtest -b 65536 -P "+name, "DAT_OVERRIDE="+conf
			server := n.start(t, interpose.run("--transport "+transport, line), env)
			server.listens(n, port)
			client := n.start(t, interpose.run("--transport "+transport, line+" -h 192.0.2.1"), env)
			wantText(t, client.wait(), "DAPL Test Complete. PASSED", 1)
			wantText(t, server.wait(), "DAPL Test Complete. PASSED", 1)
		})
	}
}
