package life

import (
	"errors"
	"testing"

	"urnic/ddp"
	"urnic/rdmap"
	"urnic/stag"
)

// A blameBench has a Write, two Reads of a request, an atomic, and a Read that is not
// begun.
type blameBench struct {
	*bench
	write, reads, atomic, later *Request
}

func newBlameBench(t *testing.T) *blameBench {
	b := &blameBench{bench: newBench(t)}
	b.write = b.put(0, rdmap.OpWrite)
	b.reads = b.put(0, rdmap.OpReadRequest, rdmap.OpReadRequest)
	b.atomic = b.put(0, rdmap.OpAtomicRequest)
	b.later = b.put(0, rdmap.OpReadRequest)
	for i, r := range []*Request{b.reads, b.later} {
		for j := range r.Messages {
			o := &r.Messages[j]
			o.SinkSTag, o.SinkTO = stag.STag(0x100+0x10*i+j), 0x1000
			o.STag, o.TO, o.Length = stag.STag(0x200), 0x2000, 100
		}
	}
	for _, r := range []*Request{b.write, b.reads, b.reads, b.atomic} {
		b.send(r)
	}
	return b
}

// wantBlamed ends the stream and wants r to be blamed, or none.
func (b *blameBench) wantBlamed(name string, r *Request, status Status) {
	b.t.Helper()
	b.Abort(errModel, 0)
	b.Over(false)
	for _, got := range b.Completed() {
		want := Status(Flushed)
		if got == r {
			want = status
		}
		if got.Status != want || (got.Cause != nil) != (got == r) {
			b.t.Errorf("%s: status %d because of %v, want %d", name, got.Status, got.Cause, want)
		}
	}
}

func TestATerminateBlamesTheReadThatItNames(t *testing.T) {
	sought := rdmap.ReadRequest{SinkSTag: 0x101, SinkTO: 0x1000, Size: 100, SrcSTag: 0x200, SrcTO: 0x2000}
	for name, c := range map[string]struct {
		change func(r *rdmap.ReadRequest)
		blames bool
	}{
		"as it was sent":     {func(*rdmap.ReadRequest) {}, true},
		"brought up to date": {func(r *rdmap.ReadRequest) { r.SinkTO += 40; r.SrcTO += 40; r.Size -= 40 }, true}, // RFC 5040 §4.8
		"the first":          {func(r *rdmap.ReadRequest) { r.SinkSTag-- }, true},
		"another sink":       {func(r *rdmap.ReadRequest) { r.SinkSTag = 0x999 }, false},
		"another source":     {func(r *rdmap.ReadRequest) { r.SrcSTag++ }, false},
		"another place":      {func(r *rdmap.ReadRequest) { r.SrcTO++ }, false},
		"another size":       {func(r *rdmap.ReadRequest) { r.Size++ }, false},
		"beyond it":          {func(r *rdmap.ReadRequest) { r.SinkTO += 40; r.SrcTO += 40 }, false},
		"not begun":          {func(r *rdmap.ReadRequest) { r.SinkSTag = 0x110 }, false},
	} {
		b := newBlameBench(t)
		r := sought
		c.change(&r)
		header, _ := r.AppendBinary(nil)
		b.Received(Arrival{Terminate: &rdmap.Terminate{RDMAHeader: header}})
		var want *Request
		if c.blames {
			want = b.reads
		}
		b.wantBlamed(name, want, RemoteTermination)
	}
}

func TestATerminateBlamesNoReadThatIsAnswered(t *testing.T) {
	b := newBlameBench(t)
	r := rdmap.ReadRequest{SinkSTag: 0x100, SinkTO: 0x1000, Size: 100, SrcSTag: 0x200, SrcTO: 0x2000}
	header, _ := r.AppendBinary(nil)
	b.Answered(b.reads)
	b.Received(Arrival{Terminate: &rdmap.Terminate{RDMAHeader: header}})
	b.wantBlamed("answered", nil, 0)
}

// An atomic is known by the MSN of its request: the third, or the fourth behind an
// indication that is a Read.
func TestATerminateBlamesTheAtomicByItsMSN(t *testing.T) {
	for name, c := range map[string]struct {
		msn, answered uint32
		qn            uint32
		hdrct         byte
		rtr, other    bool
		blames        bool
	}{
		"the third":               {msn: 3, qn: 1, hdrct: 0xC0, blames: true},
		"the third, one answered": {msn: 3, answered: 1, qn: 1, hdrct: 0xC0, blames: true},
		"a Read":                  {msn: 2, qn: 1, hdrct: 0xC0},
		"none":                    {msn: 4, qn: 1, hdrct: 0xC0},
		"the RTR was first":       {msn: 4, qn: 1, hdrct: 0xC0, rtr: true, blames: true},
		"not the RTR":             {msn: 3, qn: 1, hdrct: 0xC0, rtr: true},
		"the RTR was the peer's":  {msn: 3, qn: 1, hdrct: 0xC0, rtr: true, other: true, blames: true},
		"another queue":           {msn: 3, qn: 0, hdrct: 0xC0},
		"as Linux siw draws":      {msn: 3, qn: 1, hdrct: 0x03},
	} {
		b := newBlameBench(t)
		b.stream.ReadRTR, b.stream.Initiator = c.rtr, !c.other
		for range c.answered {
			b.Answered(b.reads)
		}
		h := ddp.UntaggedHeader{Control: ddp.NewControl(false, true), QN: c.qn, MSN: c.msn}
		header, _ := h.AppendBinary(nil)
		b.Received(Arrival{Terminate: &rdmap.Terminate{HdrCt: c.hdrct, DDPHeader: header}})
		var want *Request
		if c.blames {
			want = b.atomic
		}
		b.wantBlamed(name, want, RemoteTermination)
	}
}

func TestASinkThatIsGoneBlamesItsRead(t *testing.T) {
	gone := error(&stag.AccessError{})
	for name, c := range map[string]struct {
		op     rdmap.Opcode
		sink   stag.STag
		to     uint64
		n      int
		err    error
		blames bool
	}{
		"all of it":     {rdmap.OpReadResponse, 0x101, 0x1000, 100, gone, true},
		"the end":       {rdmap.OpReadResponse, 0x101, 0x1063, 1, gone, true},
		"beyond":        {rdmap.OpReadResponse, 0x101, 0x1063, 2, gone, false}, // the peer's fault
		"behind":        {rdmap.OpReadResponse, 0x101, 0x1064, 0, gone, false},
		"before":        {rdmap.OpReadResponse, 0x101, 0xFFF, 1, gone, false},
		"another":       {rdmap.OpReadResponse, 0x105, 0x1000, 1, gone, false},
		"a Write":       {rdmap.OpWrite, 0x101, 0x1000, 100, gone, false},
		"another error": {rdmap.OpReadResponse, 0x101, 0x1000, 100, errors.New("a version"), false},
	} {
		b := newBlameBench(t)
		h := ddp.TaggedHeader{Control: ddp.NewControl(true, true), RsvdULP: uint8(rdmap.NewControl(c.op)), STag: c.sink, TO: c.to}
		header, _ := h.AppendBinary(nil)
		b.Received(Arrival{Violation: &rdmap.Error{Code: rdmap.CodeBaseBounds, Header: header, SegmentLen: len(header) + c.n, Err: c.err}})
		var want *Request
		if c.blames {
			want = b.reads
		}
		b.wantBlamed(name, want, LocalProtection)
	}
}

// The first request that has failed is to blame, whatever the peer says of others.
func TestATerminateBlamesNoneAfterAnother(t *testing.T) {
	b := newBlameBench(t)
	_ = b.atomic.Refuse(LocalProtection, errModel)
	r := rdmap.ReadRequest{SinkSTag: 0x101, SinkTO: 0x1000, Size: 100, SrcSTag: 0x200, SrcTO: 0x2000}
	header, _ := r.AppendBinary(nil)
	b.Received(Arrival{Terminate: &rdmap.Terminate{RDMAHeader: header}})
	b.wantBlamed("another was first", b.atomic, LocalProtection)
}

func TestLostMemoryBlamesTheRequestWhoseItIs(t *testing.T) {
	for name, c := range map[string]struct {
		position uint64
		want     int
	}{
		"the first":         {0, 0},
		"behind the first":  {1, 2},
		"what is not begun": {9, 3},
	} {
		b := newBench(t)
		all := []*Request{b.put(0, rdmap.OpWrite), b.put(0, rdmap.OpReadRequest), b.put(0, rdmap.OpSend), b.put(0, rdmap.OpSend), b.put(0, rdmap.OpSend)}
		for _, r := range all {
			r.Messages[0].Payload = modelPayload{}
		}
		b.send(all[0])
		b.send(all[1])
		b.send(all[2])
		b.want(Send, all[3]) // and not posted
		b.MemoryLost(errTable, errModel, c.position)
		var pe *rdmap.Error
		if err := b.Why(); !errors.As(err, &pe) || !errors.Is(err, errModel) || pe.Code != rdmap.CodeLocalCatastrophic {
			t.Errorf("%s: the stream ends because of %v", name, err)
		}
		b.Over(false)
		for i, r := range b.Completed() {
			if (r.Status == LocalProtection && errors.Is(r.Cause, errTable)) != (i == c.want) {
				t.Errorf("%s: request %d: status %d because of %v", name, i, r.Status, r.Cause)
			}
		}
	}
}

// A request that has failed before it was begun is none of those under way: the peer's word
// is about one before it.
func TestATerminateBlamesBeforeWhatIsNotBegun(t *testing.T) {
	b := newBlameBench(t)
	b.fault = errModel
	b.want(Failed, b.later)
	r := rdmap.ReadRequest{SinkSTag: 0x100, SinkTO: 0x1000, Size: 100, SrcSTag: 0x200, SrcTO: 0x2000}
	header, _ := r.AppendBinary(nil)
	b.Received(Arrival{Terminate: &rdmap.Terminate{RDMAHeader: header}})
	b.wantBlamed("not begun", b.reads, RemoteTermination)
}
