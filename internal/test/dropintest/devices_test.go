//go:build dropin

package dropintest

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

func TestNoRDMADeviceIsThere(t *testing.T) {
	if _, err := os.Stat("/dev/infiniband"); err == nil {
		t.Error("this machine has /dev/infiniband: the tests don't show that programs do without")
	}
}

func TestDevices(t *testing.T) {
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		out := newNetwork(t).start(t, m.run("", "ibv_devices")).wait()
		if !regexp.MustCompile(`(?m)^\s+urnic0\s+[0-9a-f]{16}$`).MatchString(out) {
			t.Errorf("ibv_devices lists no urnic0:\n%s", out)
		}
	})
}

func TestDevinfo(t *testing.T) {
	for flags, want := range map[string][]string{
		"": {
			`transport:\s+iWARP \(1\)`, `state:\s+PORT_ACTIVE \(4\)`, `link_layer:\s+Ethernet`,
			`GID\[ *0\]:\s+::ffff:127.0.0.1|GID\[ *0\]:\s+0000:0000:0000:0000:0000:ffff:7f00:0001`,
			`max_qp:\s+[1-9]`, `max_mr_size:\s+0x[0-9a-f]*[1-9a-f]`, `phys_port_cnt:\s+1`,
		},
		"--transport ethernet": {`transport:\s+InfiniBand \(0\)`, `link_layer:\s+Ethernet`, `state:\s+PORT_ACTIVE \(4\)`},
	} {
		t.Run(flags, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				out := newNetwork(t).start(t, m.run(flags, "ibv_devinfo -v")).wait()
				for _, s := range append(want, `hca_id:\s+urnic0`) {
					if !regexp.MustCompile(s).MatchString(out) {
						t.Errorf("ibv_devinfo -v shows nothing like %s:\n%s", s, out)
					}
				}
			})
		})
	}
}

func TestAsyncwatch(t *testing.T) {
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		p := newNetwork(t).start(t, m.run("", "ibv_asyncwatch"))
		p.says("async event FD")
		p.interrupt(syscall.SIGTERM)
		if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGTERM {
			t.Errorf("ibv_asyncwatch ended with %v, not by the signal", p.cmd.ProcessState)
		}
	})
}

// The variables that docs/drop-in.md gives do what `urnic run` does.
func TestPlainEnvironmentVariables(t *testing.T) {
	for name, env := range map[string][]string{
		"interpose": {"LD_PRELOAD=" + library("liburnic.so")},
		"replace":   {"LD_LIBRARY_PATH=" + library("replace")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := newNetwork(t).start(t, []string{"ibv_devices"}, env...).wait()
			wantText(t, out, "urnic0", 1)
		})
	}
}

// In replace mode nothing of the distribution's is loaded.
func TestReplaceModeLoadsNothingOfTheDistribution(t *testing.T) {
	out := newNetwork(t).start(t, []string{"ib_send_bw"}, "LD_TRACE_LOADED_OBJECTS=1", "LD_LIBRARY_PATH="+library("replace")).wait()
	// libibverbs and librdmacm are one file, which the loader lists by one of the names.
	for _, name := range []string{"librdmacm.so.1", "libmlx5.so.1", "libefa.so.1"} {
		if !strings.Contains(out, name+" => "+installed) {
			t.Errorf("%s is not ours:\n%s", name, out)
		}
	}
	if strings.Contains(out, "libibverbs.so.1 => /") && !strings.Contains(out, "libibverbs.so.1 => "+installed) {
		t.Errorf("libibverbs is not ours:\n%s", out)
	}
}
