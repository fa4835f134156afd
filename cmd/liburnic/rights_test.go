//go:build dropin

package main_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// capabilities gives a file one capability: CAP_NET_RAW.
func capabilities(file string) error {
	var data [20]byte // struct vfs_cap_data
	binary.LittleEndian.PutUint32(data[:], 0x02000000|1 /* VFS_CAP_REVISION_2, VFS_CAP_FLAGS_EFFECTIVE */)
	binary.LittleEndian.PutUint32(data[4:], 1<<unix.CAP_NET_RAW)
	return unix.Setxattr(file, "security.capability", data[:], 0)
}

// A program that has more rights than its user has the library where root has put it,
// and no setting of the user's counts.
func TestSettingsOfProgramsWithMoreRights(t *testing.T) {
	lib := libraries(t)
	if os.Getuid() != 0 {
		// Only root can give a file rights that the user has not.
		if os.Getenv("CI") != "" {
			t.Fatal("needs root")
		}
		t.Skip("needs root")
	}
	dir := filepath.Join(built, "rights") // an ordinary user can read it
	for _, d := range []string{built, dir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(dir, os.DirFS(lib)); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out") // and may write here
	if err := os.Mkdir(out, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(out, 0o777); err != nil {
		t.Fatal(err)
	}
	view := filepath.Join(dir, "view")
	if err := os.MkdirAll(filepath.Join(view, "class/infiniband/of-a-test"), 0o755); err != nil {
		t.Fatal(err)
	}
	recording := filepath.Join(out, "recording.pcapng")
	file := filepath.Join(dir, "settings")
	if err := command("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", file, "testdata/settings.c",
		"-Wl,-rpath,"+filepath.Join(dir, "replace"), "-libverbs"); err != nil {
		t.Fatal(err)
	}
	for name, grant := range map[string]func() error{
		"none":         func() error { return os.Chmod(file, 0o755) },
		"setuid":       func() error { return os.Chmod(file, os.ModeSetuid|0o755) },
		"setgid":       func() error { return os.Chmod(file, os.ModeSetgid|0o755) },
		"capabilities": func() error { return errors.Join(os.Chmod(file, 0o755), capabilities(file)) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := grant(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := unix.Removexattr(file, "security.capability"); err != nil && !errors.Is(err, unix.ENODATA) {
					t.Error(err)
				}
			}()
			for setting, want := range map[string]string{ // what the device is if the setting counts
				"":                                     "secure 0, RNIC\n",
				"URNIC_TRANSPORT=ethernet":             "secure 0, CA\n",
				"URNIC_TRANSPORT=ib":                   "secure 0, no device\n",
				"URNIC_STRICT=2":                       "secure 0, no device\n",
				"URNIC_LOG=all":                        "secure 0, no device\n",
				"URNIC_RENDEZVOUS_PORT=0":              "secure 0, no device\n",
				"URNIC_SETTLE=soon":                    "secure 0, no device\n",
				"URNIC_ENGINE=/nowhere/engine.so":      "secure 0, no device\n",
				"URNIC_PCAP=/nowhere/recording.pcap":   "secure 0, no device\n",
				"URNIC_DEVICE=a/b":                     "secure 0, no device\n",
				"URNIC_DEVICES=0":                      "secure 0, no device\n",
				"URNIC_SYSFS=" + view:                  "secure 0, RNIC, view\n",
				"URNIC_PCAP=" + recording:              "secure 0, RNIC\n",
				"URNIC_PCAP=" + recording + "-%p.pcap": "secure 0, RNIC\n",
			} {
				if name != "none" {
					want = "secure 1, RNIC\n"
				}
				cmd := exec.CommandContext(t.Context(), file)
				cmd.Dir = out
				cmd.Env = slices.DeleteFunc([]string{setting}, func(s string) bool { return s == "" })
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
				got, err := cmd.Output()
				if err != nil || string(got) != want {
					t.Errorf("%s: %v: %q; want %q", setting, err, got, want)
				}
			}
			made, err := os.ReadDir(out)
			if err != nil || (len(made) == 2) != (name == "none") || len(made) > 2 {
				t.Errorf("recordings: %v, %v", made, err)
			}
			for _, f := range made {
				if info, err := f.Info(); err != nil || fmt.Sprint(info.Mode()) != "-rw-------" {
					t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
				}
				if err := os.Remove(filepath.Join(out, f.Name())); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
