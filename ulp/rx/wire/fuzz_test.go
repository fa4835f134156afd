package wire

import (
	"bytes"
	"testing"
)

// What decodes encodes to the same bytes again, whatever it is.
func FuzzHeader(f *testing.F) {
	for _, tt := range headers {
		f.Add(unhex(f, tt.hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if (err != nil) != (len(b) < HeaderLen) || err != nil && !short(err, len(b), HeaderLen) {
			t.Fatalf("%d bytes: %v", len(b), err)
		}
		if err != nil {
			return
		}
		if again := h.Append(nil); !bytes.Equal(again, b[:HeaderLen]) {
			t.Errorf("% x encodes as % x", b[:HeaderLen], again)
		}
		if h.ConnID()|uint32(h.Channel()) != h.CID || h.Channel() >= Channels {
			t.Errorf("%08x is connection %08x, channel %d", h.CID, h.ConnID(), h.Channel())
		}
		_ = h.String()
	})
}

func FuzzAck(f *testing.F) {
	for _, tt := range acks {
		f.Add(unhex(f, tt.hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseAck(b)
		if err != nil {
			if !short(err, len(b), ackFixed) || len(b) >= ackFixed {
				t.Fatalf("%d bytes: %v", len(b), err)
			}
			return
		}
		if again := a.Append(nil); !bytes.Equal(again, b) || a.Len() != len(b) {
			t.Errorf("% x encodes as % x, Len %d", b, again, a.Len())
		}
		if len(a.Acks) > int(a.Count) || a.Trailer.Words < 0 || a.Trailer.Words == 1 || a.Trailer.Words > 4 {
			t.Errorf("%+v", a)
		}
		_ = a.String()
	})
}

// The packets of a datagram are its bytes but for the reserved byte of short headers, and
// for what the error says is cut.
func FuzzSplitData(f *testing.F) {
	for _, parts := range [][]part{
		{{cl, 0, 40}},
		{{more, 1, JumboBody}, {0, 2, 7}},
		{{more, 1, JumboBody}, {more, 2, JumboBody}, {more, 3, 9}},
	} {
		h, b := jumbogram(parts...)
		f.Add(h.Append(nil), b)
	}
	f.Fuzz(func(t *testing.T, head, body []byte) {
		h, err := ParseHeader(head)
		if err != nil || len(body) > 1<<16 {
			return
		}
		var again []byte
		n, reserved := uint32(0), []int(nil)
		p := SplitData(h, body)
		for {
			inner, part, ok := p.Next()
			if !ok {
				break
			}
			if inner.Seq != h.Seq+n || inner.Serial != h.Serial+n || inner.CID != h.CID || inner.Call != h.Call ||
				inner.Type != h.Type || inner.Epoch != h.Epoch || inner.Service != h.Service || inner.Security != h.Security {
				t.Fatalf("packet %d of %v is %v", n, &h, &inner)
			}
			if n > 0 {
				again = AppendJumboHeader(again, inner.Flags, inner.Checksum)
				reserved = append(reserved, len(again)-JumboHeaderLen+1)
			}
			again = append(again, part...)
			n++
		}
		if n == 0 {
			t.Fatal("no packet")
		}
		want := bytes.Clone(body)
		for _, at := range reserved {
			want[at] = 0
		}
		if p.Err() != nil {
			want = want[:len(again)]
		}
		if !bytes.Equal(again, want) {
			t.Errorf("%d bytes encode as %d different ones", len(body), len(again))
		}
	})
}

func FuzzAbort(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1})
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		code := ParseAbort(b)
		if again := AppendAbort(nil, code); len(b) >= AbortLen && !bytes.Equal(again, b[:AbortLen]) || len(b) < AbortLen && code != -1 {
			t.Errorf("% x is %d, which encodes as % x", b, code, again)
		}
		if s := Code(code).String(); s == "" {
			t.Errorf("%d has no text", code)
		}
	})
}

func FuzzVersion(f *testing.F) {
	f.Add(AppendVersion(nil, "version"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := ParseVersion(b)
		again := AppendVersion(nil, string(s))
		if got := ParseVersion(again); len(again) != VersionLen || !bytes.Equal(got, s[:min(len(s), VersionLen-1)]) {
			t.Errorf("%q encodes as %q", s, got)
		}
	})
}

// A debug reply of any kind encodes to the same bytes again, up to its length.
func FuzzDebug(f *testing.F) {
	for _, n := range []int{DebugRequestLen, DebugBasicLen, DebugPeerLen, DebugOldConnLen, DebugConnLen, DebugStatsLen} {
		f.Add(counting(n), byte(DebugVersion))
	}
	f.Add(counting(DebugConnLen), byte(DebugVersionMin))
	f.Fuzz(func(t *testing.T, b []byte, version byte) {
		same := func(what string, n int, again []byte, err error) {
			t.Helper()
			switch {
			case err != nil && (len(b) >= n || !short(err, len(b), n)):
				t.Errorf("%s: %d bytes: %v", what, len(b), err)
			case err == nil && (len(b) < n || !bytes.Equal(again, b[:n])):
				t.Errorf("%s: % x\nencodes as % x", what, b, again)
			}
		}
		request, err := ParseDebugRequest(b)
		same("request", DebugRequestLen, request.Append(nil), err)
		basic, err := ParseDebugBasic(b)
		same("basic", DebugBasicLen, basic.Append(nil), err)
		stats, err := ParseDebugStats(b)
		same("statistics", DebugStatsLen, stats.Append(nil), err)
		peer, err := ParseDebugPeer(b)
		same("peer", DebugPeerLen, peer.Append(nil), err)
		conn, err := ParseDebugConn(b, version)
		if version > DebugVersionMin {
			same("connection", DebugConnLen, conn.Append(nil), err)
		} else if (err != nil) != (len(b) < DebugOldConnLen) {
			t.Errorf("an old connection of %d bytes: %v", len(b), err)
		}
	})
}
