package datagramflow

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"urnic/internal/capture"
	"urnic/internal/dropin/datagram"
	"urnic/internal/program/dissect"
)

var (
	one   = netip.MustParseAddrPort("192.0.2.1:21000")
	two   = netip.MustParseAddrPort("192.0.2.2:21001")
	group = netip.MustParseAddrPort("239.1.2.3:20999")
	cm    = [2]netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:40000"), netip.MustParseAddrPort("192.0.2.2:7174")}
)

const (
	oneQP, twoQP = 0x4001, 0x8001
	key          = 0x01234567
)

// A recording is a capture in the making.
type recording struct {
	file bytes.Buffer
	w    *capture.Writer
}

func newRecording(t testing.TB) *recording {
	r := &recording{}
	var err error
	if r.w, err = capture.NewWriter(&r.file); err != nil {
		t.Fatal(err)
	}
	return r
}

// packet is a datagram with n bytes of payload.
func packet(h datagram.Header, n int) []byte {
	b := make([]byte, datagram.HeaderLen+n)
	h.Put(b)
	return b
}

// send is a Send from one to two.
func send(sequence uint32) datagram.Header {
	return datagram.Header{Op: datagram.Send, Dest: twoQP, Source: oneQP, Key: key, Sequence: sequence, Length: 5}
}

func (r *recording) add(from, to netip.AddrPort, b []byte) { r.w.Datagram(from, to, b) }

func (r *recording) service(from, to netip.AddrPort, s datagram.Service) {
	r.add(from, to, s.Append(nil))
}

// analyze returns the lines of the text, and the rules that were broken.
func (r *recording) analyze(t testing.TB) (text string, broken []string, result *dissect.Result) {
	t.Helper()
	if err := r.w.Close(); err != nil {
		t.Fatal(err)
	}
	in, err := capture.NewReader(bytes.NewReader(r.file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	handlers := []dissect.Handler{
		dissect.Text(&out, dissect.Options{}), dissect.JSON(io.Discard, dissect.Options{}), dissect.Ladder(io.Discard, dissect.Options{}),
	}
	result, err = dissect.AnalyzeULP(t.Context(), in, dissect.AnyULP{&Analyzer{}}, func(e *dissect.Event) error {
		if e.Kind == dissect.KindViolation {
			broken = append(broken, fmt.Sprintf("%s by %v", e.Violation.ID, e.From))
		}
		var err error
		for _, h := range handlers {
			err = errors.Join(err, h(e))
		}
		return err
	})
	var s dissect.Summary
	s.Add("capture", result)
	if err := errors.Join(err, s.WriteTable(io.Discard), s.WriteJSON(io.Discard)); err != nil {
		t.Fatal(err)
	}
	return out.String(), broken, result
}

func TestDatagramsAreExplained(t *testing.T) {
	r := newRecording(t)
	r.service(cm[0], cm[1], datagram.Service{Kind: datagram.ServiceRequest, ID: 7, Data: []byte("hi")})
	r.service(cm[1], cm[0], datagram.Service{Kind: datagram.ServiceReply, ID: 7, QPN: twoQP, Key: key})
	r.service(cm[1], cm[0], datagram.Service{Kind: datagram.ServiceReply, ID: 8, Status: datagram.ServiceRejected})
	h := send(1)
	h.Flags, h.Imm = datagram.Immediate|datagram.Solicited|datagram.AskAck, [4]byte{1, 2, 3, 4}
	r.add(one, two, packet(h, 5))
	r.add(two, one, packet(datagram.Header{Op: datagram.Ack, Sequence: 1, Length: 9}, 0))
	h = send(3)
	h.Length = 9
	r.add(one, two, packet(h, 5))
	r.add(one, two, packet(send(2), 5))
	r.add(one, group, packet(datagram.Header{Op: datagram.Send, Dest: datagram.Multicast, Source: oneQP, Key: key, Sequence: 1, Length: 5}, 5))
	r.add(two, one, packet(datagram.Header{Op: datagram.UCSend, Dest: oneQP, Source: twoQP, Key: 0xabc, Sequence: 1, Length: 5}, 5))
	text, broken, result := r.analyze(t)
	for _, want := range []string{
		"> datagram service request 0x7, 2 bytes of private data",
		"< datagram service reply 0x7: QP 0x8001, Q_Key 0x1234567",
		"< datagram service reply 0x8: rejected with status 2",
		"> datagram 1: UD Send with Immediate, QP 0x4001 to QP 0x8001, Q_Key 0x1234567, 5 bytes, immediate 01 02 03 04, solicited, asks for an Ack",
		"< datagram Ack of 1, 9 receives",
		"> datagram 3: UD Send, QP 0x4001 to QP 0x8001, Q_Key 0x1234567, 9 bytes, of which [0, 5) (1 missing before it)",
		"> datagram 2: UD Send, QP 0x4001 to QP 0x8001, Q_Key 0x1234567, 5 bytes (late, or again)",
		"> datagram 1: UD Send, QP 0x4001 to group, Q_Key 0x1234567, 5 bytes",
		"< datagram 1: UC Send, QP 0x8001 to QP 0x4001, PSN 0xabc, 5 bytes",
	} {
		if strings.Count(text, want+"\n") != 1 {
			t.Errorf("%q does not stand in\n%s", want, text)
		}
	}
	if len(broken) > 0 || result.Verdict() != dissect.VerdictOK || result.Total.Connections != 3 {
		t.Errorf("%v, %s, %d connections", broken, result.Verdict(), result.Total.Connections)
	}
}

// Each fault is found, and blamed on who has sent it.
func TestPlantedFaultsAreFound(t *testing.T) {
	flipped := func(b []byte, at int) []byte {
		b[at] ^= 1
		return b
	}
	sent := func(change func(*datagram.Header)) []byte {
		h := send(2)
		change(&h)
		return packet(h, 5)
	}
	request := datagram.Service{Kind: datagram.ServiceRequest, ID: 7}
	for name, c := range map[string]struct {
		from, to netip.AddrPort
		b        []byte
		want     string
	}{
		"nothing":                          {one, two, packet(send(2), 5), ""},
		"a damaged payload":                {one, two, flipped(packet(send(2), 5), datagram.HeaderLen), "datagram-crc by client"},
		"a damaged number":                 {one, two, flipped(packet(send(2), 5), 11), "datagram-crc by client"},
		"another version":                  {one, two, flipped(packet(send(2), 5), 4), "datagram-header by client"},
		"a header that is cut":             {one, two, packet(send(2), 5)[:20], "datagram-header by client"},
		"another Q_Key":                    {one, two, sent(func(h *datagram.Header) { h.Key++ }), "datagram-qkey by client"},
		"a forged source":                  {one, two, sent(func(h *datagram.Header) { h.Source = twoQP }), "datagram-source by client"},
		"a source without a slot":          {one, two, sent(func(h *datagram.Header) { h.Source = 1 }), "datagram-source by client"},
		"a group's number at a host":       {one, two, sent(func(h *datagram.Header) { h.Dest = datagram.Multicast }), "datagram-header by client"},
		"a queue pair's number at a group": {one, group, packet(send(2), 5), "datagram-header by client"},
		"a forged source of a group":       {two, group, sent(func(h *datagram.Header) { h.Dest = datagram.Multicast }), "datagram-source by client"},
		"an Ack of what was not sent":      {two, one, packet(datagram.Header{Op: datagram.Ack, Sequence: 2, Length: 1}, 0), "datagram-ack by server"},
		"a request of rdma_cm that is cut": {cm[0], cm[1], request.Append(nil)[:100], "datagram-service by client"},
		"a damaged request of rdma_cm":     {cm[0], cm[1], flipped(request.Append(nil), 8), "datagram-service by client"},
		"an Ack with the number of a QP":   {two, one, packet(datagram.Header{Op: datagram.Ack, Sequence: 1, Dest: 1}, 0), "datagram-header by server"},
	} {
		r := newRecording(t)
		r.service(cm[0], cm[1], request)
		r.service(cm[1], cm[0], datagram.Service{Kind: datagram.ServiceReply, ID: 7, QPN: twoQP, Key: key})
		r.add(one, two, packet(send(1), 5))
		r.add(c.from, c.to, c.b)
		text, broken, _ := r.analyze(t)
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		if !slices.Equal(broken, want) {
			t.Errorf("%s: %v; want %v\n%s", name, broken, want, text)
		}
	}
}

// Memory is bounded: the pair that was silent for longest is given up.
func TestManyPairs(t *testing.T) {
	r := newRecording(t)
	const n = maxPairs + 10
	for i := range n {
		r.add(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 21000), two, packet(send(1), 5))
	}
	if _, broken, result := r.analyze(t); len(broken) > 0 || result.Total.Connections != n {
		t.Errorf("%v, %d connections; want %d", broken, result.Total.Connections, n)
	}
}

func FuzzDatagrams(f *testing.F) {
	f.Add(packet(send(1), 5), []byte{})
	f.Add(packet(datagram.Header{Op: datagram.Ack, Sequence: 1, Length: 9}, 0), []byte("uRSI"))
	s := datagram.Service{Kind: datagram.ServiceReply, QPN: twoQP, Key: key}
	f.Add(s.Append(nil), packet(send(1), 5))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		r := newRecording(t)
		r.add(one, two, a)
		r.add(two, one, b)
		r.add(one, group, a)
		r.analyze(t)
	})
}
