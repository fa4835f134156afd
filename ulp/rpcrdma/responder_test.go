package rpcrdma_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"urnic/rnic"
	"urnic/stag"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// wantError receives an RDMA_ERROR.
func (r *raw) wantError(xid, version uint32, code rpcrdma.ErrCode) {
	r.t.Helper()
	h, rest, _ := r.recv()
	if h.XID != xid || h.Version != version || h.Proc != rpcrdma.Error || h.Err != code || len(rest) > 0 || h.Credits == 0 {
		r.t.Fatalf("got %+v, %x; want %v for %d", h, rest, code, xid)
	}
	if code == rpcrdma.ErrVers && (h.Low != 1 || h.High != 1) {
		r.t.Errorf("the responder has versions %d to %d", h.Low, h.High)
	}
}

// RFC 8166 §4.5: "it MUST silently discard the message before performing any parsing".
func TestResponderDiscardsWhatIsShorterThanAHeader(t *testing.T) {
	_, address := serve(t, newService(t), rpcrdma.Config{})
	r := rawDial(t, address, rawPrivate)
	message := callMessage(header(1, nil), procNull, nil)
	for n := range 28 {
		r.send(message[:n])
	}
	r.null() // what comes first is its reply
}

// RFC 8166 §4.5.1, and §4.5: "The rdma_vers field MUST contain the same version that was in
// the rdma_vers field in the failing request".
func TestResponderAnswersOtherVersionsWithItsOwn(t *testing.T) {
	_, address := serve(t, newService(t), rpcrdma.Config{})
	r := rawDial(t, address, rawPrivate)
	for _, version := range []uint32{0, 2, 1 << 31} {
		r.send(callMessage(header(7, func(h *rpcrdma.Header) { h.Version = version }), procNull, nil))
		r.wantError(7, version, rpcrdma.ErrVers)
	}
	r.null()
}

// RFC 8166 §4.2.4: "A Responder MUST silently discard RDMA_ERROR procedures"; §4.6.2:
// "Receivers MUST silently discard RDMA_DONE messages".
func TestResponderDiscardsErrorsAndDone(t *testing.T) {
	_, address := serve(t, newService(t), rpcrdma.Config{})
	r := rawDial(t, address, rawPrivate)
	for _, h := range []rpcrdma.Header{
		header(1, func(h *rpcrdma.Header) { h.Proc, h.Err = rpcrdma.Error, rpcrdma.ErrChunk }),
		header(2, func(h *rpcrdma.Header) { h.Proc, h.Err, h.Low, h.High = rpcrdma.Error, rpcrdma.ErrVers, 1, 1 }),
		header(3, func(h *rpcrdma.Header) { h.Proc, h.Err = rpcrdma.Error, 9 }),
		header(4, func(h *rpcrdma.Header) { h.Proc = rpcrdma.Done }),
	} {
		for range 10 { // more than there are credits, together
			for range rpcrdma.DefaultCredits / 4 {
				r.send(append(h.Append(nil), make([]byte, 16)...))
			}
			r.null()
		}
	}
}

// RFC 8166 §4.5.2, and the clauses that say what chunk lists are like.
func TestResponderRefusesBrokenHeaders(t *testing.T) {
	s := newService(t)
	_, address := serve(t, s, rpcrdma.Config{MaxMessage: 1 << 20})
	r := rawDial(t, address, rawPrivate)
	nowhere := func(n uint32) rpcrdma.Segment { return rpcrdma.Segment{Handle: 0xdead00, Length: n} }
	many := func(n int) (s []rpcrdma.Segment) { return slices.Repeat([]rpcrdma.Segment{nowhere(4)}, n) }
	words := func(ws ...uint32) (p []byte) {
		for _, w := range ws {
			p = binary.BigEndian.AppendUint32(p, w)
		}
		return p
	}
	for _, c := range []struct {
		name   string
		change func(h *rpcrdma.Header)
		octets []byte // instead, behind the XID
	}{
		{"§4.5.2: a procedure that there is not", nil, words(1, 8, 5, 0, 0, 0)},
		{"§4.5.2: RDMA_NOMSG without chunks", func(h *rpcrdma.Header) { h.Proc = rpcrdma.NoMsg }, nil},
		{"§4.6.1: RDMA_MSGP", func(h *rpcrdma.Header) { h.Proc = rpcrdma.MsgP }, nil},
		{"§4.2.1: another XID in the stream", nil, words(1, 8, 0, 0, 0, 0, 0x1234, 0, 2, 0x20000000, 1, 0, 0, 0, 0, 0)},
		{"§4.2.4: no stream", nil, words(1, 8, 0, 0, 0, 0)},
		{"§4.3: a mark that is neither 0 nor 1", nil, words(1, 8, 0, 2, 0, 0)},
		{"§4.3.1: a Read list without end", nil, words(1, 8, 0, 1, 40, 7, 8, 0, 0, 1, 40, 7, 8, 0)},
		{"§4.3.2: a Write list without end", nil, words(1, 8, 0, 0, 1, 1, 7, 8, 0, 0, 1)},
		{"§4.3.2: a Write chunk of 2^32-1 segments", nil, words(1, 8, 0, 0, 1, 1<<32-1, 7, 8, 0, 0)},
		{"§4.3.3: a Reply chunk that ends too early", nil, words(1, 8, 0, 0, 0, 1, 2, 7, 8, 0, 0)},
		{"§3.4.5: a position that is no multiple of four", func(h *rpcrdma.Header) { h.Read = at(42, nowhere(8)) }, nil},
		{"§3.4.5: a position beyond the end", func(h *rpcrdma.Header) { h.Read = at(callLen+8, nowhere(8)) }, nil},
		{"§3.4.5: a position beyond 1 GiB", func(h *rpcrdma.Header) { h.Read = at(1<<30, nowhere(8)) }, nil},
		{"§3.4.5: positions that descend", func(h *rpcrdma.Header) { h.Read = append(at(callLen, nowhere(8)), at(callLen-8, nowhere(4))...) }, nil},
		{"§3.4.5: chunks that overlap", func(h *rpcrdma.Header) { h.Read = append(at(callLen-8, nowhere(8)), at(callLen-4, nowhere(4))...) }, nil},
		{"§3.4.5: chunks that overlap by what fills them up", func(h *rpcrdma.Header) { h.Read = append(at(callLen-8, nowhere(5)), at(callLen-4, nowhere(4))...) }, nil},
		{"§3.5.3: a call in the message and at position zero", func(h *rpcrdma.Header) { h.Read = at(0, nowhere(80)) }, nil},
		{"§3.5.3: RDMA_NOMSG without position zero", func(h *rpcrdma.Header) { h.Proc, h.Read = rpcrdma.NoMsg, at(4, nowhere(80)) }, nil},
		{"§4.2.4: RDMA_NOMSG with a Reply chunk only", func(h *rpcrdma.Header) { h.Proc, h.HasReply, h.Reply = rpcrdma.NoMsg, true, many(1) }, nil},
		{"§3.5.3: position zero behind another one", func(h *rpcrdma.Header) {
			h.Proc, h.Read = rpcrdma.NoMsg, append(at(40, nowhere(8)), at(0, nowhere(80))...)
		}, nil},
		{"§8.1.4: a chunk of 4 GiB", func(h *rpcrdma.Header) { h.Read = at(callLen, nowhere(1<<32-1)) }, nil},
		{"§8.1.4: chunks that are too long together", func(h *rpcrdma.Header) { h.Read = at(callLen, nowhere(1<<19), nowhere(1<<19+4)) }, nil},
		{"§3.4.4: too many Read segments", func(h *rpcrdma.Header) { h.Read = at(callLen, many(257)...) }, nil},
		{"§4.3.2: too many Write chunks", func(h *rpcrdma.Header) { h.Write = slices.Repeat([][]rpcrdma.Segment{many(1)}, 17) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.t = t
			xid := xids.Add(1)
			message := append(binary.BigEndian.AppendUint32(nil, xid), c.octets...)
			if c.octets == nil {
				message = callMessage(header(xid, c.change), procNull, nil)
			}
			if len(message) > 4096 {
				big := rpcrdma.Config{MaxMessage: 1 << 20, Receive: 16384}
				_, address := serve(t, s, big)
				p := rawDial(t, address, rawPrivate)
				p.send(message)
				p.wantError(xid, 1, rpcrdma.ErrChunk)
				return
			}
			r.send(message)
			r.wantError(xid, 1, rpcrdma.ErrChunk)
			r.null()
		})
	}
	r.t = t
	if n := s.calls.Load(); n != 23 { // the null calls
		t.Errorf("the service has got %d calls", n)
	}
}

// bulksCall is a call whose results are its arguments, of which moved says what is not in
// the stream.
func bulksCall(h rpcrdma.Header, moved func(i int) bool, data ...[]byte) []byte {
	return append(h.Append(nil), bulksStream(h.XID, moved, data...)...)
}

func bulksStream(xid uint32, moved func(i int) bool, data ...[]byte) []byte {
	var e xdr.Encoder
	_ = (&oncrpc.Call{XID: xid, Program: 0x20000000, Version: 1, Procedure: procBulks}).Encode(&e) // without a credential nothing can be too long
	e.Uint32(uint32(len(data)))
	for _, p := range data {
		e.Bulk(p)
	}
	return e.Reduced(nil, func(i int, _ xdr.Bulk) bool { return moved != nil && moved(i) })
}

// bulkPosition returns where bulk i of a call stands.
func bulkPosition(i int, data ...[]byte) int {
	n := callLen + 4
	for _, p := range data[:i] {
		n += 4 + (len(p)+3)&^3
	}
	return n + 4
}

// wantBulks receives a reply whose results are in its stream.
func (r *raw) wantBulks(xid uint32, want ...[]byte) {
	r.t.Helper()
	h, stream, _ := r.recv()
	if h.XID != xid || h.Proc != rpcrdma.Msg {
		r.t.Fatalf("got %+v", h)
	}
	if got := bulksIn(r.t, stream); !slices.EqualFunc(got, want, bytes.Equal) {
		r.t.Errorf("got %.100q; want %.100q", got, want)
	}
}

func bulksIn(t testing.TB, stream []byte, moved ...xdr.Moved) (bulks [][]byte) {
	t.Helper()
	d := xdr.NewDecoder(stream, moved...)
	var reply oncrpc.Reply
	if err := errors.Join(reply.Decode(d), reply.Err); err != nil {
		t.Fatal(err)
	}
	for range d.Uint32() {
		bulks = append(bulks, d.Bulk(1<<20))
	}
	if err := d.End(); err != nil {
		t.Fatal(err)
	}
	return bulks
}

// RFC 8166 §3.4.5: the responder "reconstructs the transferred chunk data by concatenating
// the contents of each RDMA segment, in list order"; §3.4.5.2: with or without what fills
// the data up.
func TestResponderPullsReadChunks(t *testing.T) {
	s := newService(t)
	_, address := serve(t, s, rpcrdma.Config{})
	r := rawDial(t, address, rawPrivate)
	one, two, three := filled(101, 1), filled(50, 2), filled(7, 3)
	fill := func(p []byte) []byte { return append(slices.Clone(p), 0xee, 0xee, 0xee)[:(len(p)+3)&^3] }
	all := func(int) bool { return true }
	for name, c := range map[string]struct {
		read  []rpcrdma.ReadSegment
		moved func(i int) bool
	}{
		"one chunk":      {at(bulkPosition(0, one, two, three), r.readable(one)...), func(i int) bool { return i == 0 }},
		"the last chunk": {at(bulkPosition(2, one, two, three), r.readable(three)...), func(i int) bool { return i == 2 }},
		"all chunks, in segments, some empty, some filled up": {slices.Concat(
			at(bulkPosition(0, one, two, three), r.readable(one, 33, 0, 1, 67)...),
			at(bulkPosition(1, one, two, three), r.readable(fill(two), 50, 2)...),
			at(bulkPosition(2, one, two, three), r.readable(fill(three))...),
		), all},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			xid := xids.Add(1)
			r.send(bulksCall(header(xid, func(h *rpcrdma.Header) { h.Read = c.read }), c.moved, one, two, three))
			r.wantBulks(xid, one, two, three)
		})
	}
}

// RFC 8166 §3.5.3: "every RDMA read segment in this chunk MUST contain zero in its Position
// field". RFC 8267 §6.4.2: other Read chunks may stand beside it.
func TestResponderPullsLongCalls(t *testing.T) {
	_, address := serve(t, newService(t), rpcrdma.Config{})
	r := rawDial(t, address, rawPrivate)
	one, two := filled(1001, 1), filled(501, 2)
	t.Run("alone", func(t *testing.T) {
		r.t = t
		stream := bulksStream(5, nil, one, two)
		r.send(octets(header(5, func(h *rpcrdma.Header) {
			h.Proc, h.Read = rpcrdma.NoMsg, at(0, r.readable(stream, 99, 100, len(stream)-199)...)
		})))
		r.wantBulks(5, one, two)
	})
	t.Run("with a chunk", func(t *testing.T) {
		r.t = t
		stream := bulksStream(6, func(i int) bool { return i == 1 }, one, two)
		r.send(octets(header(6, func(h *rpcrdma.Header) {
			h.Proc, h.Read = rpcrdma.NoMsg, append(at(0, r.readable(stream)...), at(bulkPosition(1, one, two), r.readable(two)...)...)
		})))
		r.wantBulks(6, one, two)
	})
	t.Run("of another XID", func(t *testing.T) {
		r.t = t
		r.send(octets(header(8, func(h *rpcrdma.Header) {
			h.Proc, h.Read = rpcrdma.NoMsg, at(0, r.readable(bulksStream(7, nil))...)
		})))
		r.wantError(8, 1, rpcrdma.ErrChunk)
	})
	t.Run("that is empty", func(t *testing.T) {
		r.t = t
		r.send(octets(header(9, func(h *rpcrdma.Header) { h.Proc, h.Read = rpcrdma.NoMsg, at(0, rpcrdma.Segment{}) })))
		r.wantError(9, 1, rpcrdma.ErrChunk)
	})
	r.t = t
	r.null()
}

// RFC 8166 §4.5.2: the responder "SHOULD return an RPC Reply message with status GARBAGE_ARGS"
// for "mismatches between chunk sizes or offsets and the contents of the Payload stream".
func TestChunksThatTheArgumentsContradictAreGarbage(t *testing.T) {
	_, address := serve(t, newService(t), rpcrdma.Config{})
	r := rawDial(t, address, rawPrivate)
	data := filled(100, 1)
	for name, read := range map[string][]rpcrdma.ReadSegment{
		"too short":        at(bulkPosition(0, data), r.readable(data[:96])...),
		"too long":         at(bulkPosition(0, data), r.readable(filled(108, 1))...),
		"at another place": at(bulkPosition(0, data)-4, r.readable(data)...),
		"none":             nil,
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			xid := xids.Add(1)
			r.send(bulksCall(header(xid, func(h *rpcrdma.Header) { h.Read = read }), func(int) bool { return true }, data))
			h, stream, _ := r.recv()
			var reply oncrpc.Reply
			var accepted *oncrpc.AcceptedError
			if err := reply.Decode(xdr.NewDecoder(stream)); err != nil || h.XID != xid || !errors.As(reply.Err, &accepted) || accepted.Stat != oncrpc.GarbageArguments {
				t.Errorf("%+v: %v, %v", h, reply.Err, err)
			}
		})
	}
	r.null()
}

// RFC 8797 §4.1: "When both connection peers have set this bit flag [...] the responder MAY use
// RDMA Send with Invalidate [...] an STag associated only with the Transaction ID"; else it
// "MUST use only RDMA Send".
func TestResponderInvalidatesOnlyWhatItMay(t *testing.T) {
	for _, c := range []struct {
		name         string
		server, peer bool
	}{{"both", true, true}, {"the server", true, false}, {"the requester", false, true}, {"neither", false, false}} {
		t.Run(c.name, func(t *testing.T) {
			_, address := serve(t, newService(t), rpcrdma.Config{NoInvalidate: !c.server})
			r := rawDial(t, address, rpcrdma.Private{Invalidate: c.peer, Send: 4096, Receive: 4096}.Append(nil))
			p, ok := rpcrdma.FindPrivate(r.private)
			if !ok || p.Invalidate != c.server || p.Send != 4096 || p.Receive != 4096 {
				t.Errorf("the server says %+v", p)
			}
			for _, chunks := range []string{"", "read", "write", "reply", "read write reply"} {
				xid := xids.Add(1)
				tags := []stag.STag{}
				has := func(what string) bool { return bytes.Contains([]byte(chunks), []byte(what)) }
				data := filled(100, 1)
				h := header(xid, func(h *rpcrdma.Header) {
					if has("read") {
						h.Read = at(bulkPosition(0, data), r.readable(data)...)
						tags = append(tags, h.Read[0].Handle)
					}
					if has("write") {
						h.Write = [][]rpcrdma.Segment{r.writable(make([]byte, 100))}
						tags = append(tags, h.Write[0][0].Handle)
					}
					if has("reply") {
						h.HasReply, h.Reply = true, r.writable(make([]byte, 100))
						tags = append(tags, h.Reply[0].Handle)
					}
				})
				r.send(bulksCall(h, func(int) bool { return has("read") }, data))
				_, _, wc := r.recv()
				if want := c.server && c.peer && len(tags) > 0; want != (wc.Invalidated != 0) || want && !slices.Contains(tags, wc.Invalidated) {
					t.Errorf("chunks %q: %v is invalidated, of %v", chunks, wc.Invalidated, tags)
				}
			}
		})
	}
}

// RFC 8166 §4.5.3: a Remote Access Error is fatal to the connection; "once the Requester has
// re-established a connection, the Responder should send an RDMA_ERROR reply with an
// rdma_err value of ERR_CHUNK".
func TestCallThatHasEndedTheConnectionIsRefusedOnTheNext(t *testing.T) {
	srv, address := serve(t, newService(t), rpcrdma.Config{})
	for name, c := range map[string]func(r *raw, xid uint32) []byte{
		"a Read chunk that is not there": func(_ *raw, xid uint32) []byte {
			return bulksCall(header(xid, func(h *rpcrdma.Header) {
				h.Read = at(bulkPosition(0, nil), rpcrdma.Segment{Handle: 0xbad00, Length: 100})
			}), func(int) bool { return true }, make([]byte, 100))
		},
		"a Read chunk beyond its region": func(r *raw, xid uint32) []byte {
			p := make([]byte, 100)
			return bulksCall(header(xid, func(h *rpcrdma.Header) {
				h.Read = at(bulkPosition(0, nil), r.readable(p, 101)...)
			}), func(int) bool { return true }, make([]byte, 101))
		},
		"a Write chunk that can't be written": func(r *raw, xid uint32) []byte {
			return callMessage(header(xid, func(h *rpcrdma.Header) {
				h.Write = [][]rpcrdma.Segment{r.readable(make([]byte, 100))}
			}), procRead, func(e *xdr.Encoder) { e.Uint32(1); e.Uint32(100) })
		},
		"a Reply chunk beyond its region": func(r *raw, xid uint32) []byte {
			return callMessage(header(xid, func(h *rpcrdma.Header) {
				h.HasReply, h.Reply = true, r.writable(make([]byte, 5000), 6000)
			}), procRead, func(e *xdr.Encoder) { e.Uint32(1); e.Uint32(5900) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			xid := xids.Add(1)
			r := rawDial(t, address, rawPrivate)
			r.null()
			r.send(c(r, xid))
			if err := r.ended(); err == nil {
				t.Fatal("the connection has ended without an error")
			}
			waitFor(t, func() bool { return len(srv.Peers()) == 0 })
			again := rawDial(t, address, rawPrivate)
			again.null()
			again.send(c(again, xid))
			again.wantError(xid, 1, rpcrdma.ErrChunk)
			again.null()
		})
	}
}

// RFC 8166 §3.3.3: "In the absence of such a mechanism, senders and receives MUST assume the
// inline thresholds are 1024 bytes." RFC 8797 §4.2, §5.1.
func TestResponderKeepsToTheInlineThreshold(t *testing.T) {
	_, address := serve(t, newService(t), rpcrdma.Config{Send: 2048})
	for name, c := range map[string]struct {
		private []byte
		most    int
	}{
		"without private data":          {nil, 1024},
		"with that of others":           {[]byte("something else"), 1024},
		"with less than this side has":  {rpcrdma.Private{Receive: 1024}.Append(nil), 1024},
		"with as much as this side has": {append([]byte("x"), rpcrdma.Private{Receive: 2048}.Append(nil)...), 2048},
		"with more than this side has":  {rpcrdma.Private{Receive: 65536}.Append(nil), 2048},
	} {
		t.Run(name, func(t *testing.T) {
			r := rawDial(t, address, c.private)
			for _, n := range []int{c.most, c.most + 4} {
				xid := xids.Add(1)
				memory := make([]byte, 4096)
				r.send(callMessage(header(xid, func(h *rpcrdma.Header) { h.HasReply, h.Reply = true, r.writable(memory) }), procRead, func(e *xdr.Encoder) {
					e.Uint32(1)
					e.Uint32(uint32(n - (28 + 4 + 16) - headerLen - 8))
				}))
				h, _, wc := r.recv()
				if want := map[bool]rpcrdma.Proc{true: rpcrdma.Msg, false: rpcrdma.NoMsg}[n <= c.most]; h.Proc != want || int(wc.ByteLen) > c.most {
					t.Errorf("a reply of %d octets: %v of %d; want %v", n, h.Proc, wc.ByteLen, want)
				}
			}
		})
	}
}

func TestResponderWithoutReadsRefusesReadChunks(t *testing.T) {
	_, address := serve(t, newService(t), rpcrdma.Config{Conn: rnic.ConnParam{ORD: -1}})
	r := rawDial(t, address, rawPrivate)
	data := filled(100, 1)
	r.send(bulksCall(header(3, func(h *rpcrdma.Header) { h.Read = at(bulkPosition(0, data), r.readable(data)...) }), func(int) bool { return true }, data))
	r.wantError(3, 1, rpcrdma.ErrChunk)
	r.null()
}

// A serviceFunc is a function that is a service.
type serviceFunc func(ctx context.Context, x *oncrpc.Exchange, reply *xdr.Encoder) error

func (f serviceFunc) Serve(ctx context.Context, x *oncrpc.Exchange, reply *xdr.Encoder) error {
	return f(ctx, x, reply)
}

func TestServiceMayGiveNoReplyAndEndTheConnection(t *testing.T) {
	s := newService(t)
	_, address := serve(t, serviceFunc(func(ctx context.Context, x *oncrpc.Exchange, reply *xdr.Encoder) error {
		switch binary.BigEndian.Uint32(x.Call.Stream) {
		case 2:
			return oncrpc.ErrNoReply
		case 3:
			return errors.New("the service has had enough")
		}
		return s.Serve(ctx, x, reply)
	}), rpcrdma.Config{})
	r := rawDial(t, address, rawPrivate)
	for range 2 * rpcrdma.DefaultCredits {
		r.send(callMessage(header(2, nil), procNull, nil))
		r.send(callMessage(header(1, nil), procNull, nil))
		if h, _, _ := r.recv(); h.XID != 1 {
			t.Fatalf("got %+v", h)
		}
	}
	r.send(callMessage(header(3, nil), procNull, nil))
	_ = r.ended()
}
