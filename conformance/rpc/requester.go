package rpc

import (
	"fmt"
	"math/rand/v2"
	"time"

	"urnic/conformance"
)

// A Requester is the tester's end towards a target that is a server.
type Requester struct {
	*End
	// Credits are what the target has granted last.
	Credits uint32
	xid     uint32
}

// credits are how many the tester asks for.
const credits = 32

// Connect opens a connection to a target that is a server. private is all of the ULP's
// private data.
func Connect(t *conformance.T, private []byte) *Requester {
	// Servers that remember their replies know calls by their XIDs, over connections.
	return &Requester{End: newEnd(t, private), Credits: 1, xid: rand.Uint32()}
}

// Chunks are what goes into the header of a call.
type Chunks struct {
	Long   bool // a Long Call: RDMA_NOMSG
	Reads  []ReadSegment
	Writes []Chunk
	Reply  Chunk
}

// Call returns a call of NFS version 3 with an XID of its own.
func (r *Requester) Call(procedure uint32, args []byte) Call {
	r.xid++
	return Call{XID: r.xid, Program: NFS, Version: NFS3, Procedure: procedure, Cred: Root(), Args: args}
}

// Null returns a call of the procedure that does nothing.
func (r *Requester) Null() Call {
	c := r.Call(Null, nil)
	c.Cred = nil
	return c
}

// Header returns the header of a call.
func (r *Requester) Header(c Call, with Chunks) Header {
	h := Header{XID: c.XID, Version: Version, Credits: credits, Proc: Msg, Reads: with.Reads, Writes: with.Writes, Reply: with.Reply}
	if with.Long {
		h.Proc = NoMsg
	}
	return h
}

// An Answer is a message that answers a call.
type Answer struct {
	*Message
	Call   Header
	Stream []byte // the Payload stream, from wherever it came
	Reply  Reply
}

// Do sends a call and returns its reply, which must arrive and be well-formed.
func (r *Requester) Do(c Call, with Chunks) Answer {
	h := r.Header(c, with)
	r.Send(h, c)
	return r.AwaitReply(h)
}

// Send sends a call: its message stands behind the header, unless it is a Long Call.
func (r *Requester) Send(h Header, c Call) {
	payload := c.Octets()
	if h.Proc == NoMsg {
		payload = nil
	}
	r.Post(h, payload, "")
}

// AwaitReply returns the reply to a call.
func (r *Requester) AwaitReply(call Header) Answer {
	expected := fmt.Sprintf("a reply to XID 0x%08x", call.XID)
	m := r.Await(expected)
	r.t.Check(m.XID == call.XID, expected, "%s", m.Header)
	return r.Answered(m, call)
}

// Answered makes an answer of a message.
func (r *Requester) Answered(m *Message, call Header) Answer {
	expected := fmt.Sprintf("a well-formed reply to XID 0x%08x", call.XID)
	if m.Invalid != nil {
		r.t.Fail(expected, "%s: %v", m.Header, m.Invalid)
	}
	r.t.Check(m.Proc == Msg || m.Proc == NoMsg, expected, "%s", m.Header)
	r.Credits = m.Credits
	a := Answer{Message: m, Call: call, Stream: m.Payload}
	if m.Proc == NoMsg {
		for _, s := range m.Reply {
			a.Stream = append(a.Stream, r.At(s)...)
		}
	}
	var err error
	if a.Reply, err = ParseReply(a.Stream); err != nil {
		r.t.Fail(expected, "%s with a Payload stream of %d octets: %v", m.Header, len(a.Stream), err)
	}
	return a
}

// AwaitError returns the RDMA_ERROR that has to answer a call.
func (r *Requester) AwaitError(call Header) *Message {
	expected := fmt.Sprintf("an RDMA_ERROR for XID 0x%08x", call.XID)
	m := r.Await(expected)
	r.t.Check(m.Proc == Error, expected, "%s", m.Header)
	return m
}

// AwaitDiscarded makes sure that what was sent last was silently discarded: nothing
// comes of it, and the next call is answered.
func (r *Requester) AwaitDiscarded() {
	r.AwaitSilence("as the message is to be silently discarded")
	a := r.Do(r.Null(), Chunks{})
	r.t.Check(!a.Reply.Denied, "that the connection goes on: a reply", "%s", a.Reply)
}

// Results returns the results of a call that has to succeed at the level of RPC. The
// case is inconclusive if it has not.
func (r *Requester) Results(a Answer) []byte {
	if a.Reply.Denied || a.Reply.Status != Success {
		r.t.Inconclusive("there comes %s", a.Reply)
	}
	return a.Reply.Results
}

// A File is one that the tester has made on the target.
type File struct {
	Handle   []byte
	Contents []byte
	r        *Requester
	dir      []byte
	name     string
}

// inlineWrite is how much data fits into a call that is sent without chunks.
const inlineWrite = 512

// NewFile makes a file with contents. Remove it.
func (r *Requester) NewFile(name string, contents []byte) *File {
	f := &File{Contents: contents, r: r, dir: r.t.Root(), name: name}
	f.Handle = f.make()
	for off := 0; off < len(contents); off += inlineWrite {
		data := contents[off:min(off+inlineWrite, len(contents))]
		args := append(WriteHead(f.Handle, uint64(off), uint32(len(data))), data...)
		args = append(args, make([]byte, Roundup(len(data)))...)
		status, n, err := ParseWrite(r.Results(r.Do(r.Call(Write, args), Chunks{})))
		if err != nil || status != OK || int(n) != len(data) {
			r.t.Inconclusive("writing %d octets inline: status %d, %d octets, %v", len(data), status, n, err)
		}
	}
	return f
}

func (f *File) make() []byte {
	r := f.r
	f.remove(r.t.Timeout())
	status, handle, err := ParseHandle(Create, r.Results(r.Do(r.Call(Create, CreateArgs(f.dir, f.name)), Chunks{})))
	if err == nil && status == OK && handle == nil {
		status, handle, err = ParseHandle(Lookup, r.Results(r.Do(r.Call(Lookup, NameArgs(f.dir, f.name)), Chunks{})))
	}
	if err != nil || status != OK {
		r.t.Inconclusive("making the file %s: status %d, %v", f.name, status, err)
	}
	return handle
}

// Remove removes the file, unless the connection is gone: then the next user of the
// name removes it.
func (f *File) Remove() { f.remove(f.r.t.Quiet()) }

// remove does so, and waits for the answer as long as it is told.
func (f *File) remove(timeout time.Duration) {
	c := f.r.Call(Remove, NameArgs(f.dir, f.name))
	f.r.Send(f.r.Header(c, Chunks{}), c)
	for {
		m, err := f.r.Next(timeout)
		if err != nil || m.XID == c.XID {
			return
		}
	}
}

// Exists reports whether there is a file of that name in the root.
func (r *Requester) Exists(name string) bool {
	status, _, err := ParseHandle(Lookup, r.Results(r.Do(r.Call(Lookup, NameArgs(r.t.Root(), name)), Chunks{})))
	r.t.Try(err, "looking for a file")
	return status == OK
}
