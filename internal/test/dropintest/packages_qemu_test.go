//go:build dropin

package dropintest

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// counter is the boot sector of a guest that counts without end, in its memory at 0x8000.
var counter = [512]byte{
	0xfa, 0x31, 0xc0, 0x8e, 0xd8, // cli; xor ax, ax; mov ds, ax
	0x66, 0xff, 0x06, 0x00, 0x80, // inc dword [0x8000]
	0xeb, 0xf9, // jmp back
	510: 0x55, 0xaa,
}

// QEMU migrates a guest that runs, by RDMA: it goes on counting where it was. QEMU sends memory while the guest writes there, so a CRC
// may be another one than that of the bytes that are sent after it was computed.
func TestPackageQEMU(t *testing.T) {
	for _, transport := range []string{"iwarp", "ethernet"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			n, dir := newNetwork(t), directory(t)
			disk := filepath.Join(dir, "boot")
			if err := os.WriteFile(disk, counter[:], 0o644); err != nil { //nolint:gosec // for the unprivileged user
				t.Fatal(err)
			}
			guest := func(name, more string) monitor {
				socket := filepath.Join(dir, name)
				p := n.start(t, interpose.run("--crc off --transport "+transport, "qemu-system-x86_64 -M pc,accel=tcg -m 32 -nodefaults -display none"+
					" -drive file="+disk+",format=raw,if=floppy,readonly=on -qmp unix:"+socket+",server,nowait"+more))
				if more != "" {
					p.listens(n, 4444)
				}
				return connect(t, p, socket)
			}
			to := guest("to", " -incoming rdma:127.0.0.1:4444")
			from := guest("from", "")
			until(t, "the guest counts", func() bool { return from.counts(t) > 1 })
			from.do(t, "migrate", `{"uri": "rdma:127.0.0.1:4444"}`)
			until(t, "the guest has moved", func() bool {
				out := from.do(t, "query-migrate", "{}")
				if strings.Contains(out, "failed") {
					t.Fatalf("%s\nfrom:\n%s\nto:\n%s", out, from.output(), to.output())
				}
				return strings.Contains(out, "completed")
			})
			at := from.counts(t)
			until(t, "the guest goes on", func() bool { return to.counts(t) > at })
			if again := from.counts(t); again != at {
				t.Errorf("the guest goes on where it was, too: from %d to %d", at, again)
			}
		})
	}
}

// A monitor is how a QEMU is told what to do.
type monitor struct {
	*program
	conn net.Conn
	in   *json.Decoder
}

// connect waits until a QEMU listens to its monitor.
func connect(t *testing.T, p *program, socket string) monitor {
	t.Helper()
	m := monitor{program: p}
	until(t, "QEMU has a monitor", func() bool {
		select {
		case <-p.done:
			t.Fatalf("%s: %v\n%s", p.name, p.err, p.output())
		default:
		}
		var err error
		m.conn, err = (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
		return err == nil
	})
	t.Cleanup(func() { _ = m.conn.Close() })
	m.in = json.NewDecoder(m.conn)
	m.do(t, "qmp_capabilities", "{}")
	return m
}

// do carries a command out, and returns what it returns.
func (m monitor) do(t *testing.T, command, arguments string) string {
	t.Helper()
	if _, err := m.conn.Write([]byte(`{"execute": "` + command + `", "arguments": ` + arguments + "}\n")); err != nil {
		t.Fatal(err)
	}
	for {
		var answer struct{ Return, Error json.RawMessage }
		if err := m.in.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		switch {
		case answer.Error != nil:
			t.Fatalf("%s: %s", command, answer.Error)
		case answer.Return != nil:
			return string(answer.Return)
		}
	}
}

// counts returns how far the guest has counted.
func (m monitor) counts(t *testing.T) uint64 {
	t.Helper()
	out := m.do(t, "human-monitor-command", `{"command-line": "xp /1wx 0x8000"}`)
	word := regexp.MustCompile(`: 0x([0-9a-f]+)`).FindStringSubmatch(out)
	if word == nil {
		t.Fatalf("no word in %q", out)
	}
	v, err := strconv.ParseUint(word[1], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
