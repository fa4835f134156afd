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

// execute puts a program in the place of this process, with our library. It returns only
// with an error.
func execute(args, env []string, library string) error {
	path, err := find(args[0])
	if err != nil {
		return err
	}
	if err := preloadable(path, library); err != nil {
		return err
	}
	return unfit("%s can't be executed: %w", path, syscall.Exec(path, args, env))
}

// gainedRights reports whether this process has more rights than its user, by set-uid,
// set-gid or capabilities of its file. Settings of the user's environment do not count then.
func gainedRights() bool {
	const secure = 23 // AT_SECURE of <elf.h>
	vector, err := unix.Auxv()
	if err != nil {
		return true // it is not known
	}
	for _, v := range vector {
		if v[0] == secure {
			return v[1] != 0
		}
	}
	return false
}

// preloadable returns an error if the dynamic linker would not load our library into a
// program. What can't be read passes: then the system judges.
func preloadable(path, library string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	if err := gainsRights(f); err != nil {
		return unfit("%s %w, so the dynamic linker preloads nothing into it: run it as the user whose rights it takes, "+
			"or run a copy that takes none", path, err)
	}
	if name := interpreter(f); name != "" {
		return interpretable(path, name, library)
	}
	program, err := elf.NewFile(f)
	if err != nil {
		return nil
	}
	if err := sameMachine(program, library); err != nil {
		return unfit("%s %w", path, err)
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
		return unfit("%s is linked statically, so no library can be loaded into it: link it dynamically", path)
	case strings.HasPrefix(filepath.Base(linker), "ld-musl"):
		return unfit("%s is linked to musl, and the library to the GNU C library: build it for that", path)
	case !there(linker):
		return unfit("%s wants the dynamic linker %s, which is not there: install the GNU C library", path, linker)
	}
	return nil
}

// interpreter returns the name of the program that a script is for, or "".
func interpreter(f *os.File) string {
	const most = 256 // what Linux reads of it
	b := make([]byte, most)
	n, _ := f.ReadAt(b, 0)
	line, script := strings.CutPrefix(string(b[:n]), "#!")
	if !script {
		return ""
	}
	line, _, _ = strings.Cut(line, "\n")
	if fields := strings.Fields(line); len(fields) > 0 {
		return fields[0]
	}
	return ""
}

// interpretable returns an error if a script's interpreter, which gets the environment,
// can't be given our library. A script of a script is left to the system.
func interpretable(script, name, library string) error {
	if !there(name) {
		return unfit("%s wants the interpreter %s, which is not there", script, name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	if interpreter(f) != "" {
		return nil
	}
	return preloadable(name, library)
}

// there reports whether a file is there, as far as one can see.
func there(name string) bool {
	_, err := os.Stat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// sameMachine returns an error if a program is for another processor than our library.
func sameMachine(program *elf.File, library string) error {
	ours, err := elf.Open(library)
	if err != nil {
		return nil // the dynamic linker will say what is wrong with it
	}
	defer func() { _ = ours.Close() }()
	if program.Machine != ours.Machine || program.Class != ours.Class {
		return fmt.Errorf("is for %v (%v), and %s for %v (%v)", program.Machine, program.Class, library, ours.Machine, ours.Class)
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
