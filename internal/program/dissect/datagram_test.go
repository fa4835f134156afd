package dissect

import (
	"bytes"
	"net/netip"
	"testing"

	"urnic/internal/capture"
)

// A letters is a ULP whose connections are pairs of endpoints. It ends one when it sees "end".
type letters struct {
	conns    map[netip.AddrPort]*Reporter // by client
	got      []string
	refused  int
	ended    bool
	violates bool
}

// A letter is an event, and the summary of a connection too.
type letter string

func (letter) Name() string     { return "letter" }
func (l letter) String() string { return string(l) }

func (u *letters) New(*Reporter) Upper { return nobody{} }

// nobody follows no connection.
type nobody struct{ Upper }

func (nobody) Frame(Side, capture.At, []byte) {}
func (nobody) Follows() bool                  { return false }

func (u *letters) Datagram(at capture.At, d *capture.Datagram, open func(client, server netip.AddrPort) *Reporter) {
	r := u.conns[d.Src]
	if r == nil {
		if r = open(d.Src, d.Dst); r == nil {
			u.refused++
			return
		}
		u.conns[d.Src] = r
	}
	u.got = append(u.got, string(d.Data))
	r.Emit(Client, at, letter(d.Data))
	if u.violates {
		r.Violate(Rule{"letters", "§1"}, Client, at, "%s", d.Data)
	}
	if string(d.Data) == "end" {
		delete(u.conns, d.Src)
		r.End()
		r.End() // once is enough
	}
}

func (u *letters) EndDatagrams() { u.ended = true }

func datagramFile(t *testing.T, play func(w *capture.Writer)) *capture.Reader {
	t.Helper()
	var b bytes.Buffer
	w, err := capture.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	play(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := capture.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func clientPort(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), 4000)
}

var lettersServer = netip.MustParseAddrPort("10.9.9.9:7000")

func TestDatagramsAreHandedOn(t *testing.T) {
	r := datagramFile(t, func(w *capture.Writer) {
		w.Datagram(clientPort(1), lettersServer, []byte("a"))
		w.Datagram(clientPort(2), lettersServer, []byte("b"))
		w.Datagram(clientPort(1), lettersServer, []byte("end"))
		w.Datagram(clientPort(1), lettersServer, []byte("c"))
	})
	u := &letters{conns: map[netip.AddrPort]*Reporter{}, violates: true}
	var shown []string
	res, err := AnalyzeULP(t.Context(), r, AnyULP{u}, func(e *Event) error {
		if e.Kind == KindUpper {
			shown = append(shown, e.Upper.String()+" "+e.Conn.Addr[Client]+" "+e.Conn.Transport.String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a 10.0.0.1:4000 UDP", "b 10.0.0.2:4000 UDP", "end 10.0.0.1:4000 UDP", "c 10.0.0.1:4000 UDP"}
	if len(shown) != len(want) || !u.ended {
		t.Fatalf("%q, ended %t", shown, u.ended)
	}
	for i := range want {
		if shown[i] != want[i] {
			t.Errorf("%q, want %q", shown[i], want[i])
		}
	}
	if n := &res.Total; n.Connections != 3 || n.Direct != 3 || n.Violations != 4 || len(res.Connections) != 3 || res.Start.IsZero() {
		t.Errorf("%+v, %d connections, start %v", n, len(res.Connections), res.Start)
	}
}

// Of connections that do not end there is a bound; those that have ended do not count.
func TestOpenDatagramConnectionsAreBounded(t *testing.T) {
	const more = 5
	for _, what := range []string{"go on", "end"} {
		r := datagramFile(t, func(w *capture.Writer) {
			for i := range maxLoose + more {
				w.Datagram(clientPort(i), lettersServer, []byte(what))
			}
		})
		u := &letters{conns: map[netip.AddrPort]*Reporter{}}
		res, err := Config{ULP: u, Unlisted: true}.Analyze(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		refused := map[string]int{"go on": more}[what]
		if u.refused != refused || res.Total.Connections != maxLoose+more-refused || len(u.got) != res.Total.Connections {
			t.Errorf("%s: %d refused, %d connections, %d datagrams", what, u.refused, res.Total.Connections, len(u.got))
		}
	}
}
