package rpc

import (
	"errors"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// A Filing is a call of a client whose files the tester seems to have: what came, and what
// the client has lent for it.
type Filing struct {
	*Incoming
	// Stream is the Payload stream as it came, from behind the header or from the Read
	// chunk at position zero: reduced, if it was.
	Stream []byte
	// Moved is how many bytes the other Read chunk has, and Data are these; Chunks is how
	// many other Read chunks there are, and Position that of the first.
	Moved, Chunks int
	Position      uint32
	Data          []byte
}

// Filing returns the next call, with what it has in Read chunks. It returns an error if none
// comes.
func (s *Server) Filing() (*Filing, error) {
	in, err := s.NextCall(s.t.Timeout())
	if err != nil {
		return nil, err
	}
	f := &Filing{Incoming: in, Stream: in.Payload}
	positions := map[uint32]bool{}
	for _, r := range in.Reads {
		data, err := s.pull(r.Segment)
		if err != nil {
			return nil, err
		}
		if in.Proc == NoMsg && r.Position == 0 {
			f.Stream = append(f.Stream, data...)
			continue
		}
		if len(positions) == 0 {
			f.Position = r.Position
		}
		positions[r.Position] = true
		f.Moved += len(data)
		f.Data = append(f.Data, data...)
	}
	f.Chunks = len(positions)
	if in.Call, err = ParseCall(f.Stream); err != nil {
		s.t.Fail("a well-formed call", "%s, and as its Payload stream %d octets: %v", in.Header, len(f.Stream), err)
	}
	return f, nil
}

// errResponse says that there came something else than the response to an RDMA Read.
var errResponse = errors.New("there is no response to an RDMA Read")

// pull reads memory of the client. Nothing else comes meanwhile from one that has used its
// only credit.
func (s *Server) pull(from Segment) ([]byte, error) {
	s.Stream.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, from.Length, from.Handle, from.Offset))
	var data []byte
	for {
		a, err := s.Stream.Next(s.t.Timeout())
		if err != nil {
			return nil, err
		}
		if a.Opcode != wire.ReadResponse {
			return nil, fmt.Errorf("%w: %s", errResponse, a.Segment)
		}
		if data = append(data, a.Payload...); a.Last {
			return data, nil
		}
	}
}

// Push writes to memory of the client, without asking whether it may.
func (s *Server) Push(to Segment, data []byte, wrong string) {
	w := wire.Tagged(wire.Write, to.Handle, to.Offset, data)
	w.Wrong = wrong
	s.post(w)
}

// A Writing is what a WRITE says, up to the count of its data; Rest is what stands behind
// that in the Payload stream.
type Writing struct {
	Count, Length uint32
	Rest          []byte
}

// Writing parses the call as a WRITE.
func (f *Filing) Writing() (Writing, error) {
	d := decoder{rest: f.Call.Args}
	d.opaque(maxHandle)
	d.take(8) // the offset
	w := Writing{Count: d.word()}
	d.word()
	w.Length = d.word()
	w.Rest = d.rest
	return w, d.err
}

// Reading parses the call as a READ, and returns how many bytes are wanted.
func (f *Filing) Reading() (count uint32, err error) {
	d := decoder{rest: f.Call.Args}
	d.opaque(maxHandle)
	d.take(8) // the offset
	count = d.word()
	return count, d.err
}

// Is reports whether it is a call of a procedure of NFS version 3.
func (f *Filing) Is(procedure uint32) bool {
	return f.Call.Program == NFS && f.Call.Version == NFS3 && f.Call.Procedure == procedure
}

// File answers a call as a server of files would: NULL, READ, whose data are zeros, and
// WRITE succeed, and what else there is, is not allowed.
func (s *Server) File(f *Filing) {
	h := s.ReplyHeader(f.Incoming)
	r := Reply{XID: f.XID}
	const noAccess = 13
	switch {
	case f.Is(Null):
	case f.Is(Write):
		w, err := f.Writing()
		s.t.Try(err, "parsing a WRITE")
		r.Results = hyper(words(nil, OK, 0, 0, w.Count, 2), 0)
	case f.Is(Read):
		count, err := f.Reading()
		s.t.Try(err, "parsing a READ")
		r.Results = words(nil, OK, 0, count, 1, count)
		data := make([]byte, count)
		if len(h.Writes) > 0 && f.Writes[0].Len() >= int(count) && count > 0 {
			h.Writes[0] = s.fill(f.Writes[0], data)
		} else {
			r.Results = append(r.Results, data...)
			r.Results = append(r.Results, make([]byte, Roundup(int(count)))...)
		}
	case f.Call.Program == NFS && f.Call.Version == NFS3:
		r.Results = words(nil, noAccess, 0, 0)
	default:
		r.Status = ProgUnavail
	}
	stream := r.Octets()
	if len(h.Octets())+len(stream) > s.Theirs.ReceiveSize() && f.Reply.Len() >= len(stream) {
		h.Reply, h.Proc = s.fill(f.Reply, stream), NoMsg
		stream = nil
	}
	s.Post(h, stream, "")
}

// fill writes data into a chunk, and returns it as it goes back.
func (s *Server) fill(c Chunk, data []byte) Chunk {
	out := unused(c)
	for i, g := range c {
		n := min(int(g.Length), len(data))
		if n == 0 {
			continue
		}
		s.Push(g, data[:n], "")
		out[i].Length = uint32(n)
		data = data[n:]
	}
	return out
}
