package rxflow

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"urnic/internal/program/dissect"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/wire"
)

// deliberate are the rules that the requests made by hand break, all by the client. OpenAFS
// and Linux break none.
var deliberate = map[string][]string{
	"probe-busy":      {"rx-call-number"}, // the call that was killed continues
	"probe-calls":     {"rx-call-number"},
	"probe-challenge": {"rx-credentials"}, // random bytes
	"probe-debug":     {"rx-debug"},       // four bytes
	"probe-errors":    {"rx-context", "rx-after-abort", "rx-after-abort"},
	"probe-order": {
		"rx-sequence", "rx-sequence", "rx-sequence", "rx-sequence", "rx-window", "rx-window",
		"rx-sequence", "rx-window", "rx-sequence", "rx-window",
	},
	"probe-truncated": {"rx-header", "rx-header", "rx-header", "rx-header", "rx-header"},
	"probe-types":     {"rx-type", "rx-type", "rx-type", "rx-type"},
}

// readmeNames are what the table of README.md calls types of packets and reasons.
var readmeNames = map[string]string{
	"out-of-sequence": "out-of-seq", "type 0": "0", "type 14": "14",
	"params1": "params", "params2": "10", "params3": "11", "params4": "12",
}

func readmeName(s string) string {
	if n := readmeNames[s]; n != "" {
		return n
	}
	return s
}

// A row is a row of the table in README.md.
type row struct {
	types, reasons   map[string]int
	indexes, service map[int]bool
	codes            map[int]bool
	trailers         map[string]bool
	largest, most    int
	datagrams        int
	jumbograms       int
	again, nacks     int
}

func newRow() *row {
	return &row{
		types: map[string]int{}, reasons: map[string]int{}, indexes: map[int]bool{}, service: map[int]bool{},
		codes: map[int]bool{}, trailers: map[string]bool{},
	}
}

// rows reads the table, which was made by a decoder that is not ours.
func rows(t *testing.T) map[string]*row {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "captures", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(b), "## Counts")
	if !ok {
		t.Fatal("no counts")
	}
	all := map[string]*row{}
	number := func(s string) int {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	counts := func(into map[string]int, s string) {
		for item := range strings.SplitSeq(s, ", ") {
			if i := strings.LastIndexByte(item, ' '); i > 0 {
				into[item[:i]] = number(item[i:])
			}
		}
	}
	set := func(into map[int]bool, s string) {
		for n := range strings.FieldsSeq(strings.ReplaceAll(s, ",", " ")) {
			if n != "-" {
				into[number(n)] = true
			}
		}
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 13 || strings.Contains(line, "---") || strings.Contains(line, "datagrams") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		r := newRow()
		all[cells[1]] = r
		r.datagrams = number(cells[2])
		counts(r.types, cells[3])
		counts(r.reasons, cells[4])
		set(r.indexes, cells[5])
		set(r.service, cells[6])
		r.largest = number(cells[7])
		if _, err := fmt.Sscanf(cells[8], "%d (max %d)", &r.jumbograms, &r.most); err != nil && cells[8] != "-" {
			t.Fatal(line, err)
		}
		if _, err := fmt.Sscanf(cells[9], "%d/%d", &r.again, &r.nacks); err != nil {
			t.Fatal(line, err)
		}
		set(r.codes, cells[10])
		for trailer := range strings.SplitSeq(cells[11], "; ") {
			if trailer != "-" {
				r.trailers[trailer] = true
			}
		}
	}
	return all
}

// packet takes a packet that is shown.
func (r *row) packet(t *testing.T, p *Packet) {
	h := &p.Header
	if h.Type != wire.TypeDebug && h.Type != wire.TypeVersion {
		r.indexes[int(h.Security)] = true
		r.service[int(h.Service)] = true
	}
	if p.Code != nil {
		r.codes[int(*p.Code)] = true
	}
	if a := p.Ack; a != nil && a.Trailer.Words == 4 {
		r.trailers[fmt.Sprintf("%d/%d/%d/%d", a.Trailer.MaxMTU, a.Trailer.IfMTU, a.Trailer.Window, a.Trailer.MaxPackets)] = true
	}
	if p.Copy && h.Type == wire.TypeData {
		r.again++ // by hand, with the serial number of the first
	}
	reencode(t, p)
}

// sums adds the summary of a connection.
func (r *row) sums(s *Summary) {
	for _, n := range []*Counts{&s.Client, &s.Server} {
		for k, v := range n.Packets {
			r.types[readmeName(k)] += v
		}
		for k, v := range n.Reasons {
			r.reasons[readmeName(k)] += v
		}
		r.datagrams += n.Datagrams
		r.jumbograms += n.Jumbograms
		r.again += n.Again
		r.nacks += n.Missing
		r.largest, r.most = max(r.largest, n.Largest), max(r.most, n.MostPackets)
	}
}

// reencode compares a packet with what the codecs make of it.
func reencode(t *testing.T, p *Packet) {
	t.Helper()
	h, body := &p.Header, []byte(nil)
	switch {
	case p.Ack != nil:
		body = p.Ack.Append(nil)
	case p.Code != nil && len(p.Body) == wire.AbortLen:
		body = wire.AppendAbort(nil, int32(*p.Code))
	case h.Type == wire.TypeVersion && !h.FromClient() && len(p.Body) == wire.VersionLen:
		body = wire.AppendVersion(nil, string(wire.ParseVersion(p.Body)))
		if i := bytes.IndexByte(p.Body, 0); i >= 0 && len(bytes.Trim(p.Body[i:], "\x00")) > 0 {
			return // there is something behind the string
		}
	case h.Type == wire.TypeDebug:
		var ok bool
		if body, ok = debugAgain(h, p.Body); !ok {
			return
		}
	case h.Type == wire.TypeChallenge:
		if c, err := rxkad.ParseChallenge(p.Body); err == nil {
			body = c.Append(nil)
		}
	default:
		body = p.Body
	}
	if !bytes.Equal(body, p.Body) {
		t.Errorf("%v encodes as\n%x, was\n%x", p, body, p.Body)
	}
}

// debugAgain encodes what a debug packet carries.
func debugAgain(h *wire.Header, body []byte) ([]byte, bool) {
	var d interface{ Append([]byte) []byte }
	var err error
	switch n := len(body); {
	case h.FromClient() && n == wire.DebugRequestLen:
		d, err = wire.ParseDebugRequest(body)
	case h.FromClient():
		return nil, false
	case wire.IsDebugBadType(body):
		return wire.AppendDebugBadType(nil), true
	case n == wire.DebugBasicLen:
		var v wire.DebugBasic
		v, err = wire.ParseDebugBasic(body)
		d = &v
	case n == wire.DebugConnLen:
		var v wire.DebugConn
		v, err = wire.ParseDebugConn(body, wire.DebugVersion)
		d = &v
	case n == wire.DebugStatsLen:
		var v wire.DebugStats
		v, err = wire.ParseDebugStats(body)
		d = &v
	case n == wire.DebugPeerLen:
		var v wire.DebugPeer
		v, err = wire.ParseDebugPeer(body)
		d = &v
	default:
		return nil, false
	}
	if err != nil {
		return nil, true
	}
	return d.Append(nil), true
}

// What the captures hold is what another decoder has counted; each packet comes out of the
// codecs as it was; and OpenAFS and Linux break no rule.
func TestCaptures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "captures", "*.gz"))
	want := rows(t)
	if err != nil || len(files) != len(want) || len(files) != 44 {
		t.Fatalf("%d files, %d rows, %v", len(files), len(want), err)
	}
	for name, w := range want {
		t.Run(name, func(t *testing.T) {
			got := newRow()
			shown := map[string]int{}
			f := analyze(t, golden(t, name), func(e *dissect.Event) error {
				if p, ok := e.Upper.(*Packet); ok {
					got.packet(t, p)
					shown[readmeName(p.Header.Type.String())]++
				}
				return nil
			})
			for _, c := range f.Connections {
				got.sums(c.Upper.(*Summary))
			}
			if !maps.Equal(got.types, w.types) || !maps.Equal(shown, w.types) || !maps.Equal(got.reasons, w.reasons) {
				t.Errorf("packets %v, acks %v; want %v, %v", got.types, got.reasons, w.types, w.reasons)
			}
			if !maps.Equal(got.codes, w.codes) || !maps.Equal(got.trailers, w.trailers) {
				t.Errorf("aborts %v, trailers %v; want %v, %v", got.codes, got.trailers, w.codes, w.trailers)
			}
			for i := range w.indexes {
				if !got.indexes[i] {
					t.Errorf("no security index %d", i)
				}
			}
			for s := range w.service {
				if !got.service[s] {
					t.Errorf("no service %d", s)
				}
			}
			if got.datagrams != w.datagrams || got.largest != w.largest || got.jumbograms != w.jumbograms || got.most != w.most {
				t.Errorf("%d datagrams of up to %d bytes, %d jumbograms of up to %d; want %d, %d, %d, %d",
					got.datagrams, got.largest, got.jumbograms, got.most, w.datagrams, w.largest, w.jumbograms, w.most)
			}
			if got.again != w.again || got.nacks != w.nacks {
				t.Errorf("%d again, %d nacks; want %d, %d", got.again, got.nacks, w.again, w.nacks)
			}
			var broken []string
			for _, rule := range deliberate[name] {
				broken = append(broken, rule+" by client")
			}
			f.want(t, broken...)
			if len(f.notes) > 0 || f.Stats.Fragments > 0 || f.Total.Undecoded > 0 {
				t.Errorf("notes %q, %d fragments, %d bytes not decoded", f.notes, f.Stats.Fragments, f.Total.Undecoded)
			}
		})
	}
}

// With the keys, everything that rxkad protects is opened, and its checks hold: see the rules
// rx-protection and rx-credentials.
func TestProtectedCapturesAreOpened(t *testing.T) {
	callers := map[string]bool{}
	levels := regexp.MustCompile("^(.*), level (clear|auth|crypt), key version (1|2)$")
	for name := range rows(t) {
		if name == "probe-challenge" {
			continue // its response is random
		}
		f := analyze(t, golden(t, name))
		for _, c := range f.Connections {
			s := c.Upper.(*Summary)
			if s.Security == 0 || s.Kind != "connection" {
				continue
			}
			if s.Security != rxkad.Index {
				continue // 77, which no server has
			}
			m := levels.FindStringSubmatch(s.Caller)
			if m == nil {
				if refused := s.Server.Aborts[19270407] > 0; !refused {
					t.Errorf("%s, connection %d: caller %q", name, c.Number, s.Caller)
				}
				continue
			}
			callers[m[2]+" "+m[3]] = true
			n := s.Client.Packets["data"] + s.Server.Packets["data"] - s.Client.Again - s.Server.Again
			if opened := s.Client.Opened + s.Server.Opened; opened != n || n == 0 {
				t.Errorf("%s, connection %d: %d of %d packets are opened", name, c.Number, opened, n)
			}
		}
		for i := range f.calls {
			if k := &f.calls[i]; k.Whole && !k.HasOp {
				t.Errorf("%s: no opcode of %v", name, k)
			}
		}
	}
	want := []string{"auth 1", "auth 2", "clear 1", "clear 2", "crypt 1", "crypt 2"}
	if got := slices.Sorted(maps.Keys(callers)); !slices.Equal(got, want) {
		t.Errorf("levels and keys %q", got)
	}
}

// Without keys, nothing is guessed of what is protected.
func TestProtectedCapturesStayClosed(t *testing.T) {
	for _, name := range []string{"vos-dump-100k-crypt", "vos-create-auth"} {
		f := analyzeWith(t, golden(t, name), &Analyzer{})
		f.want(t)
		for i := range f.calls {
			if k := &f.calls[i]; k.HasOp || k.Operation != "" {
				t.Errorf("%s: %v", name, k)
			}
		}
	}
	// The keys of another service are nobody's fault.
	other := &rxkad.Keyring{}
	if err := other.AddDES(1, rxkad.Key{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}); err != nil {
		t.Fatal(err)
	}
	texts := 0
	f := analyzeWith(t, golden(t, "rxr-levels"), &Analyzer{Security: []Security{Rxkad(other)}}, func(e *dissect.Event) error {
		if p, ok := e.Upper.(*Packet); ok && strings.Contains(p.Text, "which the keys do not open") {
			texts++
		}
		return nil
	})
	f.want(t)
	if texts != 6 {
		t.Errorf("%d responses are said not to be opened", texts)
	}
}

// The calls in captures whose making is known.
func TestCallsOfCaptures(t *testing.T) {
	for name, want := range map[string][]string{
		"pts-listmax-noauth": {
			"RX call 0/1 service=73 pt.ListMax: request 4 bytes in 1 packet; reply 8 bytes in 1 packet; ",
		},
		"pts-listentries-noauth-abort": {"; aborted by the server: PT"},
		"rxr-aborts": {
			"RX call 0/1 service=2077 operation 3: request 40028 bytes in 29 packets; reply 0 bytes in 0 packets; aborted by the server: ",
			"; aborted by the client: ", "; busy 1 times",
		},
		"bos-status-noauth":     {" bos."},
		"vos-dump-100k-crypt":   {"vol.Dump"},
		"afsio-fidread-5k":      {" fs.Fetch", " cb."},
		"kafs-mount-read":       {" fs.FetchData64", " cb.", " vl."},
		"ubik-udebug":           {" ubik."},
		"vos-restore-100k-auth": {"vol.Restore"},
		"loss100-call-dead":     {"reply 0 bytes in 0 packets; not complete"},
		"loss5-vos-dump-300k":   {" sent again; "},
	} {
		var all strings.Builder
		for _, k := range analyze(t, golden(t, name)).calls {
			all.WriteString(k.String() + "\n")
		}
		for _, w := range want {
			if !strings.Contains(all.String(), w) {
				t.Errorf("%s: no %q in\n%s", name, w, &all)
			}
		}
	}
}
