package main

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"urnic/internal/host/infosock"
)

// asCommand makes the test program be urnic: what `urnic run` executes takes its place.
const asCommand = "URNIC_TEST_AS_COMMAND"

// libraries makes a directory with files of the names of the drop-in library.
func libraries(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "lib")
	for _, name := range []string{"liburnic.so", "liburnic-engine.so", "replace/libibverbs.so.1", "replace/librdmacm.so.1"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// command returns urnic as a process, in an environment with nothing of ours.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("urnic run is for Linux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LD_") && !strings.HasPrefix(v, "URNIC_") && !strings.HasPrefix(v, "XDG_RUNTIME_DIR=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, asCommand+"=1", "XDG_RUNTIME_DIR="+t.TempDir()) // where views of sysfs go
	return cmd
}

// The program gets the library, and what was preloaded before.
func TestRunSetsTheEnvironment(t *testing.T) {
	lib := libraries(t)
	preload, path := filepath.Join(lib, "liburnic.so"), filepath.Join(lib, "replace")
	for name, tc := range map[string]struct {
		flags []string
		outer []string
		want  map[string]string
	}{
		"interpose": {nil, nil, map[string]string{"LD_PRELOAD": preload, "LD_LIBRARY_PATH": ""}},
		"replace":   {[]string{"--mode", "replace"}, nil, map[string]string{"LD_PRELOAD": "", "LD_LIBRARY_PATH": path}},
		"beside others": {
			nil,
			[]string{"LD_PRELOAD=/a.so b.so", "LD_LIBRARY_PATH=/c"},
			map[string]string{"LD_PRELOAD": preload + ":/a.so:b.so", "LD_LIBRARY_PATH": "/c"},
		},
		"replace beside others": {
			[]string{"--mode=replace"},
			[]string{"LD_PRELOAD=/a.so", "LD_LIBRARY_PATH=/c:/d"},
			map[string]string{"LD_PRELOAD": "/a.so", "LD_LIBRARY_PATH": path + ":/c:/d"},
		},
		"within another run": {
			nil,
			[]string{"LD_PRELOAD=" + preload + ":/a.so", "LD_LIBRARY_PATH=" + path + ":/c"},
			map[string]string{"LD_PRELOAD": preload + ":/a.so", "LD_LIBRARY_PATH": "/c"},
		},
		"replace within another run": {
			[]string{"--mode", "replace"},
			[]string{"LD_PRELOAD=/elsewhere/liburnic.so"},
			map[string]string{"LD_PRELOAD": "", "LD_LIBRARY_PATH": path},
		},
		"settings": {
			[]string{"--strict", "--transport", "ethernet", "--crc", "off", "--log", "debug", "--pcap", "/x/%p.pcapng", "--rendezvous", "192.0.2.1", "--device", "mlx5_0", "--devices", "127.0.0.1,127.0.0.2"},
			[]string{"URNIC_LOG=error", "URNIC_RENDEZVOUS=off"},
			map[string]string{"URNIC_DEVICES": "127.0.0.1,127.0.0.2", "URNIC_DEVICE": "mlx5_0", "URNIC_RENDEZVOUS": "192.0.2.1", "URNIC_STRICT": "1", "URNIC_CRC": "off", "URNIC_TRANSPORT": "ethernet", "URNIC_LOG": "debug", "URNIC_PCAP": "/x/%p.pcapng"},
		},
		"urnic top":                         {[]string{"--top", "/x/y"}, []string{"URNIC_TOP=/z"}, map[string]string{"URNIC_TOP": "/x/y"}},
		"urnic top off":                     {[]string{"--top", "off"}, []string{"URNIC_TOP=/z"}, map[string]string{"URNIC_TOP": "off"}},
		"urnic top as the environment says": {nil, []string{"URNIC_TOP=/z"}, map[string]string{"URNIC_TOP": "/z"}},
		"urnic top by default":              {nil, []string{"XDG_RUNTIME_DIR=/tmp/nowhere"}, map[string]string{"URNIC_TOP": "/tmp/nowhere/urnic"}},
		"settings of the environment": {
			nil,
			[]string{"URNIC_LOG=info", "URNIC_STRICT=1", "URNIC_RENDEZVOUS_PORT=9", "URNIC_RENDEZVOUS=off"},
			map[string]string{"URNIC_RENDEZVOUS": "off", "URNIC_LOG": "info", "URNIC_STRICT": "1", "URNIC_RENDEZVOUS_PORT": "9", "URNIC_TRANSPORT": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, slices.Concat([]string{"run", "--lib", lib}, tc.flags, []string{"env"})...)
			cmd.Env = append(cmd.Env, tc.outer...)
			out, err := cmd.Output() // that the library is none is told on standard error
			if err != nil {
				t.Fatal(err)
			}
			env := strings.Split(string(out), "\n")
			for name, want := range tc.want {
				if got, _ := lookup(env, name); got != want {
					t.Errorf("%s is %q; want %q", name, got, want)
				}
			}
		})
	}
}

// A file's name that is relative is so from where urnic is, wherever the program goes.
func TestRunMakesTheNameOfTheRecordingAbsolute(t *testing.T) {
	lib := libraries(t)
	t.Chdir(t.TempDir())
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	out := ok(t, "run", "--lib", lib, "--pcap", "x%p.pcapng", "--print-env")
	if want := "export URNIC_PCAP='" + filepath.Join(wd, "x%p.pcapng") + "'\n"; !strings.Contains(out, want) {
		t.Errorf("%q; want %q", out, want)
	}
}

// Process ID and exit status are the program's, and so are flags that follow it.
func TestRunExecutesTheProgramInItsPlace(t *testing.T) {
	cmd := command(t, "run", "--lib", libraries(t), "sh", "-c", `echo "$$ $1"; exit 7`, "sh", "--mode")
	out, err := cmd.Output()
	var status *exec.ExitError
	if !errors.As(err, &status) || status.ExitCode() != 7 {
		t.Errorf("%v; want status 7", err)
	}
	if want := fmt.Sprintf("%d --mode\n", cmd.Process.Pid); string(out) != want {
		t.Errorf("%q; want %q", out, want)
	}
}

// Scripts start what is in the background with SIGINT ignored, and nohup with SIGHUP: so
// they are for the program, too.
func TestRunLeavesIgnoredSignalsIgnored(t *testing.T) {
	cmd := command(t)
	sh := exec.CommandContext(t.Context(), "sh", "-c",
		`trap '' INT HUP; exec "$0" run --lib "$1" sh -c 'kill -INT $$; kill -HUP $$; echo alive'`, cmd.Path, libraries(t))
	sh.Env = cmd.Env
	if out, err := sh.Output(); err != nil || string(out) != "alive\n" {
		t.Errorf("%q, %v; want the program to be alive", out, err)
	}
}

// A shell that evaluates what is printed has the program's environment.
func TestRunPrintsTheEnvironmentForAShell(t *testing.T) {
	lib := libraries(t) + "'s"
	if err := os.Rename(strings.TrimSuffix(lib, "'s"), lib); err != nil {
		t.Fatal(err)
	}
	script := `eval "$("$0" run --lib "$1" --mode replace --strict --print-env)"; echo "$LD_LIBRARY_PATH $URNIC_STRICT ${LD_PRELOAD-none}"`
	cmd := command(t)
	sh := exec.CommandContext(t.Context(), "sh", "-c", script, cmd.Path, lib)
	sh.Env = append(cmd.Env, "LD_PRELOAD=/x/liburnic.so")
	out, err := sh.Output()
	if want := filepath.Join(lib, "replace") + " 1 none\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
}

// The library is found where it is installed.
func TestRunFindsTheLibrary(t *testing.T) {
	for _, place := range []string{".", "../lib", "../lib/urnic"} {
		t.Run(place, func(t *testing.T) {
			cmd := command(t, "run", "--print-env")
			cmd.Env = append(cmd.Env, "URNIC_TOP=off")
			bin := filepath.Join(t.TempDir(), "bin")
			lib := filepath.Join(bin, place)
			if err := os.CopyFS(lib, os.DirFS(libraries(t))); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(bin, 0o755); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(cmd.Path)
			if err != nil {
				t.Fatal(err)
			}
			cmd.Path = filepath.Join(bin, "urnic")
			if err := os.WriteFile(cmd.Path, b, 0o755); err != nil {
				t.Fatal(err)
			}
			out, err := cmd.Output()
			if want := "export LD_PRELOAD='" + filepath.Join(lib, "liburnic.so") + "'\n"; err != nil || string(out) != want {
				t.Errorf("%q, %v; want %q", out, err, want)
			}
		})
	}
}

// program writes an ELF file that has nothing but what is looked at.
func program(t *testing.T, machine elf.Machine, linker string) string {
	t.Helper()
	const head, entry = 64, 56
	h := elf.Header64{
		Ident:   [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:    uint16(elf.ET_DYN),
		Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Phoff: head, Ehsize: head, Phentsize: entry, Phnum: 1, Shentsize: 64,
	}
	p := elf.Prog64{Type: uint32(elf.PT_LOAD)}
	if linker != "" {
		p = elf.Prog64{Type: uint32(elf.PT_INTERP), Off: head + entry, Filesz: uint64(len(linker) + 1)}
	}
	b, err := binary.Append(nil, binary.LittleEndian, h)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = binary.Append(b, binary.LittleEndian, p); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, append(b, linker+"\x00"...), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRunErrors(t *testing.T) {
	lib, none := libraries(t), t.TempDir()
	machine, other := elf.EM_X86_64, elf.EM_AARCH64
	if runtime.GOARCH == "arm64" {
		machine, other = other, machine
	}
	library := filepath.Join(lib, shimFile)
	if err := os.Rename(program(t, machine, ""), library); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(none, "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	colon := libraries(t) + ":1"
	if err := os.Rename(strings.TrimSuffix(colon, ":1"), colon); err != nil {
		t.Fatal(err)
	}
	formless := filepath.Join(none, "formless")
	if err := os.WriteFile(formless, []byte("exit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := func(interpreter string) string {
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte("#! "+interpreter+" -x\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, tc := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"no program":                             {[]string{"--lib", lib}, statusOfRun, "no program to run"},
		"a program to print":                     {[]string{"--print-env", "rping"}, statusOfRun, "executes nothing"},
		"a wrong mode":                           {[]string{"--mode", "under", "x"}, statusOfRun, `--mode "under": give interpose, replace`},
		"a wrong rendezvous":                     {[]string{"--rendezvous", "on", "x"}, statusOfRun, `--rendezvous "on": give an address`},
		"a wrong transport":                      {[]string{"--transport", "ib", "x"}, statusOfRun, `--transport "ib": give iwarp, ethernet`},
		"a wrong policy":                         {[]string{"--crc", "on", "x"}, statusOfRun, `--crc "on": give prefer, require, off`},
		"a wrong level":                          {[]string{"--log", "loud", "x"}, statusOfRun, `--log "loud": give error, warning, info, debug`},
		"a wrong device":                         {[]string{"--device", "a/b", "x"}, statusOfRun, `--device "a/b": give a name of letters`},
		"no library":                             {[]string{"--lib", none, "x"}, statusOfRun, "no liburnic.so, liburnic-engine.so in " + none + " (--lib): build it with `make liburnic`"},
		"no library at all":                      {[]string{"x"}, statusOfRun, "give its directory with --lib"},
		"a colon":                                {[]string{"--lib", colon, "x"}, statusOfRun, "install urnic elsewhere"},
		"not in PATH":                            {[]string{"--lib", lib, "no-such-program"}, statusNoSuchFile, "there is no program no-such-program in $PATH"},
		"not there":                              {[]string{"--lib", lib, none + "/x"}, statusNoSuchFile, "there is no program " + none + "/x"},
		"not executable":                         {[]string{"--lib", lib, plain}, statusUnfit, "permission denied"},
		"static":                                 {[]string{"--lib", lib, program(t, machine, "")}, statusUnfit, "is linked statically"},
		"musl":                                   {[]string{"--lib", lib, program(t, machine, "/lib/ld-musl-x86_64.so.1")}, statusUnfit, "is linked to musl"},
		"another processor":                      {[]string{"--lib", lib, program(t, other, "/lib/ld.so")}, statusUnfit, "is for EM_"},
		"a wrong flag":                           {[]string{"--modus", "x"}, statusOfRun, "unknown flag: --modus"},
		"a directory":                            {[]string{"--lib", lib, none}, statusUnfit, none + " is a directory"},
		"no dynamic linker":                      {[]string{"--lib", lib, program(t, machine, none+"/ld.so")}, statusUnfit, "wants the dynamic linker " + none + "/ld.so, which is not there"},
		"no interpreter":                         {[]string{"--lib", lib, script(none + "/perl")}, statusUnfit, "wants the interpreter " + none + "/perl, which is not there"},
		"a static interpreter":                   {[]string{"--lib", lib, script(program(t, machine, ""))}, statusUnfit, "is linked statically"},
		"a script of a script of no interpreter": {[]string{"--lib", lib, script(script(none + "/perl"))}, statusUnfit, "can't be executed"},
		"no format":                              {[]string{"--lib", lib, formless}, statusUnfit, "exec format error"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, append([]string{"run"}, tc.args...)...)
			var errOut strings.Builder
			cmd.Stderr = &errOut
			if err := cmd.Run(); err == nil {
				t.Fatal("it succeeds")
			}
			wantErrorStatus(t, tc.args, tc.status, cmd.ProcessState.ExitCode(), errOut.String(), tc.want)
		})
	}
}

// A program that takes its owner's rights gets no library, so it is refused.
func TestRunRefusesProgramsThatGainRights(t *testing.T) {
	lib := libraries(t)
	for name, tc := range map[string]struct {
		mode     os.FileMode
		uid, gid int
		want     string
	}{
		"setuid": {os.ModeSetuid | 0o755, 65534, 0, "is setuid"},
		"setgid": {os.ModeSetgid | 0o755, 0, 65534, "is setgid"},
	} {
		t.Run(name, func(t *testing.T) {
			file := ""
			if os.Getuid() == 0 {
				file = program(t, elf.EM_X86_64, "/lib/ld.so")
				if err := errors.Join(os.Chown(file, tc.uid, tc.gid), os.Chmod(file, tc.mode)); err != nil {
					t.Fatal(err)
				}
			} else { // who can't make a file that is another user's, but knows some
				file = installed(t, tc.mode&^os.ModePerm)
			}
			status, _, errOut := urnic(t, nil, "run", "--lib", lib, file)
			wantErrorStatus(t, nil, statusUnfit, status, errOut, tc.want)
		})
	}
}

// installed returns a program of the system that takes the rights of another user or group.
func installed(t *testing.T, mode os.FileMode) string {
	t.Helper()
	names := []string{"su", "passwd", "mount", "newgrp", "chage", "expiry", "chsh", "crontab", "ssh-agent", "unix_chkpwd"}
	for _, dir := range []string{"/bin", "/usr/bin", "/usr/sbin", "/sbin"} {
		for _, name := range names {
			file := filepath.Join(dir, name)
			info, err := os.Stat(file)
			if err == nil && info.Mode()&mode != 0 && info.Mode()&0o004 != 0 { // root's, and readable for all
				return file
			}
		}
	}
	t.Fatalf("this user can't make a program that is another's, and none of %v is: run the test as root", names)
	return ""
}

// Where urnic itself has more rights than its user, the user's environment does not say
// where the library is.
func TestRunWithMoreRightsThanItsUserIgnoresTheEnvironment(t *testing.T) {
	cmd := command(t, "run", "--print-env")
	cmd.Env = append(cmd.Env, "URNIC_TOP=off")
	if os.Getuid() != 0 {
		// Only root can make a file of a group that it is not in.
		if os.Getenv("CI") != "" {
			t.Fatal("needs root")
		}
		t.Skip("needs root")
	}
	b, err := os.ReadFile(cmd.Path)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path = filepath.Join(t.TempDir(), "urnic")
	lib, given := filepath.Dir(cmd.Path), libraries(t)
	if err := os.CopyFS(lib, os.DirFS(libraries(t))); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, "URNIC_LIB="+given)
	for mode, want := range map[os.FileMode]string{0o755: given, os.ModeSetgid | 0o755: lib} {
		cmd := *cmd
		if err := errors.Join(
			os.WriteFile(cmd.Path, b, 0o755), os.Chown(cmd.Path, 0, 65534), os.Chmod(cmd.Path, mode),
		); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.Output()
		if want := "export LD_PRELOAD='" + filepath.Join(want, "liburnic.so") + "'\n"; err != nil || string(out) != want {
			t.Errorf("mode %v: %q, %v; want %q", mode, out, err, want)
		}
	}
}

// The view of sysfs and the sockets of processes that show what they have are in directories of their own: only this
// user may enter that of the sockets.
func TestRunLeavesTheDirectoryOfSocketsAlone(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("XDG_RUNTIME_DIR", "")
	cmd := command(t, "run", "--lib", libraries(t), "--", "sh", "-c", "echo $URNIC_SYSFS")
	cmd.Env = append(cmd.Env, "TMPDIR="+dir, "XDG_RUNTIME_DIR=")
	if out, err := cmd.Output(); err != nil || !strings.HasPrefix(string(out), dir+"/") {
		t.Fatalf("the view is %q, %v", out, err)
	}
	s, err := infosock.Serve("", "rnic", func() any { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
