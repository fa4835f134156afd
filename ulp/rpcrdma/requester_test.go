package rpcrdma_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"urnic/rnic"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// A pendingCall is one that a test makes.
type pendingCall struct {
	r    *oncrpc.Request
	m    *oncrpc.Message
	err  error
	over chan struct{}
}

// start makes a call in a goroutine.
func start(ctx context.Context, c oncrpc.Conn, change func(r *oncrpc.Request)) *pendingCall {
	r, _ := call(procNull)
	if change != nil {
		change(r)
	}
	p := &pendingCall{r: r, over: make(chan struct{})}
	go func() {
		defer close(p.over)
		p.m, p.err = c.Do(ctx, r)
	}()
	return p
}

// waits fails if the call is over.
func (p *pendingCall) waits(t testing.TB) {
	t.Helper()
	select {
	case <-p.over:
		t.Fatalf("the call is over: %v", p.err)
	default:
	}
}

// reply answers a call with a Short Reply.
func (r *raw) reply(xid, credits uint32) {
	r.t.Helper()
	r.send(replyMessage(header(xid, func(h *rpcrdma.Header) { h.Credits = credits })))
}

// serveCall receives a call, answers it, and wants it to be over.
func (r *raw) serveCall(p *pendingCall, change func(h *rpcrdma.Header)) rpcrdma.Header {
	r.t.Helper()
	h, _, _ := r.recv()
	if h.XID != p.r.XID {
		r.t.Fatalf("got %+v", h)
	}
	r.send(replyMessage(header(h.XID, func(reply *rpcrdma.Header) {
		reply.Write, reply.Reply, reply.HasReply = unused(h.Write...), unused(h.Reply)[0], h.HasReply
		if change != nil {
			change(reply)
		}
	})))
	<-p.over
	if p.err != nil {
		r.t.Fatal(p.err)
	}
	return h
}

// unused returns chunks with lengths of zero.
func unused(chunks ...[]rpcrdma.Segment) (u [][]rpcrdma.Segment) {
	for _, c := range chunks {
		c = slices.Clone(c)
		for i := range c {
			c[i].Length = 0
		}
		u = append(u, c)
	}
	return u
}

// withBulks makes a call one with bulks.
func withBulks(r *oncrpc.Request, data ...[]byte) {
	for _, p := range data {
		r.Call.Bulk(p)
	}
}

// fetch reads segments of the requester.
func (r *raw) fetch(s ...rpcrdma.Segment) (p []byte) {
	r.t.Helper()
	for _, s := range s {
		piece := make([]byte, s.Length)
		if len(piece) > 0 {
			wc := r.do(rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{r.register(piece, rnic.LocalWrite).SGE(0, len(piece))}, Remote: rnic.Remote{STag: s.Handle, TO: s.Offset}})
			if err := wc.Err(); err != nil {
				r.t.Fatal(err)
			}
		}
		p = append(p, piece...)
	}
	return p
}

// place writes to a segment of the requester.
func (r *raw) place(s rpcrdma.Segment, p []byte) {
	r.t.Helper()
	wc := r.do(rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{r.register(p, 0).SGE(0, len(p))}, Remote: rnic.Remote{STag: s.Handle, TO: s.Offset}})
	if err := wc.Err(); err != nil {
		r.t.Fatal(err)
	}
}

// unreduce puts the Read chunks of a call back into its stream, by their positions.
func (r *raw) unreduce(h rpcrdma.Header, stream []byte) []byte {
	r.t.Helper()
	for i := 0; i < len(h.Read); {
		position, data := int(h.Read[i].Position), []byte(nil)
		for ; i < len(h.Read) && int(h.Read[i].Position) == position; i++ {
			data = append(data, r.fetch(h.Read[i].Segment)...)
		}
		for len(data)%4 != 0 {
			data = append(data, 0)
		}
		if position > len(stream) {
			r.t.Fatalf("position %d of %d", position, len(stream))
		}
		stream = slices.Insert(slices.Clone(stream), position, data...)
	}
	return stream
}

func positions(read []rpcrdma.ReadSegment) (p []int) {
	for _, s := range read {
		p = append(p, int(s.Position))
	}
	return p
}

// RFC 8166 §3.4.1, §3.5: what fits into a Send is sent there; else what is eligible is
// taken out, as far as it has to, and what then is too long is a Long Call. §4.3.1.1:
// positions are those in the unreduced stream. §3.4.5.2: no roundup. §8.2.2.3: protected
// calls are never reduced.
func TestRequesterReducesWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		name      string
		cfg       rpcrdma.Config
		bulks     []int
		whole     bool
		proc      rpcrdma.Proc
		positions []int
		lengths   []int
	}{
		{"a call that just fits", rpcrdma.Config{}, []int{4096 - 28 - callLen - 4}, false, rpcrdma.Msg, nil, nil},
		{"one octet more", rpcrdma.Config{}, []int{4096 - 28 - callLen - 4 + 1}, false, rpcrdma.Msg, []int{44}, []int{4025}},
		{"in segments", rpcrdma.Config{MaxSegment: 2000}, []int{5003}, false, rpcrdma.Msg, []int{44, 44, 44}, []int{2000, 2000, 1003}},
		{"only the longest", rpcrdma.Config{}, []int{1000, 5003, 1000}, false, rpcrdma.Msg, []int{44 + 1004}, []int{5003}},
		{"several", rpcrdma.Config{}, []int{3001, 3002, 10}, false, rpcrdma.Msg, []int{44 + 3004 + 4}, []int{3002}},
		{"several of which two are long", rpcrdma.Config{}, []int{5001, 5002, 10}, false, rpcrdma.Msg, []int{44, 44 + 5004 + 4}, []int{5001, 5002}},
		{"with roundup", rpcrdma.Config{Roundup: true}, []int{5001}, false, rpcrdma.Msg, []int{44, 44}, []int{5001, 3}},
		{"a protected call", rpcrdma.Config{}, []int{5003}, true, rpcrdma.NoMsg, []int{0}, []int{callLen + 4 + 5004}},
		{"a protected call in segments", rpcrdma.Config{MaxSegment: 3000}, []int{5003}, true, rpcrdma.NoMsg, []int{0, 0}, []int{3000, callLen + 4 + 5004 - 3000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, conn := rawServe(t, rawPrivate, c.cfg)
			p := start(t.Context(), conn, func(q *oncrpc.Request) {
				for i, n := range c.bulks {
					withBulks(q, filled(n, uint32(i)))
				}
				q.Whole = c.whole
			})
			h, stream, wc := r.recv()
			if h.XID != p.r.XID || h.Proc != c.proc || h.Version != 1 || h.Credits != rpcrdma.DefaultCredits || len(h.Write) > 0 || h.HasReply || wc.ByteLen > 4096 {
				t.Errorf("got %+v", h)
			}
			var lengths []int
			for _, s := range h.Read {
				lengths = append(lengths, int(s.Length))
			}
			if got := positions(h.Read); !slices.Equal(got, c.positions) || !slices.Equal(lengths, c.lengths) {
				t.Errorf("positions %v, lengths %v; want %v, %v", got, lengths, c.positions, c.lengths)
			}
			if whole := p.r.Call.AppendTo(nil); !bytes.Equal(r.unreduce(h, stream), whole) {
				t.Error("what arrives is not what was sent")
			}
			r.reply(h.XID, 8)
			if <-p.over; p.err != nil {
				t.Error(p.err)
			}
		})
	}
	t.Run("a Long Call with a chunk", func(t *testing.T) {
		r, conn := rawServe(t, rawPrivate, rpcrdma.Config{})
		p := start(t.Context(), conn, func(q *oncrpc.Request) {
			q.Call.Opaque(filled(6001, 1))
			withBulks(q, filled(5001, 2), filled(100, 3))
		})
		h, stream, _ := r.recv()
		if h.Proc != rpcrdma.NoMsg || len(stream) > 0 || !slices.Equal(positions(h.Read), []int{0, 44 + 6004 + 4}) {
			t.Errorf("got %+v", h)
		}
		if !bytes.Equal(r.unreduce(h, nil), p.r.Call.AppendTo(nil)) {
			t.Error("what arrives is not what was sent")
		}
		r.reply(h.XID, 8)
		if <-p.over; p.err != nil {
			t.Error(p.err)
		}
	})
}

// RFC 8166 §4.3.3: "A Requester MUST provide a Reply chunk whenever the maximum possible size of
// the RPC Reply message's Transport and Payload streams is larger than the inline threshold
// [...]. Otherwise, the Requester marks the Reply chunk as not present." §4.3.2.3: empty
// Write chunks.
func TestRequesterProvidesForTheReply(t *testing.T) {
	for _, c := range []struct {
		name  string
		cfg   rpcrdma.Config
		most  int
		sinks []int
		whole bool
		write [][]uint32
		reply []uint32
	}{
		{"nothing", rpcrdma.Config{}, 200, nil, false, nil, nil},
		{"a reply that just fits", rpcrdma.Config{}, 4096 - 28, nil, false, nil, nil},
		{"one that may not", rpcrdma.Config{}, 4096 - 28 + 1, nil, false, nil, []uint32{4096 - 28 + 4}},
		{"in segments", rpcrdma.Config{MaxSegment: 3000}, 5000, nil, false, nil, []uint32{3000, 2000}},
		{"a sink whose result may come in the stream", rpcrdma.Config{}, 200, []int{4096 - 28 - 200}, false, nil, nil},
		{"a sink", rpcrdma.Config{}, 200, []int{4096 - 28 - 200 + 1}, false, [][]uint32{{3869}}, nil},
		{"a sink in segments", rpcrdma.Config{MaxSegment: 2000}, 200, []int{5000}, false, [][]uint32{{2000, 2000, 1000}}, nil},
		{"sinks, one of no octets", rpcrdma.Config{}, 200, []int{5000, 0, 10}, false, [][]uint32{{5000}, {}, {10}}, nil},
		{"a sink and a long reply", rpcrdma.Config{}, 5000, []int{5000}, false, [][]uint32{{5000}}, []uint32{5000}},
		{"a sink whose chunk makes the reply too long", rpcrdma.Config{}, 4096 - 28, []int{5000}, false, [][]uint32{{5000}}, []uint32{4096 - 28}},
		{"a sink of a protected call", rpcrdma.Config{}, 200, []int{5001}, true, nil, []uint32{5204}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, conn := rawServe(t, rawPrivate, c.cfg)
			p := start(t.Context(), conn, func(q *oncrpc.Request) {
				q.ReplyMost, q.Whole = c.most, c.whole
				for _, n := range c.sinks {
					q.Sinks = append(q.Sinks, make([]byte, n))
				}
			})
			h := r.serveCall(p, nil)
			if got := lengthsOf(h.Write...); !slices.EqualFunc(got, c.write, slices.Equal) {
				t.Errorf("Write chunks of %v octets; want %v", got, c.write)
			}
			if got := lengthsOf(h.Reply)[0]; h.HasReply != (c.reply != nil) || !slices.Equal(got, c.reply) {
				t.Errorf("a Reply chunk %v of %v octets; want %v", h.HasReply, got, c.reply)
			}
		})
	}
}

// RFC 8166 §3.4.6.1, §4.3.2.1: each Write chunk is a result, in order; §4.3.2.3: that of an
// empty one is in the stream.
func TestRequesterFindsResultsInItsChunks(t *testing.T) {
	r, conn := rawServe(t, rawPrivate, rpcrdma.Config{MaxSegment: 3000})
	sinks := [][]byte{make([]byte, 5000), {}, make([]byte, 7000)}
	p := start(t.Context(), conn, func(q *oncrpc.Request) { q.Sinks, q.ReplyMost = sinks, 5000 })
	h, _, _ := r.recv()
	first, third := filled(3500, 1), filled(6001, 3)
	r.place(h.Write[0][0], first[:3000])
	r.place(h.Write[0][1], first[3000:])
	for i := range 2 {
		r.place(h.Write[2][i], third[3000*i:][:3000])
	}
	r.place(h.Write[2][2], third[6000:])
	var e xdr.Encoder
	if err := (&oncrpc.Reply{XID: h.XID}).Encode(&e); err != nil {
		t.Fatal(err)
	}
	e.Bulk(first)
	e.Bulk([]byte("in the stream"))
	e.Bulk(third)
	stream := e.Reduced(nil, func(i int, _ xdr.Bulk) bool { return i != 1 })
	r.place(h.Reply[0], stream)
	reply := header(h.XID, func(reply *rpcrdma.Header) {
		reply.Proc, reply.HasReply, reply.Write, reply.Reply = rpcrdma.NoMsg, true, unused(h.Write...), unused(h.Reply)[0]
		reply.Write[0][0].Length, reply.Write[0][1].Length = 3000, 500
		reply.Write[2][0].Length, reply.Write[2][1].Length, reply.Write[2][2].Length = 3000, 3000, 1
		reply.Reply[0].Length = uint32(len(stream))
	})
	r.send(octets(reply))
	if <-p.over; p.err != nil {
		t.Fatal(p.err)
	}
	d := p.m.Decoder()
	var got oncrpc.Reply
	if err := got.Decode(d); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]byte{first, []byte("in the stream"), third} {
		p := d.Bulk(10_000)
		if !bytes.Equal(p, want) {
			t.Errorf("result %d has %d octets and is not what it should be: %v", i, len(p), d.Err())
		}
		if i != 1 && (len(p) == 0 || &p[0] != &sinks[i][0]) {
			t.Errorf("result %d does not lie in its sink", i)
		}
	}
	if err := d.End(); err != nil {
		t.Error(err)
	}
	p.m.Release()
	p.m.Release()
}

// RFC 8166 §4.5: "If errors are detected in the RPC-over-RDMA header of an RPC Reply message, a
// Requester MUST silently discard the message"; §4.6.1, §4.6.2: so it does MSGP and DONE.
func TestRequesterDiscardsBrokenReplies(t *testing.T) {
	r, conn := rawServe(t, rawPrivate, rpcrdma.Config{})
	sink := make([]byte, 5000)
	p := start(t.Context(), conn, func(q *oncrpc.Request) { q.Sinks, q.ReplyMost = [][]byte{sink}, 6000 })
	h, _, _ := r.recv()
	reply := func(change func(h *rpcrdma.Header)) []byte {
		return replyMessage(header(h.XID, func(reply *rpcrdma.Header) {
			reply.Write, reply.Reply, reply.HasReply = unused(h.Write...), unused(h.Reply)[0], true
			change(reply)
		}))
	}
	good := reply(func(*rpcrdma.Header) {})
	patch := func(at int, v uint32) []byte {
		p := slices.Clone(good)
		binary.BigEndian.PutUint32(p[at:], v)
		return p
	}
	messages := map[string][]byte{
		"§4.5: shorter than a header":             good[:27],
		"§4.2.2: another version":                 reply(func(h *rpcrdma.Header) { h.Version = 2 }),
		"§4.2.4: another procedure":               patch(12, 7),
		"§4.6.1: RDMA_MSGP":                       reply(func(h *rpcrdma.Header) { h.Proc = rpcrdma.MsgP }),
		"§4.6.2: RDMA_DONE":                       reply(func(h *rpcrdma.Header) { h.Proc = rpcrdma.Done }),
		"§4.2.1: another XID in the stream":       patch(len(good)-headerLen, h.XID+1),
		"§4.2.1: the XID of no call":              patch(0, h.XID+1),
		"§4.5: an error that there is not":        octets(header(h.XID, func(h *rpcrdma.Header) { h.Proc, h.Err = rpcrdma.Error, 3 })),
		"§4.3.1: a Read list":                     reply(func(h *rpcrdma.Header) { h.Read = at(24, rpcrdma.Segment{Handle: 1, Length: 4}) }),
		"§3.4.6: a Write chunk more":              reply(func(h *rpcrdma.Header) { h.Write = append(h.Write, h.Write[0]) }),
		"§3.4.6: a segment more":                  reply(func(h *rpcrdma.Header) { h.Write[0] = append(h.Write[0], h.Write[0][0]) }),
		"§3.4.6: a segment less":                  reply(func(h *rpcrdma.Header) { h.Write[0] = nil }),
		"§3.4.6: another segment":                 reply(func(h *rpcrdma.Header) { h.Write[0][0].Handle++ }),
		"§3.4.6: another offset":                  reply(func(h *rpcrdma.Header) { h.Write[0][0].Offset++ }),
		"§3.4.6: more than the chunk takes":       reply(func(h *rpcrdma.Header) { h.Write[0][0].Length = 5001 }),
		"§4.3.3: another Reply chunk":             reply(func(h *rpcrdma.Header) { h.Reply[0].Handle++ }),
		"§4.3.3: more than the Reply chunk":       reply(func(h *rpcrdma.Header) { h.Proc, h.Reply[0].Length = rpcrdma.NoMsg, 1<<32-1 }),
		"§4.2.4: two streams":                     reply(func(h *rpcrdma.Header) { h.Reply[0].Length = 100 }),
		"§4.2.4: no stream":                       reply(func(h *rpcrdma.Header) { h.Proc = rpcrdma.NoMsg }),
		"§4.2.4: no stream and no Reply chunk":    reply(func(h *rpcrdma.Header) { h.Proc, h.HasReply, h.Reply = rpcrdma.NoMsg, false, nil }),
		"§4.2.4: no stream behind the header":     good[:len(good)-headerLen],
		"RFC 8167 §5.2: a call (no one takes it)": callMessage(header(h.XID, nil), procNull, nil),
	}
	n := conn.Stats()
	for name, m := range messages {
		t.Run(name, func(t *testing.T) {
			r.t = t
			r.send(m)
			r.quiet(conn)
			p.waits(t)
		})
	}
	r.t = t
	r.send(good)
	if <-p.over; p.err != nil {
		t.Fatal(p.err)
	}
	if d := conn.Stats().Discarded - n.Discarded; d != uint64(2*len(messages)) { // and those of quiet
		t.Errorf("%d messages are discarded; want %d", d, 2*len(messages))
	}
}

// RFC 8166 §4.5: "Receipt of this procedure completes the RPC transaction".
func TestRequesterTellsWhyACallIsRefused(t *testing.T) {
	r, conn := rawServe(t, rawPrivate, rpcrdma.Config{})
	for _, want := range []rpcrdma.RefusedError{{Code: rpcrdma.ErrVers, Low: 2, High: 4}, {Code: rpcrdma.ErrChunk}} {
		p := start(t.Context(), conn, nil)
		h, _, _ := r.recv()
		r.send(octets(header(h.XID, func(h *rpcrdma.Header) {
			h.Proc, h.Err, h.Low, h.High = rpcrdma.Error, want.Code, want.Low, want.High
		})))
		<-p.over
		var got *rpcrdma.RefusedError
		if want.XID = h.XID; !errors.As(p.err, &got) || *got != want || got.Error() == "" {
			t.Errorf("got %v; want %v", p.err, want)
		}
	}
}

func TestLongReplyOfAnotherCallIsRefused(t *testing.T) {
	r, conn := rawServe(t, rawPrivate, rpcrdma.Config{})
	p := start(t.Context(), conn, func(q *oncrpc.Request) { q.ReplyMost = 6000 })
	h, _, _ := r.recv()
	r.place(h.Reply[0], replyStream(h.XID+1))
	r.send(octets(header(h.XID, func(reply *rpcrdma.Header) {
		reply.Proc, reply.HasReply, reply.Reply = rpcrdma.NoMsg, true, h.Reply
	})))
	if <-p.over; p.err == nil {
		t.Error("the reply is taken")
	}
	p = start(t.Context(), conn, nil)
	r.serveCall(p, nil)
}

func TestCallsThatCannotBeSentAreRefused(t *testing.T) {
	r, conn := rawServe(t, rawPrivate, rpcrdma.Config{MaxSegment: 16})
	for name, change := range map[string]func(q *oncrpc.Request){
		"a header of too many segments":   func(q *oncrpc.Request) { withBulks(q, make([]byte, 10_000)) },
		"a reply of negative length":      func(q *oncrpc.Request) { q.ReplyMost = -1 },
		"a reply of more than can be had": func(q *oncrpc.Request) { q.ReplyMost = 1<<31 - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			q, _ := call(procNull)
			change(q)
			if _, err := conn.Do(t.Context(), q); !errors.Is(err, rpcrdma.ErrTooLong) {
				t.Errorf("got %v", err)
			}
		})
	}
	p := start(t.Context(), conn, nil)
	h, _, _ := r.recv()
	q, _ := call(procNull)
	q.XID = h.XID
	r.reply(h.XID, 8)
	if <-p.over; p.err != nil {
		t.Fatal(p.err)
	}
	p = start(t.Context(), conn, nil)
	h, _, _ = r.recv()
	q.XID = h.XID
	if _, err := conn.Do(t.Context(), q); !errors.Is(err, rpcrdma.ErrXID) {
		t.Errorf("a second call with the XID of one in flight: %v", err)
	}
	r.reply(h.XID, 8)
	if <-p.over; p.err != nil {
		t.Fatal(p.err)
	}
}
