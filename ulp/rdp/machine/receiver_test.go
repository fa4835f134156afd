package machine

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"urnic/ulp/rdp/wire"
)

// data is a data segment of the peer.
func data(number int, text string) string {
	return "<SEQ=" + strconv.Itoa(number) + "><ACK=100><Data=" + text + ">"
}

// O8 to O10: in both modes of delivery each message comes once; RCV.CUR passes over all that is there
// when a hole fills (A15).
func TestDelivery(t *testing.T) {
	for _, tt := range []struct {
		sequenced bool
		reads     []string
	}{
		{false, []string{"c", "b", "", "a", "", "d"}},
		{true, []string{"", "", "", "a b c", "", "d"}},
	} {
		p := newPeer(t, nil)
		p.in("OPEN", params(func(p *Params) { p.Sequenced = tt.sequenced }))
		for i, step := range []struct{ says, want string }{
			{data(203, "c"), "<SEQ=101><ACK=200><EA=203>"},
			{data(202, "b"), "<SEQ=101><ACK=200><EA=202-203>"},
			{data(202, "b"), "<SEQ=101><ACK=200><EA=202-203>"}, // O10
			{data(201, "a"), "<SEQ=101><ACK=203>"},
			{data(203, "c"), "<SEQ=101><ACK=203>"}, // O1
			{data(204, "d"), ""},
		} {
			p.says(step.says)
			p.expect(step.want)
			if got := p.read(); got != tt.reads[i] {
				t.Errorf("sequenced %v, step %d: read %q; want %q", tt.sequenced, i, got, tt.reads[i])
			}
		}
		p.wait(p.m.cfg.AckDelay)
		p.expect("<SEQ=101><ACK=204>")
		if s := p.c.Status(); s.Stats.Messages != 4 || s.Stats.Duplicates != 1 || s.Stats.Outside != 1 || p.m.Memory() != 0 {
			t.Errorf("%+v, %d bytes", s.Stats, p.m.Memory())
		}
	}
}

// A24: the connection is sequenced if either side asks for it.
func TestModeOfDelivery(t *testing.T) {
	for _, ours := range []bool{false, true} {
		for _, theirs := range []string{"", "<SDM>"} {
			want := ours || theirs != ""
			mark := ""
			if want {
				mark = "<SDM>"
			}
			pa := params(func(p *Params) { p.Sequenced = ours })
			p := newPeer(t, nil)
			p.in("LISTEN", pa)
			p.says("<SEQ=200>" + theirs + "<SYN>")
			p.expect("<SEQ=100><ACK=200><MAX=4><BUFMAX=600>" + mark + "<SYN,ACK>")
			p.says(data(202, "b"))
			if p.c.Sequenced() != want || (p.read() == "") != want {
				t.Errorf("passive, ours %v, theirs %q: sequenced %v", ours, theirs, p.c.Sequenced())
			}
			p = newPeer(t, nil)
			p.in("SYN-SENT", pa)
			p.says("<SEQ=200><ACK=100>" + theirs + "<SYN,ACK>")
			p.says(data(202, "b"))
			if p.c.Sequenced() != want || (p.read() == "") != want {
				t.Errorf("active, ours %v, theirs %q: sequenced %v", ours, theirs, p.c.Sequenced())
			}
		}
	}
}

// A7: a NUL fills a hole and is never delivered; it does not jump over one. Its acknowledgement counts.
func TestNULs(t *testing.T) {
	for _, sequenced := range []bool{false, true} {
		for _, numbers := range []bool{false, true} {
			p := newPeer(t, nil)
			p.in("OPEN", params(func(p *Params) { p.Sequenced, p.Numbers = sequenced, numbers }))
			p.send(1)
			p.sent(false)
			p.says("<SEQ=203><ACK=101><NUL>")
			p.expect("<SEQ=102><ACK=200><EA=203>")
			if s := p.c.Status(); s.Unacknowledged != 0 {
				t.Error("the acknowledgement of a NUL does not count")
			}
			p.says(data(204, "d"))
			p.says(data(202, "b"))
			p.expect("<SEQ=102><ACK=200><EA=202-204>")
			p.says("<SEQ=201><ACK=101><NUL>")
			p.expect("<SEQ=102><ACK=204>")
			want := map[bool]string{false: "d b", true: "b d"}[sequenced]
			if numbers {
				want = map[bool]string{false: "- d b -", true: "- b - d"}[sequenced]
			}
			if got := p.read(); got != want {
				t.Errorf("sequenced %v, numbers %v: read %q; want %q", sequenced, numbers, got, want)
			}
		}
	}
}

// Params.Numbers: NULs of an idle peer take one place together, however long nobody reads.
func TestNULsTakeOnePlace(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(func(p *Params) { p.Numbers = true }))
	for number := 201; number < 301; number++ {
		p.says("<SEQ=" + strconv.Itoa(number) + "><ACK=100><NUL>")
	}
	p.expect("<SEQ=101><ACK=300>")
	if msg, err := p.c.Receive(); err != nil || msg.Seq != 201 || msg.Nulls != 100 || msg.Data != nil {
		t.Errorf("%+v, %v", msg, err)
	}
	// Those that come in another order do not, and are bounded.
	for number := uint32(301); number < 401; number += 2 {
		for _, n := range []uint32{number + 1, number} {
			h := wire.Header{Flags: wire.NUL | wire.ACK, Seq: n, Ack: 100}
			p.saysHeader(&h, nil)
		}
	}
	if n := p.c.Status().Queued; n == 0 || n > 2*4 {
		t.Errorf("%d are queued", n)
	}
}

// A35: what is in order is acknowledged with the second segment, with data, or after a short time; with a
// window of 1 or 2, and whatever is not in order, at once.
func TestDelayedAcknowledgements(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(func(p *Params) { p.Window = 8 }))
	p.says(data(201, "a"))
	p.expect("")
	p.says(data(202, "b"))
	p.expect("<SEQ=101><ACK=202>")
	p.says(data(203, "c"))
	p.expect("")
	p.wait(p.m.cfg.AckDelay - 1)
	p.expect("")
	p.wait(1)
	p.expect("<SEQ=101><ACK=203>")
	p.says(data(204, "d"))
	p.send(1) // RFC 908 §4.4: combined with data whenever possible
	p.expect("<SEQ=101><ACK=204><Data>")
	p.says("<SEQ=205><ACK=101>")
	p.wait(time.Hour)
	p.expect("")
	p.says("<SEQ=205><ACK=101><NUL>")
	p.expect("<SEQ=102><ACK=205>")
	p.says("<SEQ=206><ACK=101><Data>")
	p.says("<SEQ=208><ACK=101><Data>")
	p.expect("<SEQ=102><ACK=206><EA=208>")
	for _, window := range []int{1, 2} {
		p := newPeer(t, nil)
		p.in("OPEN", params(func(p *Params) { p.Window = window }))
		p.says(data(201, "a"))
		p.expect("<SEQ=101><ACK=201>")
	}
}

// O5, A25: more data than this end has announced ends the connection; 20 bytes for IP do not count here.
func TestOversizedSegment(t *testing.T) {
	for size, state := range map[int]State{600 - 18: Open, 600 - 17: CloseWait} {
		p := newPeer(t, nil)
		p.in("OPEN", params(nil))
		p.says(data(201, "a"))
		p.says(data(202, strings.Repeat("x", size)))
		if p.c.State() != state {
			t.Fatalf("%d bytes: %v", size, p.c.State())
		}
		if state == CloseWait {
			p.expect("<SEQ=101><RST>")
			if !errors.Is(p.c.Err(), ErrOversized) || p.read() != "a" {
				t.Error(p.c.Err())
			}
			p.says(data(203, "c")) // the RST was lost
			p.expect("<SEQ=101><RST>")
		}
	}
	// A list of EACKs is no data.
	p := newPeer(t, nil)
	p.in("OPEN", params(func(p *Params) { p.MaxSegment = 50 }))
	p.says("<SEQ=201><ACK=100><EA=300-320>")
	if p.c.State() != Open {
		t.Error(p.c.Err())
	}
}

// A27: acknowledgements and RSTs outside of the window are answered seldom, and in the end not at all: two
// ends whose numbers have parted must not answer each other forever. Data, NUL and SYN always are.
func TestAnswersOutsideOfTheWindow(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	for _, s := range []string{"<SEQ=900><ACK=100>", "<SEQ=900><RST>"} {
		n := 0
		for range 1000 {
			p.wait(100 * time.Millisecond)
			p.says(s)
			n += len(p.sent(false))
		}
		if n > maxDoubts || n == 0 && s == "<SEQ=900><ACK=100>" {
			t.Errorf("%s: %d answers", s, n)
		}
	}
	for range 3 {
		for _, s := range []string{"<SEQ=900><ACK=100><Data>", "<SEQ=900><ACK=100><NUL>", "<SEQ=900><SYN>"} {
			p.says(s)
			p.expect("<SEQ=101><ACK=200>")
		}
	}
	p.says("<SEQ=201><ACK=100>") // acceptable: the count begins anew
	p.wait(time.Second)
	p.says("<SEQ=900><ACK=100>")
	p.expect("<SEQ=101><ACK=200>")
	p.says("<SEQ=900><ACK=100>")
	p.expect("")
}

// A37: all of it also where the numbers wrap.
func TestNumbersWrap(t *testing.T) {
	for _, sequenced := range []bool{false, true} {
		p := newPeer(t, nil)
		p.isses = []uint32{0xffffffff}
		l, err := p.m.Listen(ListenConfig{Port: p.local, Params: params(func(p *Params) { p.Sequenced = sequenced })})
		if err != nil || l == nil {
			t.Fatal(err)
		}
		p.says("<SEQ=4294967294><SYN>")
		p.expect("<SEQ=4294967295><ACK=4294967294><SYN,ACK>")
		for _, step := range []struct{ says, want string }{
			{"<SEQ=4294967295><ACK=4294967295><Data=a>", ""},
			{"<SEQ=2><ACK=4294967295><Data=d>", "<SEQ=0><ACK=4294967295><EA=2>"},
			{"<SEQ=1><ACK=4294967295><Data=c>", "<SEQ=0><ACK=4294967295><EA=1-2>"},
			{"<SEQ=8><ACK=4294967295><Data=z>", "<SEQ=0><ACK=4294967295><EA=1-2>"}, // the window ends at 7
			{"<SEQ=0><ACK=4294967295><Data=b>", "<SEQ=0><ACK=2>"},
		} {
			p.says(step.says)
			p.expect(step.want)
		}
		want := map[bool]string{false: "a d c b", true: "a b c d"}[sequenced]
		if got := p.read(); got != want {
			t.Errorf("read %q; want %q", got, want)
		}
		p.send(2)
		p.expect("<SEQ=0><ACK=2><Data> <SEQ=1><ACK=2><Data>")
		p.says("<SEQ=3><ACK=4294967295><EA=1>")
		p.says("<SEQ=3><ACK=1>")
		if s := p.c.Status(); s.Unacknowledged != 0 || p.c.una != 2 {
			t.Errorf("%+v, SND.UNA %d", s, p.c.una)
		}
	}
}

// The machine keeps nothing of the memory that Receive and Send are given, and gives memory back to be
// used again.
func TestMemoryIsCopied(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	h, text := parse(t, data(201, "hello"))
	h.Version, h.Source, h.Dest = p.version, p.remote, p.local
	segment := h.AppendTo(nil, text, nil)
	p.m.Receive(p.now, p.path, segment)
	clear(segment)
	out := []byte("world")
	if err := p.c.Send(p.now, out); err != nil {
		t.Fatal(err)
	}
	clear(out)
	p.pull(func(_ *wire.Header, data []byte) {
		if string(data) != "world" {
			t.Errorf("sent %q", data)
		}
	})
	msg, err := p.c.Receive()
	if err != nil || string(msg.Data) != "hello" {
		t.Errorf("%q, %v", msg.Data, err)
	}
	p.m.Free(msg.Data)
	p.m.Free([]byte("not the machine's"))
}
