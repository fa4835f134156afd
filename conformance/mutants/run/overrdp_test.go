//go:build !race

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"urnic/internal/test/leakcheck"
)

// overRDP are faults of DDP and RDMAP, some of each family, that cases have to find over RDP as well. The race detector would
// see nothing of the mutants, which are processes of their own.
var overRDP = []string{
	"msn-from-zero", "msn-for-all-queues", "mo-zero", "to-stands-still", "l-lost", "dv-zero", "ddp-reserved-sent",
	"dv-not-checked", "qn-range-too-wide", "message-too-long-cut", "msn-ignored", "placed-after-error",
	"end-of-range-not-checked", "begin-of-range-not-checked", "stag-key-not-checked", "write-placed-one-byte-on",
	"send-placed-without-mo", "rv-zero", "rv-not-checked", "reserved-opcode-taken", "tagged-flag-not-checked", "se-not-sent",
	"read-responses-newest-first", "terminate-ddp-layer", "code-of-opcode",
}

func TestCommandCatchesMutantsOverRDP(t *testing.T) {
	leakcheck.Check(t)
	alone(t)
	var out, progress bytes.Buffer
	err := run(t.Context(), []string{"--llp", "rdp", "--only", strings.Join(overRDP, ",")}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &progress)
	}
	if want := fmt.Sprintf("%d mutants, %[1]d caught", len(overRDP)); !strings.Contains(out.String(), want) {
		t.Errorf("got\n%s", &out)
	}
}
