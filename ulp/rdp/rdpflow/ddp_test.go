package rdpflow

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/rdmap"
	"urnic/stag"
	"urnic/ulp/rdp/rdpllp/llpwire"
	"urnic/ulp/rdp/wire"
)

// What else uses RDP's port 50 is RDP, and no more.
func TestPort50OfSomethingElse(t *testing.T) {
	p := newDDPPlayer(t)
	p.connect()
	for range 2 * tries {
		p.data(client, []byte("something else, of some length"))
	}
	p.seg(client, untagged(true, rdmap.OpSend, 1, 0, "x")) // after so much, it is by chance
	f := analyze(t, p.recording())
	f.want(t)
	if c := f.Connections[0]; c.Transport != dissect.UDP || c.LLP != nil || f.Total.Direct != 1 || c.Segments.Total() != 0 {
		t.Errorf("%v, %+v", c.Transport, f.Total)
	}
}

// Without its start, DDP over RDP is recognised by its messages.
func TestDDPPickedUpInMidStream(t *testing.T) {
	p := newDDPPlayer(t)
	p.lose = true
	p.start()
	p.lose = false
	p.count = [2]uint32{1<<32 - 1, 7} // the number of the client's segments wraps
	for i := range uint32(4) {
		p.seg(client, untagged(true, rdmap.OpSend, 100+i, 0, "x"))
	}
	p.seg(client, untagged(true, rdmap.OpSend, 105, 0, "x"))
	f := analyze(t, p.recording())
	f.want(t, "msn by client")
	if f.Connections[0].Messages[rdmap.OpSend] != 5 || len(f.notes) != 1 || !strings.Contains(f.notes[0], "picked up in mid-stream") {
		t.Errorf("%v, notes %q", f.Connections[0].Messages, f.notes)
	}
}

// A message that comes again under its number counts once, whatever the order.
func TestRepeatedSegmentsCountOnce(t *testing.T) {
	p := newDDPPlayer(t)
	p.start()
	for i := range uint32(3) {
		p.seg(client, untagged(true, rdmap.OpSend, 1+i, 0, "x"))
		for n := range i + 1 {
			p.put(ddpEvent{client, clientISS + 2 + n, sealed(llpwire.Segment, n, untagged(true, rdmap.OpSend, 1+n, 0, "x"))})
		}
	}
	p.stop()
	f := analyze(t, p.recording())
	f.want(t)
	if c := f.Connections[0]; c.Segments[rdmap.OpSend] != 3 || c.Messages[rdmap.OpSend] != 3 || c.Payload != 3 {
		t.Errorf("%d segments, %d messages, %d bytes", c.Segments[rdmap.OpSend], c.Messages[rdmap.OpSend], c.Payload)
	}
}

// A capture that has no more of a segment than its beginning lacks it: that is not called a violation.
func TestDDPCapturedInPart(t *testing.T) {
	p := newDDPPlayer(t)
	p.start()
	p.seg(client, untagged(false, rdmap.OpSend, 1, 0, strings.Repeat("x", 1000)))
	p.seg(client, untagged(true, rdmap.OpSend, 1, 1000, strings.Repeat("x", 10)))
	p.seg(client, untagged(true, rdmap.OpSend, 2, 0, "x"))
	p.stop()
	all := packetsOf(t, p.recording())
	for i := range all {
		all[i].Data = all[i].Data[:min(len(all[i].Data), 200)]
	}
	f := analyze(t, fileOf(t, all))
	f.want(t)
	if c := f.Connections[0]; c.Messages[rdmap.OpSend] != 2 || c.Undecoded == 0 || f.Verdict() != dissect.VerdictIncomplete {
		t.Errorf("%v, %d bytes are not decoded, %s", c.Messages, c.Undecoded, f.Verdict())
	}
}

// What the other side has acknowledged and the capture lacks is given up 20 ms later, and what is behind it is delivered.
func TestMissingSegmentsAreGivenUpInTime(t *testing.T) {
	p := newDDPPlayer(t)
	p.start()
	p.lose = true
	p.seg(client, untagged(true, rdmap.OpSend, 1, 0, "x"))
	p.lose = false
	p.seg(client, untagged(true, rdmap.OpSend, 2, 0, "x"))
	for _, wait := range []time.Duration{0, settleAfter - 3*time.Millisecond, 0, 0, 0} {
		p.wait(wait)
		p.segment(server, wire.Header{Flags: wire.ACK, Seq: p.next[server], Ack: p.acked[server]}, "", ports(server))
	}
	var at []int
	f := analyze(t, p.recording(), func(e *dissect.Event) error {
		if e.Kind == dissect.KindMessage {
			at = append(at, e.At.Packet)
		}
		return nil
	})
	f.want(t)
	// The first acknowledgement is packet 7; packet 9 comes 19 ms later, packet 10 20 ms.
	if c := f.Connections[0]; !slices.Equal(at, []int{10}) || c.Undecoded != llpwire.Overhead || len(f.notes) != 1 {
		t.Errorf("a message at %v, %d bytes not decoded, notes %q", at, c.Undecoded, f.notes)
	}
}

// What is behind a segment that never came is shown at the end.
func TestWhatIsBehindAHoleIsShownAtTheEnd(t *testing.T) {
	p := newDDPPlayer(t)
	p.start()
	p.hold = true
	p.count[client], p.next[client] = 1, p.next[client]+1
	p.seg(client, untagged(true, rdmap.OpSend, 2, 0, "x"))
	p.put(p.held[0])
	f := analyze(t, p.recording())
	f.want(t)
	if c := f.Connections[0]; c.Messages[rdmap.OpSend] != 1 || c.Undecoded == 0 || len(f.notes) != 1 {
		t.Errorf("%v, %d bytes not decoded, notes %q", c.Messages, c.Undecoded, f.notes)
	}
}

// A response whose request the capture may lack is shown at the end, and nobody is blamed.
func TestDoubtfulResponseAtTheEnd(t *testing.T) {
	p := newDDPPlayer(t)
	p.start()
	p.seg(server, tagged(true, rdmap.OpReadResponse, 5, 0, "x"))
	f := analyze(t, p.recording())
	f.want(t)
	if c := f.Connections[0]; c.Messages[rdmap.OpReadResponse] != 1 || len(f.notes) != 1 || !strings.Contains(f.notes[0], "unless the capture lacks") {
		t.Errorf("%v, notes %q", c.Messages, f.notes)
	}
	analyzeWith(t, p.file.Bytes(), &Analyzer{Complete: true}).want(t, "read-response by server")
}

// A watcher is a ULP that notes what it is told.
type watcher struct {
	dissect.Upper
	r    *dissect.Reporter
	told []string
}

func (w *watcher) New(r *dissect.Reporter) dissect.Upper { w.r = r; return w }
func (w *watcher) Frame(from dissect.Side, _ capture.At, private []byte) {
	w.told = append(w.told, from.String()+" "+string(private))
}
func (w *watcher) Follows() bool { w.r.Connection().Upper = watched{}; return true }
func (w *watcher) Send(from dissect.Side, _ capture.At, m *dissect.Sent) {
	w.told = append(w.told, from.String()+" sends "+string(m.Octets))
}

func (w *watcher) Write(dissect.Side, capture.At, stag.STag, uint64, []byte) string { return "watched" }
func (w *watcher) Lost(dissect.Side)                                                {}
func (w *watcher) End(capture.At) {
	if w.r.Whole() {
		w.told = append(w.told, "end")
	}
}

type watched struct{ dissect.UpperSummary }

func (watched) Name() string { return "watched" }

// A ULP is followed over RDP as over MPA, and its messages are put together from segments in any order.
func TestULPOverRDP(t *testing.T) {
	p := newDDPPlayer(t)
	p.start()
	p.hold = true
	p.seg(client, untagged(false, rdmap.OpSend, 1, 0, "one, "))
	p.seg(client, untagged(true, rdmap.OpSend, 1, 5, "two"))
	p.release()
	p.stop()
	r, err := capture.NewReader(bytes.NewReader(p.recording()))
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{}
	result, err := dissect.AnalyzeULP(t.Context(), r, dissect.AnyULP{w, &Analyzer{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"client ask", "server answer", "client sends one, two", "end"}; !slices.Equal(w.told, want) {
		t.Errorf("the ULP was told %q, want %q", w.told, want)
	}
	c := result.Connections[0]
	if s, ok := c.LLP.(*Summary); !ok || s.State != "closed" || c.Upper.Name() != "watched" || c.Segments.Total() != 2 {
		t.Errorf("%v below, %v above", c.LLP, c.Upper)
	}
}

// FuzzDDP: whatever messages two sides send each other over RDP, in whatever order, the analysis ends, lets go of what it
// remembers, and can be shown. Each message of the input has side, time and distance of its number, kind, number and length in front.
func FuzzDDP(f *testing.F) {
	f.Add([]byte("\x00\x10\x01\x00\x08\x00\x02\x00\x02\x01\x10\x02\x00\x04\x00\x02\x00\x02"), false)
	f.Add([]byte("\x00\x10\x04\x00\x13"+string(untagged(true, rdmap.OpSend, 1, 0, "x"))+"\x01\x20\x05\x01\x00\x00\x20\x05\x01\x00"), true)
	f.Add([]byte("\x00\x10\x04\x00\x2e"+string(readRequest(1, 5, 10))+"\x01\x10\x04\x00\x0f"+string(tagged(true, rdmap.OpReadResponse, 5, 0, "x"))), true)
	f.Fuzz(func(t *testing.T, b []byte, started bool) {
		p := newDDPPlayer(t)
		if started {
			p.start()
		} else {
			p.connect()
		}
		for n := 0; len(b) >= 5 && n < 200; n++ {
			from, number, size := dissect.Side(b[0]&1), uint32(int8(b[3])), min(int(b[4]), len(b)-5)
			m := sealed(llpwire.Kind(b[2]&7), number, b[5:5+size])
			switch {
			case b[2]&0x80 != 0:
				m[len(m)-1]++
			case b[2]&0x40 != 0:
				m = m[:len(m)/2]
			}
			at := p.next[from] + uint32(int8(b[1])>>4) - 1
			p.next[from] = max(p.next[from], at+1)
			if b[0]&2 != 0 {
				p.acked[1-from] = at
			}
			p.segment(from, wire.Header{Flags: wire.ACK, Seq: at, Ack: p.acked[from]}, string(m), ports(from))
			p.wait(settleAfter * (1 << (b[0] >> 6)) / 16)
			b = b[5+size:]
		}
		file := p.recording()
		check(t, file, &Analyzer{})
		check(t, file, &Analyzer{Complete: true})
	})
}
