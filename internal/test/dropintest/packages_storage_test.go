//go:build dropin

package dropintest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tgtd is an iSCSI target, here by iSER, and libiscsi's tools are its initiators. tgtd lets an initiator in by iSER only if its name
// and its address are both allowed (by TCP, one of them will do): it says "target not found" otherwise.
func TestPackageISER(t *testing.T) {
	const (
		name = "iqn.2020-01.test:target"
		self = "iqn.2020-01.test:initiator"
		disk = " iser://127.0.0.1:3260/" + name + "/1"
	)
	for _, transport := range []string{"iwarp", "ethernet"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			n, dir := newNetwork(t), directory(t)
			file, env := filepath.Join(dir, "disk"), "TGT_IPC_SOCKET="+filepath.Join(dir, "ipc")
			if err := os.WriteFile(file, nil, 0o666); err != nil { //nolint:gosec // for the unprivileged user
				t.Fatal(err)
			}
			if err := os.Chmod(file, 0o666); err != nil { //nolint:gosec // the same
				t.Fatal(err)
			}
			if err := os.Truncate(file, 32<<20); err != nil {
				t.Fatal(err)
			}
			// The portal of iSCSI over TCP may not have the port of iSER, 3260: both are TCP here.
			n.start(t, interpose.run("--transport "+transport, "tgtd -f --iscsi portal=127.0.0.1:3262 --iser pool_sz_mb=64"), env).listens(n, 3260)
			until(t, "tgtd takes orders", func() bool {
				p := n.start(t, strings.Fields("tgtadm --lld iser --mode system --op show"), env)
				p.ends()
				return p.err == nil
			})
			for _, order := range []string{
				"target --op new --tid 1 -T " + name,
				"logicalunit --op new --tid 1 --lun 1 -b " + file,
				"target --op bind --tid 1 -I ALL",
				"target --op bind --tid 1 -Q " + self,
			} {
				n.start(t, strings.Fields("tgtadm --lld iser --mode "+order), env).wait()
			}
			initiator := func(line string) string {
				return n.start(t, interpose.run("--transport "+transport, line+" -i "+self+disk)).wait()
			}
			wantText(t, initiator("iscsi-inq"), "Product:VIRTUAL-DISK", 1)
			for _, suite := range []string{"Read10.Simple", "Read16.Simple", "Write10.Simple", "Write16.Simple", "CompareAndWrite.Simple", "ReadCapacity10.Simple"} {
				out := initiator("iscsi-test-cu -d -t ALL." + suite)
				if !regexp.MustCompile(`Test: Simple \.\.\.(.*\n)*? *passed|Test: Simple \.\.\.passed`).MatchString(out) {
					t.Errorf("%s:\n%s", suite, tail(out))
				}
			}
		})
	}
}
