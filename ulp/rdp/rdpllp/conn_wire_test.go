package rdpllp

import (
	"encoding/hex"
	"testing"

	"urnic/ulp/rdp/rdpllp/llpwire"
)

// A segment of DDP in a message, as docs/ddp-over-rdp.md has it.
func TestSegmentsOnTheWire(t *testing.T) {
	c := &conn{}
	if ok, err := c.Post([]byte{0xc1, 0x40}, [][]byte{{1, 2}, {3}}, false); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if got, want := hex.EncodeToString(c.pending[0][:llpwire.HeaderLen+5]), "0400000000000000"+"c140010203"; got != want {
		t.Errorf("a segment is %s; want %s", got, want)
	}
	if _, _, _, err := llpwire.Parse(c.pending[0]); err != nil {
		t.Error(err)
	}
}
