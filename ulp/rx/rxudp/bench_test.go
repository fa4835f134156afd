package rxudp_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxudp"
	"urnic/ulp/rx/secure"
)

// BenchmarkNullCall measures calls without data, one at a time and four.
func BenchmarkNullCall(b *testing.B) {
	c := dial(b, serve(b, echo))
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := exchange(b.Context(), c, []byte("1234")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("four", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(2)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, err := exchange(b.Context(), c, []byte("1234")); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// BenchmarkSend measures a stream to the server at each level of protection.
func BenchmarkSend(b *testing.B) {
	r := newRealm(b)
	server := open(b, rxudp.Config{Addr: loopback, Services: []rx.Service{{
		ID: 7, Handler: rx.HandlerFunc(drain), Security: []secure.Server{r.server(b, rxkad.Clear)},
	}}})
	for _, l := range []struct {
		name     string
		security secure.Client
	}{
		{"null", nil},
		{"clear", r.client(b, "old", rxkad.Clear)},
		{"auth", r.client(b, "old", rxkad.Auth)},
		{"crypt", r.client(b, "old", rxkad.Crypt)},
	} {
		b.Run(l.name, func(b *testing.B) {
			c, err := open(b, rxudp.Config{Addr: loopback}).Dial(b.Context(), server.Addr(), 7, rx.DialConfig{Security: l.security})
			if err != nil {
				b.Fatal(err)
			}
			k, err := c.Begin(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			p := make([]byte, 1<<20)
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.Write(p); err != nil {
					b.Fatal(err)
				}
			}
			if err := k.CloseWrite(); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadAll(k); err != nil {
				b.Fatal(err)
			}
			k.Close()
		})
	}
}

// drain reads a request.
func drain(_ context.Context, c rx.ServerCall) error {
	buf := make([]byte, 256<<10)
	for {
		if _, err := c.Read(buf); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
