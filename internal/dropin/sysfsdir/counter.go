package sysfsdir

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

// maxCounter is the length of a counter's file at most: a number of 64 bits, and the end of the line.
const maxCounter = 21

// ErrBusy says that another process has the file of a counter at this moment.
var ErrBusy = errors.New("another process has the counter")

// parseCounter returns what the file of a counter says, or false if it is none.
func parseCounter(b []byte) (uint64, bool) {
	digits, whole := bytes.CutSuffix(b, []byte("\n"))
	n, err := strconv.ParseUint(string(digits), 10, 64)
	return n, whole && err == nil && len(b) <= maxCounter
}

func printCounter(n uint64) []byte { return append(strconv.AppendUint(nil, n, 10), '\n') }

// counted returns what a counter of a directory says, or false if it is not there.
func counted(dir, name string) ([]byte, bool) {
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return nil, false
	}
	_, is := parseCounter(b)
	return b, is
}
