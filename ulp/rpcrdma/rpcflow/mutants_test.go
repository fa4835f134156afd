package rpcflow

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"urnic/ddp"
	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/stag"
	"urnic/ulp/rpcrdma"
)

// A part is a segment of a capture that is played again.
type part struct {
	from dissect.Side
	op   rdmap.Opcode
	seg  ddp.Segment
}

// A tape is what both sides of a connection have sent: start-up frames, and segments.
type tape struct {
	t      testing.TB
	frames []mpa.Frame
	parts  []part
}

// newTape takes the connection out of a capture.
func newTape(t testing.TB, name string) *tape {
	t.Helper()
	tp := &tape{t: t}
	r, err := capture.NewReader(bytes.NewReader(golden(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = dissect.Analyze(t.Context(), r, func(e *dissect.Event) error {
		switch e.Kind {
		case dissect.KindFrame:
			f := *e.Frame
			f.PrivateData = bytes.Clone(f.PrivateData)
			tp.frames = append(tp.frames, f)
		case dissect.KindSegment:
			p := part{e.From, e.Segment.Op, e.Segment.DDP}
			p.seg.Payload = bytes.Clone(p.seg.Payload)
			tp.parts = append(tp.parts, p)
		default:
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// Linux's server must not invalidate, as its R is clear: here it is set.
	for i := range tp.frames {
		d := tp.frames[i].PrivateData
		d[len(d)-rpcrdma.PrivateLen+5] = 1
		tp.frames[i].CRC = false
	}
	return tp
}

// clone returns a tape that can be spoilt by itself.
func (tp *tape) clone(t testing.TB) *tape {
	c := &tape{t: t, frames: slices.Clone(tp.frames), parts: slices.Clone(tp.parts)}
	for i := range c.frames {
		c.frames[i].PrivateData = bytes.Clone(c.frames[i].PrivateData)
	}
	for i := range c.parts {
		if p := &c.parts[i].seg; !p.Control.Tagged() { // data are not spoilt
			p.Payload = bytes.Clone(p.Payload)
		}
	}
	return c
}

// play plays the tape, its untagged messages numbered anew.
func (tp *tape) play() []byte {
	tp.t.Helper()
	p := newPlayer(tp.t, Port)
	for _, f := range tp.frames {
		p.frame(f)
	}
	for _, part := range tp.parts {
		s := part.seg
		if !s.Control.Tagged() {
			u := &s.Untagged
			if u.MO == 0 {
				p.msn[part.from][u.QN]++
			}
			u.MSN = p.msn[part.from][u.QN]
		}
		p.fpdu(part.from, &s)
	}
	return p.recording()
}

// send returns which part is the Send of a side with an XID.
func (tp *tape) send(from dissect.Side, xid uint32) int {
	tp.t.Helper()
	i := slices.IndexFunc(tp.parts, func(p part) bool {
		return p.from == from && !p.seg.Control.Tagged() && p.seg.Untagged.QN == 0 && p.seg.Untagged.MO == 0 &&
			binary.BigEndian.Uint32(p.seg.Payload) == xid
	})
	if i < 0 {
		tp.t.Fatalf("no Send of the %v with XID %08x", from, xid)
	}
	return i
}

// touch returns which part is the first one of an operation to or from an STag.
func (tp *tape) touch(op rdmap.Opcode, tag stag.STag) int {
	tp.t.Helper()
	i := slices.IndexFunc(tp.parts, func(p part) bool {
		if p.op == rdmap.OpReadRequest && op == p.op {
			r, err := rdmap.ParseReadRequest(p.seg.Payload)
			return err == nil && r.SrcSTag == tag
		}
		return p.op == op && p.seg.Control.Tagged() && p.seg.Tagged.STag == tag
	})
	if i < 0 {
		tp.t.Fatalf("no %v for %v", op, tag)
	}
	return i
}

// header edits the header of a Send.
func (tp *tape) header(from dissect.Side, xid uint32, edit func(h *rpcrdma.Header)) {
	tp.t.Helper()
	p := &tp.parts[tp.send(from, xid)]
	var h rpcrdma.Header
	rest, err := h.Decode(p.seg.Payload, rpcrdma.Limits{})
	if err != nil {
		tp.t.Fatal(err)
	}
	edit(&h)
	p.seg.Payload = append(h.Append(nil), rest...)
}

// word sets a word of a Send.
func (tp *tape) word(from dissect.Side, xid uint32, at int, value uint32) {
	tp.t.Helper()
	binary.BigEndian.PutUint32(tp.parts[tp.send(from, xid)].seg.Payload[at:], value)
}

func (tp *tape) remove(i int) { tp.parts = slices.Delete(tp.parts, i, i+1) }
func (tp *tape) copyTo(i, to int) {
	tp.parts = slices.Insert(tp.parts, to, tp.parts[i])
}

// XIDs and STags in nfs41.
const (
	xidNull    = 0x17045448
	xidFirst   = 0x18045448 // EXCHANGE_ID, a Reply chunk of one segment
	xidLong    = 0x2d045448 // OPEN, the same
	xidReadDir = 0x29045448 // a Reply chunk of three segments
	xidPlain   = 0x34045448 // no chunks
	xidWrite   = 0x2f045448 // a Read chunk of 131072 bytes at 180
	xidRead    = 0x37045448 // a Write chunk of 131072 bytes

	tagWrite = stag.STag(0x1f0d0803)
	tagRead  = stag.STag(0xb0019703)
)

// The capture without any fault: Linux's R is set, and siw's pad is zero.
func TestMutantsOriginalIsSound(t *testing.T) {
	f := analyze(t, newTape(t, "nfs41").play(), &Analyzer{})
	f.want(t)
	if len(f.notes) > 0 || f.summary(t).Replies != 64 {
		t.Errorf("%q, %+v", f.notes, f.summary(t))
	}
}

func TestEachFaultIsFound(t *testing.T) {
	sound := newTape(t, "nfs41")
	for name, tc := range map[string]struct {
		spoil func(tp *tape)
		want  []string
		says  string // in a violation or a note
	}{
		"no credits granted": {
			func(tp *tape) { tp.word(server, xidPlain, 8, 0) },
			[]string{"rpc-credits by server"},
			"grants no credits",
		},
		"no credits asked for": {
			func(tp *tape) { tp.word(client, xidPlain, 8, 0) },
			[]string{"rpc-credits by client"},
			"asks for no credits",
		},
		"more calls than credits": {
			func(tp *tape) {
				for i := range tp.parts {
					if p := &tp.parts[i]; p.from == server && p.seg.Untagged.QN == 0 && !p.seg.Control.Tagged() {
						binary.BigEndian.PutUint32(p.seg.Payload[8:], 2)
					}
				}
			},
			[]string{"rpc-credits by client"},
			"makes 3 calls that are open; 2 are granted",
		},
		"more calls than asked for": {
			func(tp *tape) { tp.word(client, xidWrite+2<<24, 8, 2) },
			[]string{"rpc-credits by client"},
			"makes 3 calls that are open; 64 are granted, 2 asked for",
		},
		"two calls before the first reply": {
			func(tp *tape) { tp.remove(tp.send(server, xidNull)) },
			[]string{"rpc-first-credit by client"},
			"1 calls of the client have no reply: XID 17045448 NFSv4 NULL",
		},
		"Write beyond its chunk": {
			func(tp *tape) { tp.parts[tp.touch(rdmap.OpWrite, tagRead)].seg.Tagged.TO += 131072 },
			[]string{"rpc-memory by server", "to by server", "rpc-written-length by server"},
			"where the Write chunk of XID 37045448 is 0xb0019703:",
		},
		"Write to an STag of no chunk": {
			func(tp *tape) {
				for i := range tp.parts {
					if p := &tp.parts[i]; p.op == rdmap.OpWrite && p.seg.Tagged.STag == 0xb0019704 {
						p.seg.Tagged.STag = 0x99
					}
				}
			},
			[]string{"rpc-memory by server", "rpc-written-length by server"},
			"a Write of 1428 bytes at STag 0x00000099 TO 0x38045448099fd000, which no chunk has named",
		},
		"Write behind the reply": {
			func(tp *tape) {
				i := tp.touch(rdmap.OpWrite, tagRead)
				w := tp.parts[i]
				w.seg.Control |= ddp.NewControl(true, true)
				w.seg.Tagged.Control = w.seg.Control
				tp.parts = slices.Insert(tp.parts, tp.send(server, xidRead)+1, w)
			},
			[]string{"rpc-memory-after-reply by server"},
			"which was for XID 37045448: that has been answered",
		},
		"Read of a Write chunk": {
			func(tp *tape) { tp.source(tagWrite, tagRead, 0) },
			nil, "a Read of 131072 bytes at STag 0xb0019703",
		},
		"Read beyond its chunk": {
			func(tp *tape) { tp.source(tagWrite, tagWrite, 4) },
			[]string{"rpc-memory by server"},
			"XID 2f045448 is answered, though only 0 of 131072 bytes of its Read chunks were read",
		},
		"Read behind the reply": {
			func(tp *tape) {
				tp.parts = append(tp.parts, tp.parts[tp.touch(rdmap.OpReadRequest, tagWrite)])
			},
			[]string{"rpc-memory-after-reply by server"},
			"a Read of 131072 bytes at STag 0x1f0d0803",
		},
		"reply with another XID": {
			func(tp *tape) { tp.word(server, xidPlain, 0, 0x99) },
			[]string{"rpc-xid by server", "rpc-xid by server"},
			"1 calls of the client have no reply: XID 34045448 NFSv4 COMPOUND",
		},
		"two replies": {
			func(tp *tape) { i := tp.send(server, xidPlain); tp.copyTo(i, i+1) },
			[]string{"rpc-xid by server"},
			"a reply to XID 34045448, and there is no such call",
		},
		"two XIDs in a reply": {
			func(tp *tape) { tp.word(server, xidPlain, 28, 0x99) },
			[]string{"rpc-xid by server"},
			"the header has XID 34045448, the reply in it 00000099",
		},
		"two XIDs in a call": {
			func(tp *tape) { tp.word(client, xidPlain, 28, 0x99) },
			[]string{"rpc-xid by client"},
			"the header has XID 34045448, the call in it 00000099",
		},
		"XID in use": {
			func(tp *tape) { i := tp.send(client, xidPlain); tp.copyTo(i, i+1) },
			[]string{"rpc-xid by client"},
			"XID 34045448 is in use",
		},
		"Read chunk that is not read": {
			func(tp *tape) {
				tp.remove(tp.touch(rdmap.OpReadRequest, tagWrite))
				tp.parts = slices.DeleteFunc(tp.parts, func(p part) bool { return p.op == rdmap.OpReadResponse && p.seg.Tagged.STag == 0x1b21e801 })
			},
			nil, "XID 2f045448 is answered, though only 0 of 131072 bytes of its Read chunks were read",
		},
		"invalidation of a foreign STag": {
			func(tp *tape) {
				binary.BigEndian.PutUint32(tp.parts[tp.send(server, xidRead)].seg.Untagged.RsvdULP[1:], 0x99)
			},
			[]string{"rpc-invalidate by server"},
			"invalidates STag 0x00000099, which is none of its chunks'",
		},
		"invalidation by a call": {
			func(tp *tape) {
				tp.parts[tp.send(client, xidRead)].seg.Untagged.RsvdULP[0] = byte(rdmap.NewControl(rdmap.OpSendInvalidate))
			},
			[]string{"rpc-invalidate by client"},
			"only replies may be sent so",
		},
		"invalidation without the client's R": {
			func(tp *tape) {
				d := tp.frames[0].PrivateData
				d[len(d)-3] = 0
			},
			[]string{"rpc-invalidate by server"},
			"the client has not set R",
		},
		"a header's mark that is neither 0 nor 1": {
			func(tp *tape) { tp.word(client, xidPlain, 16, 7) },
			[]string{"rpc-header by client"},
			"RFC 8166 §4.5.2 by the client: the header of XID 34045448 can't be used",
		},
		"a procedure that does not exist": {
			func(tp *tape) { tp.word(server, xidPlain, 12, 9) },
			[]string{"rpc-header by server"},
			"there is no such procedure",
		},
		"another version": {
			func(tp *tape) { tp.word(client, xidPlain, 4, 2) },
			[]string{"rpc-header by client"},
			"RFC 8166 §4.5.1",
		},
		"a position that is no multiple of four": {
			func(tp *tape) {
				tp.header(client, xidWrite, func(h *rpcrdma.Header) { h.Read[0].Position = 181 })
			},
			nil, "the position of a Read chunk is no multiple of four",
		},
		"a message that is too short": {
			func(tp *tape) {
				p := &tp.parts[tp.send(server, xidPlain)]
				p.seg.Payload = p.seg.Payload[:12]
			},
			[]string{"rpc-header by server"},
			"a message of 12 bytes: it ends too early",
		},
		"more written than the reply says": {
			func(tp *tape) {
				tp.header(server, xidRead, func(h *rpcrdma.Header) { h.Write[0][0].Length -= 4 })
			},
			[]string{"rpc-written-length by server", "rpc-write-length by server"},
			"131072 bytes were written to segment 1 of Write chunk 1, of which the reply to XID 37045448 says 131068",
		},
		"less written than the reply says": {
			func(tp *tape) {
				tp.header(client, xidLong, func(h *rpcrdma.Header) { h.Reply[0].Length = 8000 })
				tp.header(server, xidLong, func(h *rpcrdma.Header) { h.Reply[0].Length = 356 })
			},
			[]string{"rpc-written-length by server"},
			"says that segment 1 of the Reply chunk has 356 bytes; 352 were written",
		},
		"a gap in a chunk": {
			func(tp *tape) {
				tp.header(client, xidReadDir, func(h *rpcrdma.Header) { h.Reply[0].Length += 4 })
			},
			[]string{"rpc-written-length by server"},
			"segment 2 of the Reply chunk in the reply to XID 29045448 is used, though the one before is not full",
		},
		"another segment in the reply's Write list": {
			func(tp *tape) {
				tp.header(server, xidRead, func(h *rpcrdma.Header) { h.Write[0][0].Offset++ })
			},
			[]string{"rpc-write-list by server"},
			"segment 1 of Write chunk 1 in the reply to XID 37045448 is 0xb0019703:",
		},
		"another number of segments": {
			func(tp *tape) {
				tp.header(server, xidReadDir, func(h *rpcrdma.Header) { h.Reply = h.Reply[:2] })
			},
			[]string{"rpc-reply-chunk by server"},
			"has 2 segments, the call's has 3",
		},
		"no Write list in the reply": {
			func(tp *tape) { tp.header(server, xidRead, func(h *rpcrdma.Header) { h.Write = nil }) },
			[]string{"rpc-write-list by server"},
			"has 0 Write chunks, the call has 1",
		},
		"a Reply chunk that nobody has offered": {
			func(tp *tape) { tp.header(server, xidPlain, func(h *rpcrdma.Header) { h.HasReply = true }) },
			[]string{"rpc-reply-chunk by server"},
			"not one in whether there is a Reply chunk",
		},
		"a Read list in a reply": {
			func(tp *tape) {
				tp.header(server, xidPlain, func(h *rpcrdma.Header) { h.Read = []rpcrdma.ReadSegment{{Position: 4}} })
			},
			[]string{"rpc-read-list by server"},
			"the reply to XID 34045448 has a Read list",
		},
		"something behind an RDMA_NOMSG": {
			func(tp *tape) {
				p := &tp.parts[tp.send(server, xidLong)]
				p.seg.Payload = append(p.seg.Payload, 0, 0, 0, 0)
			},
			[]string{"rpc-nomsg by server"},
			"4 bytes follow the header of an RDMA_NOMSG",
		},
		"a position behind the stream": {
			func(tp *tape) {
				tp.header(client, xidWrite, func(h *rpcrdma.Header) { h.Read[0].Position = 1 << 20 })
			},
			[]string{"rpc-read-position by client"},
			"XID 2f045448 has a Read chunk at 1048576",
		},
		"an item longer than its Read chunk": {
			func(tp *tape) { tp.word(client, xidWrite, 28+24+180-4, 131080) },
			[]string{"rpc-read-length by client"},
			"a Read chunk of 131072 bytes at 180 for an item of 131080",
		},
		"an item longer than its Write chunk": {
			func(tp *tape) {
				p := &tp.parts[tp.send(server, xidRead)]
				binary.BigEndian.PutUint32(p.seg.Payload[len(p.seg.Payload)-4:], 131076)
			},
			[]string{"rpc-write-length by server"},
			"an item of 131076 bytes, of which 131072 are in Write chunk 1",
		},
		"a Read chunk at 0 beside a stream": {
			func(tp *tape) {
				tp.header(client, xidWrite, func(h *rpcrdma.Header) { h.Read[0].Position = 0 })
			},
			[]string{"rpc-long-call by client"},
			"a Read chunk at 0 and a stream behind the header",
		},
		"an RDMA_NOMSG without a Read chunk at 0": {
			func(tp *tape) {
				tp.header(client, xidWrite, func(h *rpcrdma.Header) { h.Proc = rpcrdma.NoMsg })
			},
			[]string{"rpc-nomsg by client", "rpc-long-call by client", "rpc-read-position by client", "rpc-message by client"},
			"",
		},
		"a segment beyond the end of all memory": {
			func(tp *tape) {
				tp.header(client, xidPlain, func(h *rpcrdma.Header) {
					h.HasReply, h.Reply = true, []rpcrdma.Segment{{Handle: 5, Length: 2, Offset: 1<<64 - 1}}
				})
			},
			[]string{"rpc-memory by client", "rpc-reply-chunk by server"},
			"goes beyond 2^64",
		},
		"a call of another version of RPC": {
			func(tp *tape) { tp.word(client, xidPlain, 36, 3) },
			[]string{"rpc-message by client"},
			"the call with XID 34045448 can't be decoded",
		},
		"a reply with a status that does not exist": {
			func(tp *tape) { tp.word(server, xidPlain, 36, 3) },
			[]string{"rpc-message by server"},
			"the reply with XID 34045448 can't be decoded",
		},
		"an RDMA_ERROR of another version": {
			func(tp *tape) {
				p := &tp.parts[tp.send(server, xidPlain)]
				p.seg.Payload = (&rpcrdma.Header{XID: xidPlain, Version: 2, Credits: 64, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}).Append(nil)
			},
			[]string{"rpc-error-version by server"},
			"has version 2, the call has 1",
		},
		"a Send above the inline threshold": {
			func(tp *tape) {
				for i := range tp.frames {
					d := tp.frames[i].PrivateData
					d[len(d)-1] = 0 // 1024 bytes can be received
				}
				p := &tp.parts[tp.send(server, xidPlain)]
				p.seg.Payload = append(p.seg.Payload, make([]byte, 1024)...)
			},
			[]string{"rpc-inline-threshold by server"},
			"the inline threshold is 1024",
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			tp := sound.clone(t)
			tc.spoil(tp)
			f := analyze(t, tp.play(), &Analyzer{})
			if tc.want != nil {
				f.want(t, tc.want...)
			}
			if all := strings.Join(append(f.details, f.notes...), "\n"); !strings.Contains(all, tc.says) {
				t.Errorf("nothing says %q:\n%s", tc.says, all)
			}
		})
	}
}

// source sends a Read Request elsewhere.
func (tp *tape) source(was, tag stag.STag, further uint64) {
	p := &tp.parts[tp.touch(rdmap.OpReadRequest, was)]
	r, err := rdmap.ParseReadRequest(p.seg.Payload)
	if err != nil {
		tp.t.Fatal(err)
	}
	r.SrcSTag = tag
	r.SrcTO += further
	if p.seg.Payload, err = r.AppendBinary(nil); err != nil {
		tp.t.Fatal(err)
	}
}
