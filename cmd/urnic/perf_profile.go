package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
)

// startProfile writes a profile of the processor's time into a file, until stop is
// called; without a file, it does nothing.
func startProfile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("--cpuprofile: %w", err)
	}
	k := &kept{Writer: f, name: "the profile"}
	if err := pprof.StartCPUProfile(k); err != nil {
		return nil, errors.Join(fmt.Errorf("--cpuprofile: %w", err), f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return alwaysTell(errors.Join(k.lost(), f.Close()))
	}, nil
}
