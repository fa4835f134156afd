package nfs3_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma/rpcflow"
)

// What Linux's client and server have sent, over RDMA, is decoded, and comes out of its
// encoding byte by byte; no reply is longer than is said.
func TestWhatLinuxSendsIsDecoded(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "..", "..", "internal", "program", "dissect", "testdata", "captures", "nfs3.pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	calls := map[uint32]nfs3.Codec{}
	seen := map[string]int{}
	_, err = dissect.AnalyzeULP(t.Context(), r, &rpcflow.Analyzer{}, func(e *dissect.Event) error {
		m, ok := e.Upper.(*rpcflow.RPC)
		if !ok || m.Program != nfs3.Program {
			return nil
		}
		p := nfs3.Proc(m.Procedure)
		d := xdr.NewDecoder(m.Octets)
		c, err := p.Args(), error(nil)
		if m.Reply {
			var head oncrpc.Reply
			c, err = p.Results(), head.Decode(d)
		} else {
			var head oncrpc.Call
			calls[m.XID], err = c, head.Decode(d)
		}
		if err != nil || !m.Whole {
			t.Errorf("%v: %v, whole %t", m, err, m.Whole)
			return nil
		}
		body := m.Octets[len(m.Octets)-d.Left():]
		if err := c.Decode(d); err != nil || d.End() != nil {
			t.Errorf("%v: %v, %v", m, err, d.Err())
			return nil
		}
		var x xdr.Encoder
		c.Encode(&x)
		if got := x.AppendTo(nil); !bytes.Equal(got, body) {
			t.Errorf("%v: %x becomes %x", m, body[:min(len(body), 200)], got[:min(len(got), 200)])
		}
		if !m.Reply {
			return nil
		}
		seen[p.String()]++
		most := p.MaxReply(calls[m.XID])
		for _, b := range x.Bulks() {
			most += (b.Len + 3) &^ 3
		}
		if len(body) > most {
			t.Errorf("%v: %d bytes of results; there were to be %d", m, len(body), most)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{
		"ACCESS": 7, "COMMIT": 1, "CREATE": 2, "FSINFO": 2, "FSSTAT": 1, "GETATTR": 262, "LOOKUP": 7, "MKDIR": 1, "NULL": 1, "PATHCONF": 1,
		"READ": 9, "READDIRPLUS": 2, "READLINK": 1, "REMOVE": 2, "RENAME": 1, "RMDIR": 1, "SETATTR": 1, "WRITE": 9,
	}; !maps.Equal(seen, want) {
		t.Errorf("there were %v; want %v", seen, want)
	}
}
