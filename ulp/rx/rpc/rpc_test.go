package rpc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/rpc/rpctest"
	"urnic/ulp/rx/secure"
)

// pair is arguments and results of the operations in these tests.
type pair struct {
	Name  string
	Count uint32
}

func (p *pair) XDR(x *rpc.XDR) {
	x.String(&p.Name, 16)
	x.Uint32(&p.Count)
}

var (
	codes    = rpc.NewCodes("test", rpc.Standard)
	errEmpty = codes.Define(4242, "TEMPTY", "nothing is there")

	double = rpc.NewOp[pair, pair](100, "Double")
	fail   = rpc.NewOp[rpc.Int32, rpc.Void](101, "Fail")
	put    = rpc.NewOp[pair, rpc.Uint32](102, "Put")
	get    = rpc.NewOp[rpc.Uint32, rpc.Void](103, "Get")
	who    = rpc.NewOp[rpc.Void, pair](104, "Who")
	long   = rpc.NewOp[rpc.Void, pair](105, "Long")
	silent = rpc.NewOp[rpc.Void, rpc.Void](106, "Silent")
)

func newMux() *rpc.Mux {
	m := rpc.NewMux("test")
	double.Handle(m, func(_ context.Context, a *pair) (pair, error) {
		return pair{a.Name + a.Name, 2 * a.Count}, nil
	})
	fail.Handle(m, func(_ context.Context, a *rpc.Int32) (rpc.Void, error) {
		return rpc.Void{}, &rpc.Code{Number: int32(*a)}
	})
	put.HandleStream(m, func(_ context.Context, a *pair, data io.ReadWriter) (rpc.Uint32, error) {
		p, err := io.ReadAll(data)
		if err == nil && len(p) != int(a.Count) {
			err = errEmpty
		}
		return rpc.Uint32(len(p)), err
	})
	get.HandleStream(m, func(_ context.Context, a *rpc.Uint32, data io.ReadWriter) (rpc.Void, error) {
		for i := range uint32(*a) {
			if _, err := data.Write([]byte{byte(i)}); err != nil {
				return rpc.Void{}, err
			}
		}
		return rpc.Void{}, nil
	})
	who.Handle(m, func(ctx context.Context, _ *rpc.Void) (pair, error) {
		return pair{Name: rpc.Caller(ctx).Name}, nil
	})
	long.Handle(m, func(context.Context, *rpc.Void) (pair, error) {
		return pair{Name: strings.Repeat("x", 17)}, nil
	})
	silent.Handle(m, func(context.Context, *rpc.Void) (rpc.Void, error) { return rpc.Void{}, nil })
	return m
}

func newClient() *rpc.Client { return &rpc.Client{Begin: rpctest.Serve(newMux()), Codes: codes} }

func TestSimpleCallReturnsItsResults(t *testing.T) {
	got, err := double.Call(t.Context(), newClient(), &pair{"ab", 21})
	if err != nil || got != (pair{"abab", 42}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := silent.Call(t.Context(), newClient(), &rpc.Void{}); err != nil {
		t.Error(err)
	}
}

func TestBytesBehindTheArgumentsAreIgnored(t *testing.T) {
	if p, err := send(t, newMux(), 0, request(106, 1, 2, 3)); err != nil || len(p) != 0 {
		t.Errorf("%x, %v", p, err)
	}
}

// send makes a call of raw bytes, read n at a time, and returns the reply.
func send(t *testing.T, m *rpc.Mux, n int, request []byte) ([]byte, error) {
	t.Helper()
	client, server := rpctest.Pair()
	go rpctest.Carry(t.Context(), m.Serve, server.Chunks(n))
	if _, err := client.Write(request); err != nil {
		return nil, err
	}
	if err := client.CloseWrite(); err != nil {
		return nil, err
	}
	return io.ReadAll(client)
}

func request(opcode uint32, args ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, opcode), args...)
}

func TestBadRequestsAreAbortedWithTheCodesOfTheRPCLayer(t *testing.T) {
	for name, tc := range map[string]struct {
		request []byte
		want    int32
	}{
		"nothing at all":                {nil, -454},
		"half an opcode":                {[]byte{0, 0}, -454},
		"an unknown opcode":             {request(99), -455},
		"an unknown opcode with more":   {request(0xffffffff, 1, 2, 3), -455},
		"no arguments":                  {request(100), -453},
		"arguments cut short":           {request(100, 0, 0, 0, 1, 'x', 0, 0, 0), -453},
		"a string longer than allowed":  {request(100, append([]byte{0, 0, 0, 17}, make([]byte, 24)...)...), -453},
		"a length of 4 GiB":             {request(100, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0), -453},
		"arguments beyond the limit":    {request(101, make([]byte, rpc.DefaultMaxArgs+1)...), -453},
		"split: arguments cut short":    {request(102, 0, 0, 0, 1, 'x', 0, 0, 0), -453},
		"split: no arguments":           {request(102), -453},
		"split: a string too long":      {request(102, append([]byte{0, 0, 0, 17}, make([]byte, 24)...)...), -453},
		"results that can't be encoded": {request(105), -452},
	} {
		for _, chunk := range []int{0, 1, 3} {
			t.Run(fmt.Sprint(name, " in pieces of ", chunk), func(t *testing.T) {
				_, err := send(t, newMux(), chunk, tc.request)
				if code, ok := rpc.AbortCode(err); !ok || code != tc.want {
					t.Errorf("%v; want code %d", err, tc.want)
				}
			})
		}
	}
}

func TestClientReportsWhatItCantEncodeOrDecode(t *testing.T) {
	_, err := double.Call(t.Context(), newClient(), &pair{Name: strings.Repeat("x", 17)})
	if !errors.Is(err, rpc.ErrClientMarshal) || !errors.Is(err, rpc.ErrLong) {
		t.Errorf("encoding: %v", err)
	}
	for name, reply := range map[string]string{
		"short": "abc", "with more behind": "\x00\x00\x00\x00\x00\x00\x00\x01\x00", "beyond the limit": strings.Repeat("x", 1<<10),
	} {
		m := rpc.NewMux("test")
		rpc.NewOp[pair, rpc.Void](100, "Double").HandleStream(m, func(_ context.Context, _ *pair, data io.ReadWriter) (rpc.Void, error) {
			_, err := io.WriteString(data, reply)
			return rpc.Void{}, err
		})
		c := &rpc.Client{Begin: rpctest.Serve(m), Codes: codes}
		limited := rpc.NewOp[pair, pair](100, "Double").Limits(1000, 100)
		if _, err := limited.Call(t.Context(), c, &pair{}); !errors.Is(err, rpc.ErrClientUnmarshal) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAbortCodesHaveNamesAndCompare(t *testing.T) {
	_, err := fail.Call(t.Context(), newClient(), new(rpc.Int32(4242)))
	if !errors.Is(err, errEmpty) || err.Error() != "test.Fail: nothing is there (TEMPTY, 4242)" {
		t.Errorf("a code of the interface: %v", err)
	}
	_, err = fail.Call(t.Context(), newClient(), new(rpc.Int32(-455)))
	if !errors.Is(err, rpc.ErrOpcode) || errors.Is(err, errEmpty) {
		t.Errorf("a code of the RPC layer: %v", err)
	}
	_, err = fail.Call(t.Context(), newClient(), new(rpc.Int32(77)))
	if code, ok := rpc.AbortCode(err); !ok || code != 77 || !strings.Contains(err.Error(), "77") {
		t.Errorf("another code: %v", err)
	}
	if _, ok := errors.AsType[*rpctest.AbortError](err); !ok {
		t.Errorf("the call's own error is lost: %v", err)
	}
	if codes.Find(-455) != rpc.ErrOpcode || codes.Find(1) != nil || (*rpc.Codes)(nil).Find(1) != nil {
		t.Error("Find")
	}
}

func TestErrorWithoutCodeKeepsItsCause(t *testing.T) {
	cause := errors.New("no way")
	c := &rpc.Client{Begin: func(context.Context) (rpc.Call, error) { return nil, cause }, Codes: codes}
	_, err := silent.Call(t.Context(), c, &rpc.Void{})
	if !errors.Is(err, cause) || err.Error() != "test.Silent: no way" {
		t.Errorf("%v", err)
	}
	if _, ok := rpc.AbortCode(err); ok {
		t.Error("it has a code")
	}
}

func TestSplitCallCarriesDataOfTheRequest(t *testing.T) {
	for _, chunk := range []int{0, 1, 7} {
		synctest.Test(t, func(t *testing.T) {
			data := bytes.Repeat([]byte("0123456789"), 30000/(chunk*chunk+1))
			m := newMux()
			c := &rpc.Client{Codes: codes, Begin: func(ctx context.Context) (rpc.Call, error) {
				client, server := rpctest.Pair()
				go rpctest.Carry(ctx, m.Serve, server.Chunks(chunk))
				return client, nil
			}}
			s, err := put.Start(t.Context(), c, &pair{"x", uint32(len(data))})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Write(data); err != nil {
				t.Fatal(err)
			}
			n, err := s.Finish()
			if err != nil || int(n) != len(data) {
				t.Errorf("%d bytes of %d, %v", n, len(data), err)
			}
		})
	}
}

func TestSplitCallCarriesDataOfTheReply(t *testing.T) {
	const n = 100000
	s, err := get.Start(t.Context(), newClient(), new(rpc.Uint32(n)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := io.ReadAll(s)
	if err != nil || len(p) != n || p[n-1] != byte((n-1)%256) {
		t.Errorf("%d bytes, %v", len(p), err)
	}
	if _, err := s.Finish(); err != nil {
		t.Error(err)
	}
}

func TestClosingASplitCallEarlyAbortsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := get.Start(t.Context(), newClient(), new(rpc.Uint32(1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(s, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the handler has ended, or the test fails
		if _, err := s.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("reading goes on: %v", err)
		}
	})
}

func TestServersErrorEndsTheWriter(t *testing.T) {
	m := rpc.NewMux("test")
	put.HandleStream(m, func(context.Context, *pair, io.ReadWriter) (rpc.Uint32, error) { return 0, errEmpty })
	s, err := put.Start(t.Context(), &rpc.Client{Begin: rpctest.Serve(m), Codes: codes}, &pair{})
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = s.Write(make([]byte, 1000))
	}
	if !errors.Is(err, errEmpty) {
		t.Errorf("%v", err)
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := put.Start(ctx, newClient(), &pair{})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if _, err := s.Finish(); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestHandlerKnowsItsCaller(t *testing.T) {
	c := &rpc.Client{Begin: rpctest.As(newMux(), secure.Caller{Name: "alice"})}
	if got, err := who.Call(t.Context(), c, &rpc.Void{}); err != nil || got.Name != "alice" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := who.Call(t.Context(), newClient(), &rpc.Void{}); err != nil || got.Name != "" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestMuxNamesItsOperations(t *testing.T) {
	m := newMux()
	if got := m.Opcodes(); len(got) != 7 || got[0] != 100 || got[6] != 106 {
		t.Errorf("%v", got)
	}
	if m.Name(100) != "Double" || m.Name(1) != "" {
		t.Error("Name")
	}
}

// No request makes a server panic or hang, and its reply or code comes, however it is cut.
func FuzzServe(f *testing.F) {
	f.Add(request(100, 0, 0, 0, 1, 'x', 0, 0, 0, 0, 0, 0, 1), 1)
	f.Add(request(102, 0, 0, 0, 1, 'x', 0, 0, 0, 0, 0, 0, 3, 'a', 'b', 'c'), 2)
	f.Add(request(99), 0)
	f.Fuzz(func(t *testing.T, p []byte, chunk int) {
		if len(p) >= 4 && p[3] == 103 && p[2] == 0 {
			return // Get is as long as it is told
		}
		whole, err1 := send(t, newMux(), 0, p)
		cut, err2 := send(t, newMux(), max(1, chunk&0xfff), p)
		c1, _ := rpc.AbortCode(err1)
		c2, _ := rpc.AbortCode(err2)
		if !bytes.Equal(whole, cut) || c1 != c2 {
			t.Fatalf("%x, %v; in pieces %x, %v", whole, err1, cut, err2)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	c := newClient()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := silent.Call(b.Context(), c, &rpc.Void{}); err != nil {
			b.Fatal(err)
		}
	}
}

// peered is a call that knows its client's address.
type peered struct{ *rpctest.Call }

func (peered) Peer() netip.AddrPort { return netip.MustParseAddrPort("127.0.0.1:7001") }

func TestHandlerKnowsItsPeer(t *testing.T) {
	for _, known := range []bool{true, false} {
		m, got := rpc.NewMux("test"), make(chan netip.AddrPort, 1)
		silent.Handle(m, func(ctx context.Context, _ *rpc.Void) (rpc.Void, error) {
			got <- rpc.Peer(ctx)
			return rpc.Void{}, nil
		})
		c := &rpc.Client{Begin: func(ctx context.Context) (rpc.Call, error) {
			client, server := rpctest.Pair()
			var call io.ReadWriter = server
			if known {
				call = peered{server}
			}
			go rpctest.Carry(ctx, func(ctx context.Context, _ io.ReadWriter) error { return m.Serve(ctx, call) }, server)
			return client, nil
		}}
		if _, err := silent.Call(t.Context(), c, &rpc.Void{}); err != nil {
			t.Fatal(err)
		}
		if a := <-got; a.IsValid() != known {
			t.Errorf("%v; known: %v", a, known)
		}
	}
}
