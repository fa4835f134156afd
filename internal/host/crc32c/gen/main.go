package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	check := flag.Bool("check", false, "compare the files with what would be written")
	dir := flag.String("dir", "..", "where they are")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "crc32c/gen:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	c := build.NewContext()
	c.ConstraintExpr("amd64,!purego")
	cpuid(c)
	data := emit(c)
	update(c, data)
	copyFold(c, data)
	file, err := c.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return err
	}
	cfg := printer.Config{Name: "internal/host/crc32c/gen", Pkg: "crc32c"}
	asm, err := printer.NewGoAsm(cfg).Print(file)
	if err != nil {
		return err
	}
	stubs, err := printer.NewStubs(cfg).Print(file)
	if err != nil {
		return err
	}
	return errors.Join(
		put(filepath.Join(dir, "kernel_amd64.s"), asm, check),
		put(filepath.Join(dir, "kernel_amd64.go"), stubs, check),
	)
}

// put writes the file, or compares it.
func put(name string, text []byte, check bool) error {
	if !check {
		return os.WriteFile(name, text, 0o644)
	}
	have, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, text) {
		return fmt.Errorf("%s is not what its generator writes: go generate ./internal/host/crc32c", filepath.Base(name))
	}
	return nil
}
