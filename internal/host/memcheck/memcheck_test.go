package memcheck

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// maps has mappings that join on to each other, gaps, and ones that lack rights.
const maps = `00001000-00002000 rw-p 00000000 00:00 0
00002000-00003000 rw-s 00000000 fd:00 1234                               /some file
00003000-00004000 r--p 00000000 00:00 0
00005000-00006000 ---p 00000000 00:00 0
00006000-00007000 rw-p 00000000 00:00 0                                  [heap]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
`

func TestRangeMustBeMappedAllOver(t *testing.T) {
	for _, tt := range []struct {
		name    string
		from, n uint64
		write   bool
		at      uint64 // of the first octet that fails; 0: none does
		reason  string
	}{
		{name: "one mapping", from: 0x1000, n: 0x1000, write: true},
		{name: "one octet", from: 0x1fff, n: 1, write: true},
		{name: "two mappings that join", from: 0x1800, n: 0x1000, write: true},
		{name: "read-only, to be read", from: 0x1000, n: 0x3000},
		{name: "read-only, to be written", from: 0x1000, n: 0x3000, write: true, at: 0x3000, reason: "written"},
		{name: "before the first", from: 0xfff, n: 1, at: 0xfff, reason: "not mapped"},
		{name: "beginning in a gap", from: 0x4000, n: 1, at: 0x4000, reason: "not mapped"},
		{name: "ending in a gap", from: 0x3fff, n: 2, at: 0x4000, reason: "not mapped"},
		{name: "over a gap", from: 0x3000, n: 0x3800, at: 0x4000, reason: "not mapped"},
		{name: "reserved", from: 0x5000, n: 1, at: 0x5000, reason: "read"},
		{name: "behind the last", from: 0xffffffffff601000, n: 1, at: 0xffffffffff601000, reason: "not mapped"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := search(strings.NewReader(maps), tt.from, tt.n, tt.write)
			if tt.at == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || e.At != tt.at || e.Addr != tt.from || e.Len != tt.n || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("%v; want that 0x%x %s", err, tt.at, tt.reason)
			}
		})
	}
}

func TestListThatCannotBeReadIsAnError(t *testing.T) {
	for _, list := range []string{"nonsense", "1000-2000", "1000-2000 r", "1000 rw-p", "1000-200x rw-p", strings.Repeat("x", 1<<20)} {
		if err := search(strings.NewReader(list), 0x1000, 1, false); err == nil || errors.As(err, new(*Error)) {
			t.Errorf("%.20q: %v", list, err)
		}
	}
	if _, _, _, err := parse([]byte("1000-2000 r")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestRangeMustNotWrap(t *testing.T) {
	var e *Error
	if err := Check(math.MaxUint, 1, false); !errors.As(err, &e) {
		t.Error(err)
	}
	if err := Check(math.MaxUint, 0, true); err != nil { // nothing is asked for
		t.Error(err)
	}
}
