// Package memcheck tells whether memory that is named by a bare address may be
// used by this process.
//
// Linux tells, in /proc/self/maps. Elsewhere, and where that file can't be read,
// nobody does, and any memory passes. Two things are beyond what the system
// tells: that a mapped file has shrunk since, and that somebody unmaps the memory
// after the check.
package memcheck

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
)

// An Error says what is wrong with a range of memory.
type Error struct {
	Addr   uint64 // the range that was asked for
	Len    uint64 // in octets
	At     uint64 // the first octet that can't be used
	Reason string
}

// Error names the octet and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("memcheck: %d octets at 0x%x: at 0x%x, memory %s", e.Len, e.Addr, e.At, e.Reason)
}

// Check returns an *Error unless all n octets at addr are mapped for reading,
// and for writing if write is set.
func Check(addr uintptr, n uint64, write bool) error {
	from := uint64(addr)
	if n > math.MaxUint64-from {
		return &Error{Addr: from, Len: n, At: from, Reason: "would wrap around the end of the address space"}
	}
	if n == 0 {
		return nil
	}
	return check(from, n, write)
}

// search looks a range up in the list of mappings, as Linux writes it: by rising
// address, each line beginning with "from-to rwxp", the numbers in hexadecimal.
func search(maps io.Reader, from, n uint64, write bool) error {
	at, end := from, from+n
	fail := func(reason string) error { return &Error{Addr: from, Len: n, At: at, Reason: reason} }
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		first, last, perms, err := parse(lines.Bytes())
		switch {
		case err != nil:
			return err
		case last <= at:
			continue
		case first > at:
			return fail("is not mapped")
		case perms[0] != 'r':
			return fail("can't be read")
		case write && perms[1] != 'w':
			return fail("can't be written")
		case last >= end:
			return nil
		}
		at = last // the next mapping may join on
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("memcheck: list of mappings: %w", err)
	}
	return fail("is not mapped")
}

// parse takes a line of the list apart.
func parse(line []byte) (first, last uint64, perms []byte, err error) {
	span, rest, _ := bytes.Cut(line, []byte{' '})
	from, to, _ := bytes.Cut(span, []byte{'-'})
	first, err = strconv.ParseUint(string(from), 16, 64)
	if err == nil {
		last, err = strconv.ParseUint(string(to), 16, 64)
	}
	if err == nil && len(rest) < len("rwxp") {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, 0, nil, fmt.Errorf("memcheck: list of mappings: %q: %w", line, err)
	}
	return first, last, rest, nil
}
