package iwarp

import (
	"strings"
	"testing"

	"github.com/gopacket/gopacket"

	"urnic/rdmap"
)

// Most headers that RDMAP has are nil in a layer, and their types have methods String.
// github.com/google/gopacket v1.1.19 calls these and panics, which CONTRIBUTING.md gives as
// a reason for its successor.
func TestLayerWithoutSomeHeadersIsPrinted(t *testing.T) {
	p := gopacket.NewPacket(fpdu(true, rdmap.OpSend, []byte("data")), LayerTypeMPA, gopacket.Default)
	l := p.Layer(LayerTypeRDMAP)
	if l == nil {
		t.Fatalf("no RDMAP in %v", p)
	}
	if s := gopacket.LayerString(l); !strings.Contains(s, "RDMAP") {
		t.Errorf("printed as %q", s)
	}
}
