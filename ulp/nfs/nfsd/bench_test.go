package nfsd_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// BenchmarkServe is what a call costs without a transport: GETATTR, READ and WRITE of a
// file in memory.
func BenchmarkServe(b *testing.B) {
	t := tree(b)
	h := t.create(alice, t.root, "file", 0o644)
	data := make([]byte, 1<<20)
	ok(t, t.write(alice, h, 0, string(data)))
	cred, err := (&oncrpc.Sys{UID: alice.uid, GID: alice.gid}).Auth()
	if err != nil {
		b.Fatal(err)
	}
	bench := func(p nfs3.Proc, octets int, args nfs3.Codec) {
		b.Run(fmt.Sprintf("%v/%d", p, octets), func(b *testing.B) {
			b.SetBytes(int64(octets))
			b.ReportAllocs()
			var call, reply xdr.Encoder
			head := oncrpc.Call{Program: nfs3.Program, Version: nfs3.Version, Procedure: uint32(p), Cred: cred}
			if err := head.Encode(&call); err != nil {
				b.Fatal(err)
			}
			args.Encode(&call)
			message := oncrpc.Message{Stream: call.AppendTo(nil)}
			buffer := make([]byte, 1<<20)
			x := oncrpc.Exchange{Call: &message, Netid: "rdma", Remote: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 700}, Buffer: func(n int) []byte { return buffer[:n] }}
			ctx := context.Background()
			for b.Loop() {
				n := xid.Add(1)
				message.Stream[0], message.Stream[1], message.Stream[2], message.Stream[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
				reply.Reset()
				if err := t.rpc.Serve(ctx, &x, &reply); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	bench(nfs3.ProcGetAttr, 0, &nfs3.HandleArgs{Handle: h})
	bench(nfs3.ProcLookup, 0, new(at(t.root, "file")))
	for _, n := range []int{4096, 1 << 20} {
		bench(nfs3.ProcRead, n, &nfs3.ReadArgs{File: h, Count: uint32(n)})
		bench(nfs3.ProcWrite, n, &nfs3.WriteArgs{File: h, Data: data[:n]})
	}
}
