package rxdebug

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"testing"
	"unicode"

	"urnic/ulp/rx/wire"
)

// Whatever a server answers, the report can be written, shows nothing that controls a
// terminal, and needs no more requests than its lists may have entries.
func FuzzReport(f *testing.F) {
	f.Add(byte('S'), []byte("version\x1b[31m\x07"), make([]byte, wire.DebugBasicLen), make([]byte, wire.DebugConnLen), make([]byte, wire.DebugPeerLen), make([]byte, wire.DebugStatsLen))
	f.Add(byte('L'), []byte{0xff}, make([]byte, 16), bytes.Repeat([]byte{0xff}, wire.DebugOldConnLen), make([]byte, 8), wire.AppendDebugBadType(nil))
	f.Add(byte(0x9b), []byte{}, bytes.Repeat([]byte{0x9b}, 60), bytes.Repeat([]byte{0x9b}, 200), bytes.Repeat([]byte{0x9b}, 200), bytes.Repeat([]byte{0x9b}, 300))
	f.Fuzz(func(t *testing.T, letter byte, version, basic, conn, peer, stats []byte) {
		if len(basic) > 14 {
			basic[14] = letter
		}
		for _, b := range []*[]byte{&version, &basic, &conn, &peer, &stats} {
			*b = (*b)[:min(len(*b), 1500)] // a datagram, which a pipe must deliver whole
		}
		const most = 3
		c, s := ask(t, Config{MaxEntries: most}, func(h wire.Header, body []byte) [][]byte {
			if h.Type == wire.TypeVersion {
				return [][]byte{reply(h, version)}
			}
			q, _ := wire.ParseDebugRequest(body)
			return [][]byte{reply(h, map[wire.DebugType][]byte{
				wire.DebugGetBasic: basic, wire.DebugGetConn: conn, wire.DebugGetAllConns: conn, wire.DebugGetPeer: peer, wire.DebugGetStats: stats,
			}[q.Type])}
		})
		c.peer = netip.MustParseAddrPort("[2001:db8::7]:7000")
		for _, w := range []Want{everything, {Version: true, Basic: true}, {Stats: true}, {Conns: true}, {Peers: true}} {
			r, err := c.Ask(t.Context(), w)
			if r == nil {
				t.Fatalf("no report: %v", err)
			}
			var b bytes.Buffer
			if err := r.WriteText(&b); err != nil {
				t.Fatal(err)
			}
			if i := bytes.IndexFunc(b.Bytes(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("a byte %#x at %d of %q", b.Bytes()[i], i, b.String())
			}
			encoded, err := json.Marshal(r)
			if err != nil || !json.Valid(encoded) {
				t.Errorf("%v: %s", err, encoded)
			}
		}
		if s.asked > 5*(3+2*(most+1)) {
			t.Errorf("%d requests", s.asked)
		}
	})
}
