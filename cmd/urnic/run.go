package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/internal/dropin"
	"urnic/internal/host/infosock"
)

// The files of the drop-in library, and the directory of those that stand in for the
// distribution's.
const (
	shimFile   = "liburnic.so"
	engineFile = "liburnic-engine.so"
	sysfsFile  = "liburnic-sysfs.so" // in mode replace, what shows programs the device in /sys; liburnic.so does it itself
	replaceDir = "replace"
)

// The ways in which a program gets the drop-in library.
const (
	interpose = "interpose"
	replace   = "replace"
)

// The exit statuses of urnic run when there is no program that could have one: those of
// env, nohup and timeout, so that scripts know them from a program's.
const (
	statusOfRun      = 125 // urnic run itself failed
	statusUnfit      = 126 // the program is there, and can't be executed
	statusNoSuchFile = 127 // there is no such program
)

// A statusError is an error that ends urnic with a status of its own.
type statusError struct {
	error
	status int
}

func (e *statusError) Unwrap() error { return e.error }

// runOptions are the flags of urnic run.
type runOptions struct {
	mode, device, devices, transport, log, crc, pcap, lib, rendezvous, sysfs, top, timeline string
	strict, printEnv                                                                        bool
}

func newRunCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [flags] [--] PROGRAM [ARGUMENTS]",
		Short: "Run a program written for libibverbs and librdmacm on urnic",
		Long: `Run executes an unmodified RDMA program. The program finds one device, urnic0 or the one of
--device, which carries iWARP over TCP. Run sets environment variables and then executes the
program in its own place: process ID, standard streams, signals and exit status are the
program's. With --timeline FILE, urnic waits for the program instead, passes
signals on, and then writes when the work requests of the program and its children were
posted, sent, completed and polled: as a page if FILE ends in .html, as a Chrome trace if it
ends in .json. If the program can't be executed, the status is 127 (not found), 126 (it is
there, but can't be executed or can't load the library) or 125 (any other failure of urnic
run).

In mode interpose the library is preloaded over the distribution's libibverbs and librdmacm
(LD_PRELOAD). In mode replace it replaces them (LD_LIBRARY_PATH), for machines without
rdma-core, and for programs that open libibverbs by dlopen.

The libraries are searched in --lib, in $URNIC_LIB, beside urnic, in ../lib and in
../lib/urnic from there. A setting without a flag comes from the environment: from the
variable that is named with the flag, and from URNIC_RENDEZVOUS_PORT, URNIC_SETTLE,
URNIC_TIMES and URNIC_ENGINE. See docs/drop-in.md, also for containers, limits and troubleshooting.`,
		Example: `  urnic run -- rping -s &
  urnic run -- rping -c -a 127.0.0.1 -C 10 -v
  urnic run --mode replace --strict --log warning -- ib_write_bw -R 127.0.0.1
  urnic run --pcap 'traffic-%p.pcapng' -- ibv_rc_pingpong
  urnic run --timeline page.html -- ibv_rc_pingpong 192.0.2.7
  eval "$(urnic run --print-env)"`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.printEnv && len(args) > 0:
				return fmt.Errorf("--print-env executes nothing: leave %q out", args[0])
			case o.printEnv && o.timeline != "":
				return errors.New("--print-env and --timeline exclude each other: a timeline is made when the program has ended")
			case !o.printEnv && len(args) == 0:
				return errors.New("no program to run: urnic run [flags] -- PROGRAM [ARGUMENTS]; see `urnic run --help`")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := o.libraries()
			if err != nil {
				return err
			}
			sysfs, err := o.viewFor(dir, os.Environ(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			env, err := o.environment(dir, sysfs, os.Environ())
			if err != nil {
				return err
			}
			if o.printEnv {
				return printEnv(cmd.OutOrStdout(), env, os.Environ())
			}
			if o.timeline != "" {
				return recordTimeline(cmd.Context(), o.timeline, args, env, filepath.Join(dir, shimFile))
			}
			return execute(args, env, filepath.Join(dir, shimFile))
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows the program is the program's
	f.StringVar(&o.mode, "mode", interpose, "`MODE` in which the library is loaded: interpose or replace")
	f.BoolVar(&o.strict, "strict", false, "refuse what iWARP hardware refuses (URNIC_STRICT)")
	o.addDevice(f)
	f.StringVar(&o.log, "log", "", "log `LEVEL` on standard error: error, warning, info or debug (URNIC_LOG)")
	f.StringVar(&o.crc, "crc", "", "CRC32c `POLICY`: prefer, require or off (URNIC_CRC)")
	f.StringVar(&o.pcap, "pcap", "", "record the traffic into `FILE`; %p in it becomes the process ID (URNIC_PCAP)")
	f.StringVar(&o.rendezvous, "rendezvous", "", "`WHERE` peers connect that don't use rdma_cm: an address of this host, or off (URNIC_RENDEZVOUS)")
	f.StringVar(&o.sysfs, "sysfs", "", "`DIRECTORY` for the /sys and /dev that the program sees, or off (default: a directory of this user)")
	f.StringVar(&o.timeline, "timeline", "", "write a timeline of work requests to `FILE`, .html or .json, when the program has ended")
	f.StringVar(&o.top, "top", "", "`DIRECTORY` in which urnic top finds the program, or off (default: a directory of this user; URNIC_TOP)")
	f.StringVar(&o.lib, "lib", "", "`DIRECTORY` of the libraries (URNIC_LIB)")
	f.BoolVar(&o.printEnv, "print-env", false, "print the variables for a shell, and run no program")
	return cmd
}

// addDevice adds the flags that say what the device is like.
func (o *runOptions) addDevice(f *pflag.FlagSet) {
	f.StringVar(&o.device, "device", "", "`NAME` of the device, such as mlx5_0, for programs that accept no other (URNIC_DEVICE)")
	f.StringVar(&o.devices, "devices", "", "`N` devices, each bound to an address of the host, or the addresses: 192.0.2.1,192.0.2.2 (URNIC_DEVICES)")
	f.StringVar(&o.transport, "transport", "", "`TRANSPORT` that the device reports: iwarp or ethernet (URNIC_TRANSPORT)")
}

// libraries returns the absolute path of the directory of the drop-in library.
func (o *runOptions) libraries() (string, error) {
	if err := o.check(); err != nil {
		return "", err
	}
	var candidates []string
	given, from := o.lib, "--lib"
	if given == "" && !gainedRights() {
		given, from = os.Getenv("URNIC_LIB"), "URNIC_LIB"
	}
	if given != "" {
		candidates = []string{given}
	} else {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("can't find where urnic is installed: give the directory of %s with --lib: %w", shimFile, err)
		}
		if target, err := filepath.EvalSymlinks(self); err == nil {
			self = target
		}
		bin := filepath.Dir(self)
		candidates = []string{bin, filepath.Join(bin, "..", "lib"), filepath.Join(bin, "..", "lib", "urnic")}
	}
	need := []string{shimFile, engineFile}
	if o.mode == replace {
		need = append(need, filepath.Join(replaceDir, "libibverbs.so.1"), filepath.Join(replaceDir, "librdmacm.so.1"))
	}
	for _, dir := range candidates {
		var unreadable error
		missing := slices.DeleteFunc(slices.Clone(need), func(name string) bool {
			f, err := os.Open(filepath.Join(dir, name))
			if err == nil {
				_ = f.Close() // it was only looked at
			} else if !errors.Is(err, fs.ErrNotExist) {
				unreadable = err
			}
			return err == nil
		})
		switch {
		case unreadable != nil:
			return "", fmt.Errorf("the library can't be read: %w", unreadable)
		case len(missing) == 0:
			return filepath.Abs(dir)
		case given != "" || len(missing) < len(need):
			if given != "" {
				dir += " (" + from + ")"
			}
			return "", fmt.Errorf("no %s in %s: build it with `make liburnic`", strings.Join(missing, ", "), dir)
		}
	}
	return "", fmt.Errorf("no %s in %s: build it with `make liburnic`, or give its directory with --lib", shimFile, strings.Join(candidates, ", "))
}

// check returns an error if a flag has none of its values.
func (o *runOptions) check() error {
	for _, f := range []struct {
		name, value string
		values      []string
	}{
		{"mode", o.mode, []string{interpose, replace}},
		{"transport", o.transport, []string{"", "iwarp", "ethernet"}},
		{"crc", o.crc, []string{"", "prefer", "require", "off"}},
		{"log", o.log, []string{"", "error", "warning", "info", "debug"}},
	} {
		if !slices.Contains(f.values, f.value) {
			return fmt.Errorf("--%s %q: give %s", f.name, f.value, strings.TrimPrefix(strings.Join(f.values, ", "), ", "))
		}
	}
	if o.timeline != "" && timelineWriter(o.timeline) == nil {
		return fmt.Errorf("--timeline %q: give a file that ends in .html or .json", o.timeline)
	}
	if o.device != "" && !dropin.ValidDeviceName(o.device) {
		return fmt.Errorf("--device %q: give a name of letters, digits, dots, dashes and underscores, such as mlx5_0", o.device)
	}
	if o.rendezvous != "" && o.rendezvous != "off" {
		if a, err := netip.ParseAddr(o.rendezvous); err != nil || a.IsMulticast() {
			return fmt.Errorf("--rendezvous %q: give an address of this host, or off", o.rendezvous)
		}
	}
	return nil
}

// environment returns what the program's environment is, made of urnic's own: what is
// preloaded already stays, below our library, unless it is one of ours from an outer run.
// sysfs is the directory with what it sees of sysfs, or "" for the host's.
func (o *runOptions) environment(dir, sysfs string, outer []string) ([]string, error) {
	env := slices.Clone(outer)
	preload, path := filepath.Join(dir, shimFile), ""
	if o.mode == replace {
		preload, path = "", filepath.Join(dir, replaceDir)
		if sysfs != "" {
			preload = filepath.Join(dir, sysfsFile)
		}
	}
	for _, v := range []struct {
		name, separators string
		ours             func(string) bool
		add              string
	}{
		{"LD_PRELOAD", " :", func(s string) bool { return slices.Contains([]string{shimFile, sysfsFile}, filepath.Base(s)) }, preload},
		{"LD_LIBRARY_PATH", ":;", func(s string) bool { return isReplaceDir(s, replaceDir) }, path},
	} {
		before, there := lookup(env, v.name)
		list := strings.FieldsFunc(before, func(r rune) bool { return strings.ContainsRune(v.separators, r) })
		list = slices.DeleteFunc(list, v.ours)
		if v.add != "" {
			if strings.ContainsAny(v.add, v.separators) {
				return nil, fmt.Errorf("%s can't name %s, for a character in it: install urnic elsewhere", v.name, v.add)
			}
			list = slices.Insert(list, 0, v.add)
		}
		if there || len(list) > 0 {
			env = set(env, v.name, strings.Join(list, ":"))
		}
	}
	if o.pcap != "" {
		file, err := filepath.Abs(o.pcap) // the program may go elsewhere
		if err != nil {
			return nil, err
		}
		env = set(env, "URNIC_PCAP", file)
	}
	env, err := o.setTop(set(o.settings(env), "URNIC_SYSFS", sysfs))
	if err != nil {
		return nil, err
	}
	return env, nil
}

// settings returns an environment with what the flags set for the library.
func (o *runOptions) settings(outer []string) []string {
	env := slices.Clone(outer)
	if o.strict {
		env = set(env, "URNIC_STRICT", "1")
	}
	if o.device != "" {
		env = set(env, "URNIC_DEVICE", o.device)
	}
	if o.devices != "" {
		env = set(env, "URNIC_DEVICES", o.devices)
	}
	if o.transport != "" {
		env = set(env, "URNIC_TRANSPORT", o.transport)
	}
	if o.crc != "" {
		env = set(env, "URNIC_CRC", o.crc)
	}
	if o.log != "" {
		env = set(env, "URNIC_LOG", o.log)
	}
	if o.rendezvous != "" {
		env = set(env, "URNIC_RENDEZVOUS", o.rendezvous)
	}
	return env
}

// setTop returns an environment that says where urnic top finds the program: in the user's own directory,
// unless a flag or the environment says it.
func (o *runOptions) setTop(env []string) ([]string, error) {
	dir := o.top
	if before, there := lookup(env, "URNIC_TOP"); dir == "" && there {
		return set(env, "URNIC_TOP", before), nil
	}
	switch dir {
	case topOff:
	case "":
		dir = infosock.Dir()
	default:
		var err error
		if dir, err = filepath.Abs(dir); err != nil { // the program may go elsewhere
			return nil, err
		}
	}
	return set(env, "URNIC_TOP", dir), nil
}

// topOff is the value of --top with which urnic top does not find the program.
const topOff = "off"

// isReplaceDir reports whether a directory is one of ours, with libraries that stand in for
// the distribution's.
func isReplaceDir(dir, name string) bool {
	if filepath.Base(dir) != name {
		return false
	}
	_, err := os.Stat(filepath.Join(filepath.Dir(dir), engineFile))
	return err == nil
}

// lookup returns a variable of an environment.
func lookup(env []string, name string) (string, bool) {
	for _, v := range env {
		if value, is := strings.CutPrefix(v, name+"="); is {
			return value, true
		}
	}
	return "", false
}

// set sets a variable of an environment; one that is empty goes.
func set(env []string, name, value string) []string {
	env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	if value == "" {
		return env
	}
	return append(env, name+"="+value)
}

// printEnv prints the variables that differ, for a shell to evaluate.
func printEnv(w io.Writer, env, outer []string) error {
	for _, v := range outer {
		name, _, _ := strings.Cut(v, "=")
		if _, there := lookup(env, name); !there {
			if _, err := fmt.Fprintf(w, "unset %s\n", name); err != nil {
				return err
			}
		}
	}
	for _, v := range env {
		if slices.Contains(outer, v) {
			continue
		}
		name, value, _ := strings.Cut(v, "=")
		if _, err := fmt.Fprintf(w, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`)); err != nil {
			return err
		}
	}
	return nil
}

// find returns the path of a program, as a shell would find it.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
		return path, nil
	case errors.Is(err, syscall.EISDIR):
		return "", unfit("%s is a directory", name)
	case errors.Is(err, fs.ErrPermission):
		return "", unfit("%s can't be executed: %w", name, fs.ErrPermission)
	case strings.Contains(name, "/"):
		return "", &statusError{fmt.Errorf("there is no program %s", name), statusNoSuchFile}
	}
	return "", &statusError{fmt.Errorf("there is no program %s in $PATH", name), statusNoSuchFile}
}

// unfit returns an error of a program that is there and can't be executed, or not so.
func unfit(format string, args ...any) error {
	return &statusError{fmt.Errorf(format, args...), statusUnfit}
}
