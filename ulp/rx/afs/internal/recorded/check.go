package recorded

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"urnic/ulp/rx/rpc"
)

// Check decodes the arguments and results of a service's operations in all captures, and
// encodes them again: the bytes must be the same. It returns how many calls of each operation
// there were. Calls that are encrypted do not count: their opcodes make no sense. Requests made
// by hand, in the captures called probe, are left out.
func (c Calls) Check(t *testing.T, ops []rpc.Description) map[string]int {
	t.Helper()
	known := make(map[uint32]rpc.Description)
	for _, op := range ops {
		known[op.Opcode] = op
	}
	seen := make(map[string]int)
	for _, file := range Files(t) {
		if strings.HasPrefix(file, "probe-") {
			continue
		}
		for _, call := range InFile(t, file) {
			op, ok := known[call.Opcode]
			if !ok || call.Port != c.Port || call.Service != c.Service || !call.Whole || slices.Contains(c.Data, op.Name) {
				continue
			}
			seen[op.Name]++
			c.same(t, call.File+" "+op.Name+" arguments", op.Name, op.NewArgs, call.Args)
			c.same(t, call.File+" "+op.Name+" results", op.Name, op.NewResults, call.Reply)
		}
	}
	return seen
}

// Calls says which calls Check looks at.
type Calls struct {
	Port, Service uint16

	// Data are operations with data behind their arguments, or in their replies: Check leaves
	// them out.
	Data []string

	// Undefined are operations whose senders leave bytes without a meaning as they happen to
	// be: those need not come back, but the values must.
	Undefined []string
}

// same decodes a value from p, and encodes it to the same bytes.
func (c Calls) same(t *testing.T, what, op string, newValue func() rpc.Value, p []byte) {
	t.Helper()
	v := newValue()
	if err := rpc.Decode(p, v); err != nil {
		t.Errorf("%s: %v: %x", what, err, p)
		return
	}
	q, err := rpc.Append(nil, v)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	again := newValue()
	if err := rpc.Decode(q, again); err != nil || len(q) != len(p) || !reflect.DeepEqual(v, again) {
		t.Errorf("%s: %+v became %+v: %v", what, v, again, err)
	}
	if !bytes.Equal(q, p) && !slices.Contains(c.Undefined, op) {
		t.Errorf("%s: %x became %x", what, p, q)
	}
}

// First returns the first complete call of an operation in a file.
func First(t *testing.T, file string, service uint16, opcode uint32) Call {
	t.Helper()
	for _, c := range InFile(t, file) {
		if c.Service == service && c.Opcode == opcode && c.Whole {
			return c
		}
	}
	t.Fatalf("%s has no complete call of operation %d", file, opcode)
	return Call{}
}

// Want fails unless each of these operations was seen.
func Want(t *testing.T, seen map[string]int, names ...string) {
	t.Helper()
	for _, name := range names {
		if seen[name] == 0 {
			t.Errorf("no call of %s; there are %v", name, slices.Sorted(maps.Keys(seen)))
		}
	}
}
