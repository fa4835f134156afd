package ddp

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"urnic/ddp/ddptest"
	"urnic/pd"
	"urnic/stag"
)

// An upper is the ULP of a sink under test. Its untagged buffers lie in queues,
// its tagged ones in a table of STags, which it uses as RDMAP does.
type upper struct {
	queues    [][]*buffer // all that were posted, by QN
	delivered []int       // how many of them are delivered, by QN
	table     *stag.Table
	scope     stag.Scope

	got    []delivery
	calls  int // of all methods but Arrived
	placed int // bytes, of both kinds

	arrived []int                       // calls before each segment
	decline error                       // that Buffer fails with, or nil
	admit   func(*UntaggedHeader) error // or nil
	deliver func(*delivery) error       // or nil
}

// A delivery is what the ULP was told: of a tagged segment, or of an untagged
// message.
type delivery struct {
	tagged   TaggedHeader
	untagged UntaggedHeader
	n        uint32
	data     string // of an untagged message
}

// A buffer is an untagged buffer.
type buffer struct {
	mem    []byte
	placed *int
	err    error // that Place fails with
}

func (b *buffer) Len() uint64 { return uint64(len(b.mem)) }

func (b *buffer) Place(off uint32, p []byte) error {
	if b.err != nil {
		return b.err
	}
	copy(b.mem[off:int(off)+len(p)], p) // panics outside
	*b.placed += len(p)
	return nil
}

// newUpper returns a ULP with queues of buffers of these sizes.
func newUpper(queues ...[]int) *upper {
	u := &upper{delivered: make([]int, len(queues)), table: new(stag.Table)}
	for _, sizes := range queues {
		var q []*buffer
		for _, n := range sizes {
			q = append(q, &buffer{mem: make([]byte, n), placed: &u.placed})
		}
		u.queues = append(u.queues, q)
	}
	return u
}

func (u *upper) PlaceTagged(h *TaggedHeader, payload []byte) error {
	u.calls++
	pin, err := u.table.Acquire(h.STag, u.scope, stag.RemoteWrite, h.TO, uint64(len(payload)))
	if err != nil {
		return placementError(err)
	}
	defer pin.Release()
	copy(pin.Bytes(), payload)
	u.placed += len(payload)
	return nil
}

// placementError says what a check of package stag means to DDP.
func placementError(err error) error {
	var e *stag.AccessError
	if !errors.As(err, &e) {
		return err
	}
	return &Error{Clause: "RFC 5041 §7.1", Err: err, Code: map[stag.Violation]Code{
		stag.InvalidSTag:   CodeInvalidSTag,
		stag.NotAssociated: CodeSTagNotAssociated,
		stag.NoRights:      CodeSTagNotAssociated, // there is no code for missing rights
		stag.OutOfBounds:   CodeBaseBounds,
		stag.Wrap:          CodeTOWrap,
	}[e.Violation]}
}

func (u *upper) Arrived() { u.arrived = append(u.arrived, u.calls) }

func (u *upper) Buffer(h *UntaggedHeader, ahead uint32) (Buffer, error) {
	u.calls++
	if u.decline != nil {
		return nil, u.decline
	}
	open := u.queues[h.QN][u.delivered[h.QN]:]
	if uint64(ahead) >= uint64(len(open)) {
		return nil, nil
	}
	return open[ahead], nil
}

func (u *upper) Admit(h *UntaggedHeader) error {
	u.calls++
	if u.admit == nil {
		return nil
	}
	return u.admit(h)
}

func (u *upper) DeliverTagged(h *TaggedHeader, n int) error {
	u.calls++
	return u.tell(delivery{tagged: *h, n: uint32(n)})
}

func (u *upper) DeliverUntagged(h *UntaggedHeader, length uint32) error {
	u.calls++
	b := u.queues[h.QN][u.delivered[h.QN]]
	u.delivered[h.QN]++
	return u.tell(delivery{untagged: *h, n: length, data: string(b.mem[:length])})
}

func (u *upper) tell(d delivery) error {
	u.got = append(u.got, d)
	if u.deliver == nil {
		return nil
	}
	return u.deliver(&d)
}

// messages returns the contents of the untagged messages delivered.
func (u *upper) messages() []string {
	s := []string{}
	for _, d := range u.got {
		if !d.tagged.Control.Tagged() {
			s = append(s, d.data)
		}
	}
	return s
}

// domains returns that many protection domains of one device.
func domains(t testing.TB, n int) []*pd.Domain {
	t.Helper()
	m := pd.NewManager(pd.Limits{}, pd.Limits{})
	d := make([]*pd.Domain, n)
	for i := range d {
		var err error
		if d[i], err = m.NewDomain(); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// expose lets the peer write to n bytes at offset base.
func (u *upper) expose(t testing.TB, base uint64, n int) (stag.STag, []byte) {
	t.Helper()
	if u.scope.Domain == nil {
		u.scope = stag.Scope{Domain: domains(t, 1)[0], Stream: 1}
	}
	mem := make([]byte, n)
	e, err := u.table.Register(u.scope.Domain, stag.Memory{Mem: mem, Base: base, Access: stag.LocalWrite | stag.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	return e.STag(), mem
}

// untagged returns a segment to an untagged buffer.
func untagged(qn, msn, mo uint32, last bool, payload string) []byte {
	b, _ := UntaggedHeader{Control: NewControl(false, last), QN: qn, MSN: msn, MO: mo}.AppendBinary(nil)
	return append(b, payload...)
}

// tagged returns a segment to a tagged buffer.
func tagged(s stag.STag, to uint64, last bool, payload string) []byte {
	b, _ := TaggedHeader{Control: NewControl(true, last), STag: s, TO: to}.AppendBinary(nil)
	return append(b, payload...)
}

// A sinkTest feeds a sink by hand.
type sinkTest struct {
	testing.TB
	ulp   *upper
	sink  Sink
	order uint64 // of the next segment
}

func newSinkTest(t testing.TB, u *upper) *sinkTest {
	return &sinkTest{TB: t, ulp: u, sink: newSink(u, len(u.queues))}
}

// take hands over segments in the sender's order.
func (s *sinkTest) take(segments ...[]byte) {
	for _, b := range segments {
		_ = s.sink.Segment(b, s.order)
		s.order++
	}
}

// wantMessages checks which untagged messages were delivered so far.
func (s *sinkTest) wantMessages(want ...string) {
	s.Helper()
	if got := s.ulp.messages(); !slices.Equal(got, want) {
		s.Errorf("delivered %q; want %q", got, want)
	}
	if s.sink.err != nil {
		s.Errorf("the sink failed: %v", s.sink.err)
	}
}

// wantError checks that the sink has failed, for this segment.
func (s *sinkTest) wantError(want Code, segment []byte) {
	s.Helper()
	wantError(s, s.sink.err, want, segment)
}

// wantError checks what an error says of the segment it is about.
func wantError(t testing.TB, err error, want Code, segment []byte) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != want {
		t.Errorf("got %v; want %v", err, want)
		return
	}
	var header []byte
	if want != CodeLocalCatastrophic {
		n := UntaggedHeaderLen
		if Control(segment[0]).Tagged() {
			n = TaggedHeaderLen
		}
		header = segment[:n]
	}
	if !slices.Equal(e.Header, header) || e.SegmentLen != len(segment) {
		t.Errorf("%v: about header %x of a segment of %d octets; want %x of %d", e, e.Header, e.SegmentLen, header, len(segment))
	}
	if !strings.HasPrefix(e.Clause, "RFC 5041 §") {
		t.Errorf("%v names the clause %q", e, e.Clause)
	}
}

// takes counts the calls of take.
var takes int

// take receives what is there, by Receive and TryReceive in turn: what comes of it
// must be the same.
func take(s *Stream) error {
	if takes++; takes%2 == 0 {
		return s.Receive()
	}
	some, err := s.TryReceive()
	if err == nil && !some {
		err = errors.New("TryReceive found nothing")
	}
	return err
}

func TestTryReceiveOfNothingDoesNothing(t *testing.T) {
	l, m := ddptest.Pair(ddptest.Options{})
	u := newUpper([]int{4})
	s := NewStream(l, u, 1)
	for range 2 {
		if some, err := s.TryReceive(); some || err != nil || u.calls != 0 {
			t.Errorf("%v, %v, %d calls", some, err, u.calls)
		}
	}
	m.Inject(untagged(0, 1, 0, true, "data"), 0)
	if some, err := s.TryReceive(); !some || err != nil || len(u.got) != 1 {
		t.Errorf("%v, %v; delivered %v", some, err, u.got)
	}
	// An error is told once; after it, what comes is dropped in silence.
	m.Inject(untagged(0, 7, 0, true, "bad"), 1)
	m.Inject(untagged(0, 7, 0, true, "bad"), 2)
	for i, want := range []bool{true, false, false} { // the first segment comes again
		if some, err := s.TryReceive(); some == want || (err != nil) != want {
			t.Errorf("call %d: %v, %v", i, some, err)
		}
	}
	// The end, and a segment behind it.
	if err := m.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if some, err := s.TryReceive(); some || !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v, %v", some, err)
	}
}
