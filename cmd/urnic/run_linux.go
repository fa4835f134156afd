package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// execute puts a program in the place of this process. It returns only with an error.
func execute(args, env []string) error {
	path, err := find(args[0])
	if err != nil {
		return err
	}
	if err := preloadable(path); err != nil {
		return err
	}
	return fmt.Errorf("%s can't be executed: %w", path, syscall.Exec(path, args, env))
}

// preloadable returns an error if the dynamic linker would not load our library into a
// program. What can't be read passes: then the system judges.
func preloadable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	if err := gainsRights(f); err != nil {
		return fmt.Errorf("%s %w, so the dynamic linker preloads nothing into it: run it as the user whose rights it takes, "+
			"or run a copy that takes none", path, err)
	}
	program, err := elf.NewFile(f)
	if err != nil {
		return nil // a script: its interpreter gets the environment
	}
	ours, err := elf.Open("/proc/self/exe")
	if err != nil {
		return nil
	}
	defer func() { _ = ours.Close() }()
	if program.Machine != ours.Machine || program.Class != ours.Class {
		return fmt.Errorf("%s is for %v (%v), and the library for %v (%v)", path, program.Machine, program.Class, ours.Machine, ours.Class)
	}
	linker := ""
	for _, p := range program.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(p.Open(), unix.PathMax))
		if err != nil {
			return nil
		}
		linker = strings.TrimRight(string(b), "\x00")
	}
	switch {
	case linker == "":
		return fmt.Errorf("%s is linked statically, so no library can be loaded into it: link it dynamically", path)
	case strings.HasPrefix(filepath.Base(linker), "ld-musl"):
		return fmt.Errorf("%s is linked to musl, and the library to the GNU C library: build it for that", path)
	}
	return nil
}

// gainsRights says what gives a program more rights than its caller has.
func gainsRights(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
	case info.Mode()&fs.ModeSetuid != 0 && int(st.Uid) != os.Getuid():
		return errors.New("is setuid")
	case info.Mode()&fs.ModeSetgid != 0 && info.Mode()&0o010 != 0 && int(st.Gid) != os.Getgid():
		return errors.New("is setgid")
	}
	if n, err := unix.Fgetxattr(int(f.Fd()), "security.capability", nil); err == nil && n > 0 && os.Getuid() != 0 {
		return errors.New("has file capabilities")
	}
	return nil
}
