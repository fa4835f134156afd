package perf

import (
	"bytes"
	"os"
	"runtime/debug"
	"strconv"
)

// resident returns how many bytes of memory the process occupies, garbage
// apart, or false if the system does not tell.
func resident() (uint64, bool) {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	return pages * uint64(os.Getpagesize()), err == nil
}
