package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("urnic sysfs is for Linux")
	}
}

func TestSysfsWritesAndRemovesADirectory(t *testing.T) {
	onLinux(t)
	dir := filepath.Join(t.TempDir(), "sys")
	ok(t, "sysfs", "--device", "mlx5_0", dir)
	ok(t, "sysfs", "--transport", "ethernet", dir)
	for name, want := range map[string]string{
		"urnic0/node_type": "1: CA\n", "urnic0/ports/1/link_layer": "Ethernet\n", "urnic0/ports/1/gid_attrs/types/0": "RoCE v2\n", "mlx5_0/node_type": "",
	} {
		if b, _ := os.ReadFile(filepath.Join(dir, "class/infiniband", name)); string(b) != want {
			t.Errorf("%s has %q; want %q", name, b, want)
		}
	}
	ok(t, "sysfs", "--device", "mlx5_0", "--devices", "127.0.0.2,127.0.0.3+127.0.0.4", dir)
	if b, _ := os.ReadFile(filepath.Join(dir, "class/infiniband/mlx5_1/ports/2/gids/0")); string(b) != "0000:0000:0000:0000:0000:ffff:7f00:0004\n" {
		t.Errorf("the second port of the second device has GID %q", b)
	}
	ok(t, "sysfs", "--remove", dir)
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory is still there")
	}
}

func TestSysfsSaysWhatIsWrong(t *testing.T) {
	onLinux(t)
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"was not written by urnic":           {foreign},
		"written by urnic: nothing":          {"--remove", foreign},
		"accepts 1 arg":                      {},
		`--device "a b": give a name`:        {"--device", "a b", "x"},
		"1.2.3.4 is no address of this host": {"--devices", "1.2.3.4", "x"},
		`--transport "ib": give iwarp`:       {"--transport", "ib", "x"},
		"stat /none: no such file":           {"/none/sys"},
		"remove /none: file does not":        {"--remove", "/none"},
	} {
		status, out, errOut := urnic(t, nil, append([]string{"sysfs"}, args...)...)
		if status == 0 || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%q: status %d, %q, %q; want %q", args, status, out, errOut, want)
		}
	}
}

// A program gets a view, unless it is not wanted or can't be had.
func TestRunGivesTheProgramAView(t *testing.T) {
	lib, own := libraries(t), filepath.Join(t.TempDir(), "own")
	withView := libraries(t)
	viewLibrary := filepath.Join(withView, "liburnic-sysfs.so")
	if err := os.WriteFile(viewLibrary, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const some = "*" // a directory of the user's
	for name, tc := range map[string]struct {
		flags         []string
		view, preload string
	}{
		"interpose":                      {[]string{"--lib", lib}, some, filepath.Join(lib, "liburnic.so")},
		"replace":                        {[]string{"--lib", withView, "--mode", "replace"}, some, viewLibrary},
		"replace without its library":    {[]string{"--lib", lib, "--mode", "replace"}, "", ""},
		"off":                            {[]string{"--lib", lib, "--sysfs", "off"}, "", filepath.Join(lib, "liburnic.so")},
		"replace, off":                   {[]string{"--lib", withView, "--mode", "replace", "--sysfs", "off"}, "", ""},
		"a directory":                    {[]string{"--lib", lib, "--sysfs", own}, own, filepath.Join(lib, "liburnic.so")},
		"replace, of the same directory": {[]string{"--lib", withView, "--mode", "replace", "--sysfs", own}, own, viewLibrary},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, append(append([]string{"run"}, tc.flags...), "env")...)
			cmd.Env = append(cmd.Env, "URNIC_SYSFS=/of/an/outer/run", "LD_PRELOAD="+viewLibrary)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			env := strings.Split(string(out), "\n")
			preload, _ := lookup(env, "LD_PRELOAD")
			view, _ := lookup(env, "URNIC_SYSFS")
			runtimeDir, _ := lookup(cmd.Env, "XDG_RUNTIME_DIR")
			if tc.view == some && strings.HasPrefix(view, runtimeDir) {
				tc.view = view
			}
			if preload != tc.preload || view != tc.view {
				t.Errorf("LD_PRELOAD %q, URNIC_SYSFS %q; want %q, %q", preload, view, tc.preload, tc.view)
			}
			if view == "" {
				return
			}
			if _, err := os.Stat(filepath.Join(view, "class/infiniband/urnic0/fw_ver")); err != nil {
				t.Error(err)
			}
		})
	}
}

// That there can be no view is told to those who ask for it; the program runs.
func TestRunWithoutAPlaceForAView(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for name, tc := range map[string]struct {
		flags []string
		want  string // on standard error
		fails bool
	}{
		"unasked":  {nil, "", false},
		"warnings": {[]string{"--log", "warning"}, "urnic: the program sees the /sys of the host: ", false},
		"asked":    {[]string{"--sysfs", filepath.Join(nowhere, "sys")}, "urnic: --sysfs: ", true},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"run", "--lib", libraries(t)}, tc.flags...)
			cmd := command(t, append(args, "sh", "-c", "echo \"<$URNIC_SYSFS>\"")...)
			cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+nowhere, "TMPDIR="+nowhere)
			var errOut strings.Builder
			cmd.Stderr = &errOut
			out, err := cmd.Output()
			if (err != nil) != tc.fails || !tc.fails && string(out) != "<>\n" {
				t.Errorf("%q, %v", out, err)
			}
			if tc.want != "" && !strings.Contains(errOut.String(), tc.want) || tc.want == "" && strings.Contains(errOut.String(), "urnic:") {
				t.Errorf("%q; want %q", errOut.String(), tc.want)
			}
		})
	}
}

// What is printed for a shell names a view only where somebody has said where it is.
func TestPrintEnvNamesTheViewThatWasAskedFor(t *testing.T) {
	onLinux(t)
	lib, dir := libraries(t), filepath.Join(t.TempDir(), "sys")
	if out := ok(t, "run", "--lib", lib, "--print-env"); strings.Contains(out, "URNIC_SYSFS") {
		t.Errorf("%q", out)
	}
	if out := ok(t, "run", "--lib", lib, "--print-env", "--sysfs", dir); !strings.Contains(out, "export URNIC_SYSFS='"+dir+"'\n") {
		t.Errorf("%q", out)
	}
}
