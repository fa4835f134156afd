package cases

import (
	"errors"

	"urnic/conformance"
	"urnic/conformance/rpc"
	"urnic/conformance/wire"
)

// rpcMemory holds who reaches whose memory (RFC 8166 §8.1). That the target reaches no
// more of the tester's than the chunks of calls in progress is watched in every case.
func rpcMemory() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc8166-8.1-1", Name: "nothing-behind-the-reply",
			Title: "Once the reply is there, the target neither reads nor writes the chunks of its call any more",
			Run: withFile("behind-the-reply", 2000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				room, lent := r.Room(4000), r.Lend(conformance.Pattern(2000))
				readWith(t, r, f, 2000, rpc.Chunks{Writes: []rpc.Chunk{room.Whole()}})
				room.Over = true
				writeFrom(r, f, 2000, lent.Whole(), false)
				lent.Over = true
				r.AwaitSilence("as both calls are over")
			}),
		},
		{
			Clause: "rfc8166-8.1-1", Name: "write-chunk-too-small",
			Title: "A READ of 2000 octets with a Write chunk of 1000 writes nothing beyond it, however it is answered",
			Run: withFile("small-write-chunk", 2000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				room := r.Room(2000)
				c := r.Call(rpc.Read, rpc.ReadArgs(f.Handle, 0, 2000))
				r.Send(r.Header(c, rpc.Chunks{Writes: []rpc.Chunk{room.Cut(1000)}}), c)
				awaitAnyEnd(t, r)
				t.Check(room.Touched(1000) == 0, "that nothing is written behind the chunk", "%d octets", room.Touched(1000))
			}),
		},
		{
			Clause: "rfc8166-8.1-1", Name: "reply-chunk-too-small",
			Title: "A reply of more than 2000 octets with a Reply chunk of 1000 is not written beyond it, however it is answered",
			Run: withFile("small-reply-chunk", 2000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				room := r.Room(4000)
				c := r.Call(rpc.Read, rpc.ReadArgs(f.Handle, 0, 2000))
				r.Send(r.Header(c, rpc.Chunks{Reply: room.Cut(1000)}), c)
				awaitAnyEnd(t, r)
				t.Check(room.Touched(1000) == 0, "that nothing is written behind the chunk", "%d octets", room.Touched(1000))
			}),
		},
		{
			Clause: "rfc8166-8.1-1", Name: "read-of-a-sink",
			Title: "The memory into which the target reads a chunk can't be read by its STag, Terminate",
			Run: withFile("read-of-a-sink", 4, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				sink := sinkOf(t, r, f)
				r.Stream.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 8, sink.SinkSTag, sink.SinkTO))
				awaitRefused(t, r)
			}),
		},
		{
			Clause: "rfc8166-8.1-1", Name: "write-to-a-sink",
			Title: "Once a call is answered, the memory into which the target has read its chunk can't be written, Terminate",
			Run: withFile("write-to-a-sink", 4, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				sink := sinkOf(t, r, f)
				w := wire.Tagged(wire.Write, sink.SinkSTag, sink.SinkTO, conformance.Pattern(8))
				w.Wrong = "the sink of an RDMA Read that is over"
				r.Stream.Post(w)
				awaitRefused(t, r)
			}),
		},
	}
	cases = ofServer(cases, conformance.NeedExport)
	return append(cases, ofServer([]conformance.Case{
		{
			Clause: "rfc8166-8.1-1", Name: "stag-nobody-gave",
			Title: "A server lends no memory: an RDMA Read of any STag is refused, Terminate",
			Run: func(t *conformance.T) {
				r := server(t)
				r.Do(r.Null(), rpc.Chunks{})
				r.Stream.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 8, noSTag, 0))
				awaitRefused(t, r)
			},
		},
	}, 0)...)
}

// sinkOf has the target read a chunk, and returns where it has put the bytes.
func sinkOf(t *conformance.T, r *rpc.Requester, f *rpc.File) wire.ReadHeader {
	writeFrom(r, f, 2000, r.Lend(conformance.Pattern(2000)).Whole(), false)
	if len(r.Sinks) == 0 {
		t.Inconclusive("the target has answered a call without reading its chunk")
	}
	return r.Sinks[len(r.Sinks)-1]
}

// awaitRefused makes sure that what was sent last ends the connection with a Terminate:
// a call behind it is not answered.
func awaitRefused(t *conformance.T, r *rpc.Requester) {
	c := r.Null()
	r.Send(r.Header(c, rpc.Chunks{}), c)
	m, err := r.Next(t.Timeout())
	const expected = "a Terminate"
	switch _, terminated := errors.AsType[*rpc.TerminateError](err); {
	case terminated:
	case err != nil:
		t.Fail(expected, "%v", err)
	default:
		t.Fail(expected, "an answer to the call behind it: %s", m.Header)
	}
}

// awaitAnyEnd waits for an answer, or the end of the connection.
func awaitAnyEnd(t *conformance.T, r *rpc.Requester) {
	_, err := r.Next(t.Timeout())
	if errors.Is(err, wire.ErrSilence) {
		t.Fail("any answer, or the end of the connection", "nothing")
	}
}
