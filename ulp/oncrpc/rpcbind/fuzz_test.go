package rpcbind_test

import (
	"errors"
	"net"
	"testing"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/rpcbind"
	"urnic/ulp/oncrpc/xdr"
)

// FuzzService gives the service arbitrary arguments, of each version and procedure.
func FuzzService(f *testing.F) {
	var e xdr.Encoder
	for _, v := range []uint32{7, 1} {
		e.Uint32(v)
	}
	for _, v := range []string{"tcp", "0.0.0.0.0.7", "me"} {
		e.String(v)
	}
	for procedure := range uint32(13) {
		f.Add(uint32(4), procedure, e.AppendTo(nil))
	}
	f.Add(uint32(2), uint32(1), []byte{0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 7})
	table := rpcbind.NewTable(64)
	s := oncrpc.NewServer(oncrpc.ServerConfig{})
	if err := s.Register(table.Program()); err != nil {
		f.Fatal(err)
	}
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	var xid uint32
	f.Fuzz(func(t *testing.T, version, procedure uint32, args []byte) {
		var call, reply xdr.Encoder
		xid++
		if err := (&oncrpc.Call{XID: xid, Program: rpcbind.Program, Version: version, Procedure: procedure}).Encode(&call); err != nil {
			t.Fatal(err)
		}
		x := &oncrpc.Exchange{Call: &oncrpc.Message{Stream: append(call.AppendTo(nil), args...)}, Netid: "tcp", Local: here, Remote: here}
		if err := s.Serve(t.Context(), x, &reply); err != nil {
			t.Fatal(err)
		}
		var r oncrpc.Reply
		if err := r.Decode(xdr.NewDecoder(reply.AppendTo(nil))); err != nil {
			t.Fatal(err)
		}
		var accepted *oncrpc.AcceptedError
		if errors.As(r.Err, &accepted) && accepted.Stat == oncrpc.SystemError {
			t.Error("the service has failed")
		}
		list := table.Mappings()
		if len(list) > 64 {
			t.Errorf("there are %d mappings", len(list))
		}
		for _, m := range list {
			if _, err := rpcbind.ParseAddr(m.Addr); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzAnswers gives a client arbitrary results.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 3, 't', 'c', 'p', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 13, '0', '.', '0', '.', '0', '.', '0', '.', '0', '.', '1', '1', '1', 0, 0, 0})
	f.Fuzz(func(t *testing.T, results []byte) {
		c := rpcbind.NewClient(oncrpc.NewClient(answering(results), oncrpc.ClientConfig{Sends: 1}))
		defer c.Close()
		ctx := t.Context()
		if list, err := c.Dump(ctx); err != nil && list != nil {
			t.Errorf("%v and %v", list, err)
		}
		_, _ = c.Ports(ctx)
		_, _ = c.GetAddr(ctx, rpcbind.Mapping{})
		_, _ = c.GetAddrList(ctx, rpcbind.Mapping{})
		_, _ = c.GetTime(ctx)
		_, _ = c.GetPort(ctx, 1, 1, 6)
		_, _ = c.FindPort(ctx, 7, 1, "tcp")
		_ = c.Set(ctx, rpcbind.Mapping{})
	})
}
