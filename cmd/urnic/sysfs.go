package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"urnic/internal/dropin/sysfsdir"
)

func newSysfsCommand() *cobra.Command {
	o := runOptions{mode: interpose}
	var remove bool
	cmd := &cobra.Command{
		Use:   "sysfs [flags] DIRECTORY",
		Short: "Write the /sys files of the device of urnic run",
		Long: `Sysfs writes a directory with the layout of /sys that describes an RDMA device:
class/infiniband, class/infiniband_verbs, and class/net with the device's interfaces. It is
for programs that take the path of sysfs, such as prometheus-node-exporter --path.sysfs. The
device is the one that programs see under urnic run with the same flags and variables, with
the present addresses of the host.

The directory must not exist, be empty, or be one that urnic sysfs has written; that one is
replaced atomically. If anything in it was changed by others, sysfs fails and changes
nothing.`,
		Example: `  urnic sysfs /tmp/sys
  urnic sysfs --device mlx5_0 --transport ethernet /tmp/sys
  urnic sysfs --remove /tmp/sys`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if remove {
				return sysfsdir.Remove(args[0])
			}
			if err := o.check(); err != nil {
				return err
			}
			entries, err := view(o.settings(os.Environ()))
			if err != nil {
				return err
			}
			return sysfsdir.Write(args[0], entries)
		},
	}
	f := cmd.Flags()
	o.addDevice(f)
	f.BoolVar(&remove, "remove", false, "remove the directory, if only urnic sysfs has written to it")
	return cmd
}

// The values of --sysfs that name no directory.
const (
	viewOff     = "off" // programs see the host's /sys
	viewDefault = ""    // in a directory of this user's, if one can be made
)

// viewFor returns the directory with what the program sees of sysfs, or "" if it sees the host's.
// Programs that don't look there run as well without it: so it is an error only if somebody has
// asked for it. lib is the directory of the libraries.
func (o *runOptions) viewFor(lib string, env []string, stderr io.Writer) (string, error) {
	dir, err := o.viewDir(o.settings(env))
	if err == nil && dir != "" && o.mode == replace {
		if _, missing := os.Stat(filepath.Join(lib, sysfsFile)); missing != nil {
			dir, err = "", fmt.Errorf("build it with `make liburnic`: %w", missing)
		}
	}
	if err == nil || o.sysfs != viewDefault {
		return dir, err
	}
	if level, _ := lookup(o.settings(env), "URNIC_LOG"); level != "" && level != "error" {
		fmt.Fprintf(stderr, "urnic: the program sees the /sys of the host: %s\n", text(err))
	}
	return "", nil
}

// viewDir returns the directory with what the program sees of sysfs, or "" if it sees the host's.
func (o *runOptions) viewDir(env []string) (string, error) {
	switch {
	case o.sysfs == viewOff:
		return "", nil
	case o.sysfs == viewDefault && o.printEnv:
		return "", nil // who evaluates it may outlive a directory that nobody has named
	}
	entries, err := view(env)
	if err != nil {
		if o.sysfs == viewDefault {
			return "", nil // the library says what is wrong with the settings, if the program wants it
		}
		return "", fmt.Errorf("--sysfs: %w", err)
	}
	if o.sysfs != viewDefault {
		dir, err := filepath.Abs(o.sysfs)
		if err == nil {
			err = sysfsdir.Write(dir, entries)
		}
		if err != nil {
			return "", fmt.Errorf("--sysfs: %w", err)
		}
		return dir, nil
	}
	var errs []error
	for _, place := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if !filepath.IsAbs(place) {
			continue
		}
		dir, err := sysfsdir.Keep(filepath.Join(place, "urnic-sysfs-"+strconv.Itoa(os.Geteuid())), entries)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}
