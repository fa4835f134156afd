package oncrpc_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// FuzzServe gives a server arbitrary bytes as a call, of which a part was moved. What it
// replies can be decoded, and is to that call.
func FuzzServe(f *testing.F) {
	handle := func(_ context.Context, in *oncrpc.Incoming) error {
		in.Results.Opaque(in.Args.Bulk(1 << 10))
		return nil
	}
	s := oncrpc.NewServer(oncrpc.ServerConfig{Duplicates: 100})
	procedures := map[uint32]oncrpc.Procedure{1: {Handle: handle}, 2: {Handle: handle, Once: true}}
	if err := s.Register(&oncrpc.Program{Number: 1, Versions: []oncrpc.ProgramVersion{{Number: 1, Procedures: procedures}}}); err != nil {
		f.Fatal(err)
	}
	whole := func(e *xdr.Encoder) { e.Opaque([]byte("hello")) }
	for procedure := range uint32(4) {
		f.Add(stream(f, oncrpc.Call{XID: 1, Program: 1, Version: 1, Procedure: procedure}, whole), -1, []byte(nil))
	}
	moved := stream(f, oncrpc.Call{XID: 1, Program: 1, Version: 1, Procedure: 2}, func(e *xdr.Encoder) { e.Uint32(5) })
	f.Add(moved, len(moved), []byte("hello"))
	f.Add(stream(f, oncrpc.Call{XID: 1, Program: 1, Version: 1, Cred: sys(f, 1)}, nil), -1, []byte(nil))
	f.Fuzz(func(t *testing.T, call []byte, position int, data []byte) {
		m := &oncrpc.Message{Stream: bytes.Clone(call)}
		if position >= 0 {
			m.Moved = []xdr.Moved{{Position: position, Data: data}}
		}
		var replies [2][]byte
		for i := range replies {
			var e xdr.Encoder
			err := s.Serve(t.Context(), &oncrpc.Exchange{Call: m, Remote: here}, &e)
			if err != nil && !errors.Is(err, oncrpc.ErrNoReply) {
				t.Fatal(err)
			}
			replies[i] = e.AppendTo(nil)
			if err != nil {
				continue
			}
			var r oncrpc.Reply
			if err := r.Decode(xdr.NewDecoder(replies[i])); err != nil {
				t.Fatal(err)
			}
			if xid, _, err := oncrpc.Peek(call); err != nil || xid != r.XID {
				t.Errorf("the reply is to %#x", r.XID)
			}
			var accepted *oncrpc.AcceptedError
			if errors.As(r.Err, &accepted) && accepted.Stat == oncrpc.SystemError {
				t.Error("the server has failed")
			}
		}
		if !bytes.Equal(replies[0], replies[1]) {
			t.Errorf("%x, then %x", replies[0], replies[1])
		}
	})
}
