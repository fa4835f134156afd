package rnic_test

import (
	"fmt"
	"math"
	"testing"

	"urnic/rnic"
)

// Every value of a type that is printed has a name of its own, those without meaning too.
func TestEveryOpcodeAndStatusHasAName(t *testing.T) {
	for what, name := range map[string]func(v uint8) string{
		"opcode": func(v uint8) string { return rnic.Opcode(v).String() },
		"status": func(v uint8) string { return rnic.Status(v).String() },
	} {
		seen := map[string]uint8{}
		for v := range uint8(math.MaxUint8) {
			n := name(v)
			if n == "" {
				t.Errorf("%s %d has no name", what, v)
			} else if other, again := seen[n]; again {
				t.Errorf("%s %d and %d are both %q", what, other, v, n)
			}
			seen[n] = v
		}
		if n, want := name(math.MaxUint8), fmt.Sprintf("%s 255", what); n != want {
			t.Errorf("%s 255 is %q; want %q", what, n, want)
		}
	}
}
