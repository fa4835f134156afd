package rpcrdma_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"urnic/rnic"
	"urnic/ulp/oncrpc"
	"urnic/ulp/rpcrdma"
)

var registrations = []rpcrdma.Registration{rpcrdma.RegisterFast, rpcrdma.RegisterEach, rpcrdma.RegisterPool}

// RFC 8166 §4.4.1: "The Requester endpoint must ensure that memory regions associated with
// each RPC transaction are protected from Responder access before allowing upper-layer
// access to the data contained in them."
func TestMemoryIsClosedWhenACallIsOver(t *testing.T) {
	type what struct {
		name string
		use  func(r *raw, h rpcrdma.Header) rnic.SendWR
	}
	fetch := func(s rpcrdma.Segment, r *raw) rnic.SendWR {
		return rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{r.register(make([]byte, s.Length), rnic.LocalWrite).SGE(0, int(s.Length))}, Remote: rnic.Remote{STag: s.Handle, TO: s.Offset}}
	}
	place := func(s rpcrdma.Segment, r *raw) rnic.SendWR {
		return rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{r.register(make([]byte, s.Length), 0).SGE(0, int(s.Length))}, Remote: rnic.Remote{STag: s.Handle, TO: s.Offset}}
	}
	for _, how := range registrations {
		for _, w := range []what{
			{"a Read chunk", func(r *raw, h rpcrdma.Header) rnic.SendWR { return fetch(h.Read[0].Segment, r) }},
			{"a Write chunk", func(r *raw, h rpcrdma.Header) rnic.SendWR { return place(h.Write[0][0], r) }},
			{"a Reply chunk", func(r *raw, h rpcrdma.Header) rnic.SendWR { return place(h.Reply[0], r) }},
		} {
			for _, end := range []string{"answered", "refused", "canceled", "invalidated"} {
				t.Run(fmt.Sprintf("%v, %s, %s", how, w.name, end), func(t *testing.T) {
					private := rpcrdma.Private{Send: 4096, Receive: 4096, Invalidate: true}.Append(nil)
					r, conn := rawServe(t, private, rpcrdma.Config{Registration: how})
					data, sink := filled(5000, 1), filled(5000, 2)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					p := start(ctx, conn, func(q *oncrpc.Request) {
						withBulks(q, data)
						q.Sinks, q.ReplyMost = [][]byte{sink}, 6000
					})
					h, _, _ := r.recv()
					if got := r.do(w.use(r, h)); got.Err() != nil { // while the call is in flight, it can be used
						t.Fatal(got.Err())
					}
					r.quiet(conn) // it has arrived
					switch end {
					case "answered", "invalidated":
						m := replyMessage(header(h.XID, func(reply *rpcrdma.Header) {
							reply.Write, reply.Reply, reply.HasReply = h.Write, unused(h.Reply)[0], true
						}))
						if end == "invalidated" {
							r.sendInvalidate(m, w.use(r, h).Remote.STag)
						} else {
							r.send(m)
						}
						if <-p.over; p.err != nil {
							t.Fatal(p.err)
						}
						p.m.Release()
					case "refused":
						r.send(octets(header(h.XID, func(h *rpcrdma.Header) { h.Proc, h.Err = rpcrdma.Error, rpcrdma.ErrChunk })))
						var refused *rpcrdma.RefusedError
						if <-p.over; !errors.As(p.err, &refused) {
							t.Fatal(p.err)
						}
					case "canceled":
						cancel()
						if <-p.over; !errors.Is(p.err, context.Canceled) {
							t.Fatal(p.err)
						}
					}
					fill(sink, 3) // the memory is the caller's again: the race detector watches
					fill(data, 3)
					if err := r.qp.PostSend(w.use(r, h)); err != nil {
						t.Fatal(err)
					}
					if err := r.ended(); err == nil {
						t.Error("the connection has ended without an error")
					}
					<-conn.Done()
					if !bytes.Equal(sink, filled(5000, 3)) {
						t.Error("the memory has changed")
					}
				})
			}
		}
	}
}

// RFC 8166 §8.1.3: exactly the chunk is open, and in one direction only.
func TestMemoryBesideAChunkIsClosed(t *testing.T) {
	for _, how := range registrations {
		for name, use := range map[string]func(r *raw, h rpcrdma.Header) rnic.SendWR{
			"behind a Read chunk": func(r *raw, h rpcrdma.Header) rnic.SendWR {
				s := h.Read[0]
				return rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{r.register(make([]byte, 1), rnic.LocalWrite).SGE(0, 1)}, Remote: rnic.Remote{STag: s.Handle, TO: s.Offset + uint64(s.Length)}}
			},
			"behind a Write chunk": func(r *raw, h rpcrdma.Header) rnic.SendWR {
				s := h.Write[0][0]
				return rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{r.register(make([]byte, 1), 0).SGE(0, 1)}, Remote: rnic.Remote{STag: s.Handle, TO: s.Offset + uint64(s.Length)}}
			},
			"before a Write chunk": func(r *raw, h rpcrdma.Header) rnic.SendWR {
				s := h.Write[0][0]
				return rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{r.register(make([]byte, 1), 0).SGE(0, 1)}, Remote: rnic.Remote{STag: s.Handle, TO: s.Offset - 1}}
			},
			"a Read chunk, written": func(r *raw, h rpcrdma.Header) rnic.SendWR {
				s := h.Read[0]
				return rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{r.register(make([]byte, 1), 0).SGE(0, 1)}, Remote: rnic.Remote{STag: s.Handle, TO: s.Offset}}
			},
			"a Write chunk, read": func(r *raw, h rpcrdma.Header) rnic.SendWR {
				s := h.Write[0][0]
				return rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{r.register(make([]byte, 1), rnic.LocalWrite).SGE(0, 1)}, Remote: rnic.Remote{STag: s.Handle, TO: s.Offset}}
			},
		} {
			t.Run(fmt.Sprint(how, ", ", name), func(t *testing.T) {
				r, conn := rawServe(t, rawPrivate, rpcrdma.Config{Registration: how})
				memory := make([]byte, 20_000)
				p := start(t.Context(), conn, func(q *oncrpc.Request) {
					withBulks(q, memory[1000:][:5000])
					q.Sinks = [][]byte{memory[11_000:][:5000]}
				})
				h, _, _ := r.recv()
				if err := r.qp.PostSend(use(r, h)); err != nil {
					t.Fatal(err)
				}
				_ = r.ended()
				var lost *oncrpc.LostError
				if <-p.over; !errors.As(p.err, &lost) || lost.Err == nil {
					t.Errorf("the call ends with %v", p.err)
				}
			})
		}
	}
}

// Calls, and what is for nobody, invalidate nothing.
func TestOnlyRepliesInvalidate(t *testing.T) {
	for name, m := range map[string]func(xid uint32) []byte{
		"a call":          func(uint32) []byte { return callMessage(header(xids.Add(1), nil), procNull, nil) },
		"a broken reply":  func(uint32) []byte { return []byte{1, 2, 3} },
		"a reply to none": func(xid uint32) []byte { return replyMessage(header(xid+1000, nil)) },
	} {
		for _, reverse := range []oncrpc.Service{nil, newService(t)} {
			t.Run(fmt.Sprint(name, reverse != nil), func(t *testing.T) {
				private := rpcrdma.Private{Send: 4096, Receive: 4096, Invalidate: true}.Append(nil)
				r, conn := rawServe(t, private, rpcrdma.Config{Reverse: reverse})
				p := start(t.Context(), conn, func(q *oncrpc.Request) { q.Sinks = [][]byte{make([]byte, 5000)} })
				h, _, _ := r.recv()
				r.sendInvalidate(m(h.XID), h.Write[0][0].Handle)
				p.wantLost(t, rpcrdma.ErrInvalidated)
			})
		}
	}
}

// RFC 8797 §4.1: "Each RDMA Send with Invalidate MUST invalidate an STag associated only with
// the Transaction ID (XID) in the rdma_xid field".
func TestInvalidationOfAnotherCallsMemoryEndsTheConnection(t *testing.T) {
	for _, how := range registrations {
		t.Run(fmt.Sprint(how), func(t *testing.T) {
			private := rpcrdma.Private{Send: 4096, Receive: 4096, Invalidate: true}.Append(nil)
			r, conn := rawServe(t, private, rpcrdma.Config{Registration: how})
			r.serveCall(start(t.Context(), conn, nil), nil)
			with := func(q *oncrpc.Request) { q.Sinks = [][]byte{make([]byte, 5000)} }
			one, two := start(t.Context(), conn, with), start(t.Context(), conn, with)
			a, _, _ := r.recv()
			b, _, _ := r.recv()
			reply := replyMessage(header(a.XID, func(h *rpcrdma.Header) { h.Write = a.Write }))
			r.sendInvalidate(reply, b.Write[0][0].Handle)
			_ = r.ended()
			for _, p := range []*pendingCall{one, two} {
				var lost *oncrpc.LostError
				if <-p.over; !errors.As(p.err, &lost) || !errors.Is(p.err, rpcrdma.ErrInvalidated) {
					t.Errorf("the call ends with %v", p.err)
				}
			}
		})
	}
}
