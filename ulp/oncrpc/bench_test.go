package oncrpc_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// benchClient returns a client of a server with a program of the tests, over loopback.
func benchClient(b *testing.B) *oncrpc.Client {
	b.Helper()
	s := oncrpc.NewServer(oncrpc.ServerConfig{})
	data := make([]byte, most)
	read := func(_ context.Context, in *oncrpc.Incoming) error {
		in.Results.Bulk(data[:in.Args.Uint32()])
		return nil
	}
	procedures := map[uint32]oncrpc.Procedure{1: {Name: "READ", Handle: read}}
	if err := s.Register(&oncrpc.Program{Number: program, Versions: []oncrpc.ProgramVersion{{Number: version, Procedures: procedures}}}); err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { _ = s.ServeTCP(context.Background(), l) }) // until Close
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
		served.Wait()
	})
	return newClient(b, oncrpc.OverTCP(l.Addr().String(), oncrpc.TCPConfig{}), oncrpc.ClientConfig{})
}

func BenchmarkNullCall(b *testing.B) {
	c := benchClient(b)
	v := call(0)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Call(b.Context(), v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNullCallsOfMany(b *testing.B) {
	c := benchClient(b)
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		v := call(0)
		for pb.Next() {
			if err := c.Call(b.Context(), v); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkRead1MiB(b *testing.B) {
	c := benchClient(b)
	v, p := call(1), make([]byte, most)
	v.Args = func(e *xdr.Encoder) { e.Uint32(most) }
	v.Results = func(d *xdr.Decoder) error { d.BulkInto(p); return d.Err() }
	v.Sinks = [][]byte{p}
	b.SetBytes(most)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Call(b.Context(), v); err != nil {
			b.Fatal(err)
		}
	}
}
