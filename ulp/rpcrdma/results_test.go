package rpcrdma_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// lengthsOf returns the lengths of segments.
func lengthsOf(chunks ...[]rpcrdma.Segment) (n [][]uint32) {
	for _, c := range chunks {
		l := []uint32{}
		for _, s := range c {
			l = append(l, s.Length)
		}
		n = append(n, l)
	}
	return n
}

// RFC 8166 §3.4.6: the responder fills a Write chunk "contiguously and in segment array
// order", copies the segments into the reply, and "updates each segment length field to
// reflect the actual amount of data". §4.3.2.2: unused chunks, §4.3.2.3: empty ones.
func TestResponderFillsWriteChunks(t *testing.T) {
	for _, heap := range []bool{false, true} {
		s := newService(t)
		s.heap = heap
		_, address := serve(t, s, rpcrdma.Config{})
		r := rawDial(t, address, rawPrivate)
		for _, c := range []struct {
			name    string
			results []int
			chunks  [][]int // lengths of segments
			placed  [][]uint32
			inline  []int // which results come in the stream
		}{
			{"one that fits", []int{100}, [][]int{{100}}, [][]uint32{{100}}, nil},
			{"one that is filled in part", []int{101}, [][]int{{50, 60, 70}}, [][]uint32{{50, 51, 0}}, nil},
			{"one that is filled to the end of a segment", []int{100}, [][]int{{50, 50, 70}}, [][]uint32{{50, 50, 0}}, nil},
			{"with empty segments", []int{100}, [][]int{{0, 50, 0, 60}}, [][]uint32{{0, 50, 0, 50}}, nil},
			{"several", []int{10, 20, 30}, [][]int{{100}, {100}, {100}}, [][]uint32{{10}, {20}, {30}}, nil},
			{"fewer than results", []int{10, 20, 30}, [][]int{{100}}, [][]uint32{{10}}, []int{1, 2}},
			{"unused ones (§4.3.2.2)", []int{10}, [][]int{{100}, {100, 50}}, [][]uint32{{10}, {0, 0}}, nil},
			{"no result", nil, [][]int{{100, 50}}, [][]uint32{{0, 0}}, nil},
			{"a result of no octets", []int{0, 5}, [][]int{{100}, {100}}, [][]uint32{{0}, {5}}, nil},
			{"an empty one (§4.3.2.3)", []int{10, 20}, [][]int{{}, {100}}, [][]uint32{{}, {20}}, []int{0}},
		} {
			t.Run(fmt.Sprint(c.name, ", heap ", heap), func(t *testing.T) {
				r.t = t
				xid := xids.Add(1)
				var memory [][]byte
				h := header(xid, func(h *rpcrdma.Header) {
					for _, lengths := range c.chunks {
						n := 0
						for _, l := range lengths {
							n += l
						}
						p := bytes.Repeat([]byte{0x55}, n+8)
						memory = append(memory, p)
						chunk := []rpcrdma.Segment{}
						if n > 0 {
							chunk = r.writable(p, lengths...)
						}
						h.Write = append(h.Write, chunk)
					}
				})
				r.send(callMessage(h, procRead, func(e *xdr.Encoder) {
					e.Uint32(uint32(len(c.results)))
					for _, n := range c.results {
						e.Uint32(uint32(n))
					}
				}))
				got, stream, _ := r.recv()
				if got.XID != xid || got.Proc != rpcrdma.Msg || len(got.Read) > 0 || got.HasReply {
					t.Fatalf("got %+v", got)
				}
				if l := lengthsOf(got.Write...); !slices.EqualFunc(l, c.placed, slices.Equal) {
					t.Errorf("lengths %v; want %v", l, c.placed)
				}
				var moved []xdr.Moved
				for i, chunk := range got.Write {
					n := 0
					for k, s := range chunk {
						if o := h.Write[i][k]; s.Handle != o.Handle || s.Offset != o.Offset {
							t.Errorf("segment %d of chunk %d becomes %+v; it was %+v", k, i, s, o)
						}
						n += int(s.Length)
					}
					m := xdr.Moved{Position: xdr.Next, Data: memory[i][:n]}
					if len(chunk) == 0 {
						m.Position = xdr.Inline
					}
					moved = append(moved, m)
					// RFC 8166 §3.4.6.2: "MUST NOT write XDR roundup padding"
					if rest := memory[i][n:]; !bytes.Equal(rest, bytes.Repeat([]byte{0x55}, len(rest))) {
						t.Errorf("chunk %d: more than %d octets were written", i, n)
					}
				}
				bulks := bulksIn(t, stream, moved...)
				if len(bulks) != len(c.results) {
					t.Fatalf("%d results", len(bulks))
				}
				for i, p := range bulks {
					if !bytes.Equal(p, filled(c.results[i], xid)) {
						t.Errorf("result %d: %q", i, p)
					}
				}
				inline := 0
				for _, i := range c.inline {
					inline += (c.results[i] + 3) &^ 3
				}
				if want := headerLen + 4 + 4*len(c.results) + inline; len(stream) != want {
					t.Errorf("the stream has %d octets; want %d", len(stream), want)
				}
			})
		}
	}
}

// RFC 8166 §3.5.3: "If a Reply chunk was provided and the reduced Payload stream is larger than
// the reply inline threshold, the Responder MUST use the Requester-provided Reply chunk";
// §4.3.3: it is copied, with the lengths that were written.
func TestResponderUsesReplyChunks(t *testing.T) {
	s := newService(t)
	_, address := serve(t, s, rpcrdma.Config{})
	r := rawDial(t, address, rawPrivate)
	ask := func(e *xdr.Encoder, results ...int) {
		e.Uint32(uint32(len(results)))
		for _, n := range results {
			e.Uint32(uint32(n))
		}
	}
	for _, c := range []struct {
		name    string
		results []int
		reply   []int
		write   bool // with a Write chunk for the first result
		placed  []uint32
		proc    rpcrdma.Proc
	}{
		{"short", []int{100}, []int{1000}, false, []uint32{0}, rpcrdma.Msg},
		{"long", []int{5000}, []int{10_000}, false, []uint32{headerLen + 4 + 4 + 5000}, rpcrdma.NoMsg},
		{"in segments", []int{5000, 10, 6001}, []int{5000, 0, 5000, 10_000}, false, []uint32{5000, 0, 5000, 1056}, rpcrdma.NoMsg},
		{"of many small results", slices.Repeat([]int{500}, 20), []int{20_000}, false, []uint32{headerLen + 4 + 20*504}, rpcrdma.NoMsg},
		{"with a Write chunk", []int{5001, 5001}, []int{10_000}, true, []uint32{headerLen + 4 + 4 + 4 + 5004}, rpcrdma.NoMsg},
		{"that is not needed beside a Write chunk", []int{5001, 10}, []int{10_000}, true, []uint32{0}, rpcrdma.Msg},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.t = t
			xid := xids.Add(1)
			n := 0
			for _, l := range c.reply {
				n += l
			}
			memory, sink := make([]byte, n), make([]byte, c.results[0])
			r.send(callMessage(header(xid, func(h *rpcrdma.Header) {
				h.HasReply, h.Reply = true, r.writable(memory, c.reply...)
				if c.write {
					h.Write = [][]rpcrdma.Segment{r.writable(sink)}
				}
			}), procRead, func(e *xdr.Encoder) { ask(e, c.results...) }))
			h, stream, _ := r.recv()
			if h.XID != xid || h.Proc != c.proc || !h.HasReply {
				t.Fatalf("got %+v", h)
			}
			if got := lengthsOf(h.Reply)[0]; !slices.Equal(got, c.placed) {
				t.Errorf("lengths %v; want %v", got, c.placed)
			}
			if h.Proc == rpcrdma.NoMsg {
				if len(stream) > 0 {
					t.Errorf("%d octets behind the header", len(stream))
				}
				total := 0
				for i, s := range h.Reply {
					stream = append(stream, memory[sum(c.reply[:i]):][:s.Length]...)
					total += int(s.Length)
				}
			}
			var moved []xdr.Moved
			if c.write {
				moved = []xdr.Moved{{Position: xdr.Next, Data: sink}}
			}
			for i, p := range bulksIn(t, stream, moved...) {
				if !bytes.Equal(p, filled(c.results[i], xid)) {
					t.Errorf("result %d, of %d octets, is not what it should be", i, len(p))
				}
			}
		})
	}
	// RFC 8166 §4.5.3
	for name, change := range map[string]func(h *rpcrdma.Header){
		"there is none":                func(*rpcrdma.Header) {},
		"it is too short":              func(h *rpcrdma.Header) { h.HasReply, h.Reply = true, r.writable(make([]byte, 5000)) },
		"it is empty":                  func(h *rpcrdma.Header) { h.HasReply = true },
		"the Write chunk is too short": func(h *rpcrdma.Header) { h.Write = [][]rpcrdma.Segment{r.writable(make([]byte, 4999))} },
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			xid := xids.Add(1)
			r.send(callMessage(header(xid, change), procRead, func(e *xdr.Encoder) { ask(e, 5000) }))
			r.wantError(xid, 1, rpcrdma.ErrChunk)
			r.null()
		})
	}
}

func sum(ns []int) (total int) {
	for _, n := range ns {
		total += n
	}
	return total
}
