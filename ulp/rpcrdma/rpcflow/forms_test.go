package rpcflow

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"

	"urnic/internal/program/dissect"
	"urnic/rdmap"
	"urnic/stag"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

const tag = 0x77 // of all chunks

var linux = rpcrdma.Private{Invalidate: true, Send: 4096, Receive: 4096}

// nfsCall returns a call of NFSv3 with arguments.
func nfsCall(xid, procedure uint32, arguments ...[]byte) []byte {
	c := oncrpc.Call{XID: xid, Program: programNFS, Version: 3, Procedure: procedure}
	var e xdr.Encoder
	_ = c.Encode(&e) // its credentials are empty
	return append(e.AppendTo(nil), slices.Concat(arguments...)...)
}

// answer returns a reply with results.
func answer(xid uint32, results ...[]byte) []byte {
	r := oncrpc.Reply{XID: xid}
	var e xdr.Encoder
	_ = r.Encode(&e) // its verifier is empty
	return append(e.AppendTo(nil), slices.Concat(results...)...)
}

// words returns words in XDR.
func words(ws ...uint32) []byte {
	var e xdr.Encoder
	for _, w := range ws {
		e.Uint32(w)
	}
	return e.AppendTo(nil)
}

func opaque(b []byte) []byte {
	var e xdr.Encoder
	e.Opaque(b)
	return e.AppendTo(nil)
}

func octets(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + 1)
	}
	return b
}

func segment(at, length int) rpcrdma.Segment {
	return rpcrdma.Segment{Handle: tag, Offset: uint64(at), Length: uint32(length)}
}

func readSegment(position, at, length int) rpcrdma.ReadSegment {
	return rpcrdma.ReadSegment{Position: uint32(position), Segment: segment(at, length)}
}

// writeCall returns a call of WRITE whose data are in chunks, up to them.
func writeCall(xid uint32, n int) []byte {
	return nfsCall(xid, nfs3Write, opaque([]byte("file")), words(0, 0, uint32(n), 2, uint32(n)))
}

func (f found) one(t *testing.T, i int) *RPC {
	t.Helper()
	if len(f.messages) <= i {
		t.Fatalf("%d messages; violations %q, notes %q", len(f.messages), f.details, f.notes)
	}
	return f.messages[i]
}

// A data item may come in several segments, with what fills it up or without.
func TestReadChunksArePutInTheirPlace(t *testing.T) {
	data := octets(1001)
	head := writeCall(5, len(data))
	whole := slices.Concat(head, data, make([]byte, 3), words(1, 2))
	for name, chunk := range map[string][]rpcrdma.ReadSegment{
		"one segment":                    {readSegment(len(head), 0, 1001)},
		"with its roundup":               {readSegment(len(head), 0, 1004)},
		"with a segment for the rest":    {readSegment(len(head), 0, 1001), readSegment(len(head), 1001, 3)},
		"segments of any length":         {readSegment(len(head), 0, 1), readSegment(len(head), 1, 997), readSegment(len(head), 998, 3)},
		"segments of which one is empty": {readSegment(len(head), 0, 500), readSegment(len(head), 9, 0), readSegment(len(head), 500, 501)},
	} {
		p := newPlayer(t, Port).start(linux)
		p.send(client, rpcrdma.Header{XID: 5, Read: chunk}, append(slices.Clone(head), words(1, 2)...))
		memory := append(slices.Clone(data), 0, 0, 0)
		for _, s := range slices.Backward(chunk) { // in any order
			if s.Length > 0 {
				p.read(tag, s.Offset, memory[s.Offset:s.Offset+uint64(s.Length)])
			}
		}
		p.send(server, rpcrdma.Header{XID: 5}, answer(5, words(0)))
		f := analyze(t, p.recording(), &Analyzer{})
		f.want(t)
		if m := f.one(t, 0); !m.Whole || !bytes.Equal(m.Octets, whole) || m.Moved < 1001 || len(f.notes) > 0 {
			t.Errorf("%s: %v\n%x\nwant\n%x", name, m, m.Octets, whole)
		}
	}
}

// A call may come in a Read chunk at 0, and its data items in others.
func TestLongCall(t *testing.T) {
	first, second := octets(8), octets(6)
	head, middle, end := nfsCall(5, nfs3SymLink, words(8)), words(6), words(9)
	at1 := len(head)
	at2 := at1 + 8 + len(middle)
	stream := slices.Concat(head, middle, end)
	p := newPlayer(t, Port).start(linux)
	p.send(client, rpcrdma.Header{XID: 5, Proc: rpcrdma.NoMsg, Read: []rpcrdma.ReadSegment{
		readSegment(0, 0, 20), readSegment(0, 20, len(stream)-20), readSegment(at1, 1000, 8), readSegment(at2, 2000, 6),
	}}, nil)
	p.read(tag, 0, stream[:20])
	p.read(tag, 2000, second)
	p.read(tag, 1000, first)
	p.read(tag, 20, stream[20:])
	p.send(server, rpcrdma.Header{XID: 5}, answer(5, words(0)))
	f := analyze(t, p.recording(), &Analyzer{})
	f.want(t)
	want := slices.Concat(head, first, middle, second, make([]byte, 2), end)
	if m := f.one(t, 0); !m.Long || m.Moved != 14 || !bytes.Equal(m.Octets, want) || !strings.Contains(m.String(), "NFSv3 SYMLINK") {
		t.Errorf("%v\n%x\nwant\n%x", m, m.Octets, want)
	}
	if s := f.summary(t); s.Replies != 1 || s.Procedures()[0].LongCalls != 1 || s.Procedures()[0].ReadChunks != 2 {
		t.Errorf("%+v", s)
	}
}

// A reply may come in the Reply chunk, and its data item in a Write chunk.
func TestLongReplyWithAWriteChunk(t *testing.T) {
	data := octets(30)
	head := answer(5, words(0, 0, 30, 1, 30))
	for _, long := range []bool{false, true} {
		p := newPlayer(t, Port).start(linux)
		offered := rpcrdma.Header{XID: 5, Write: [][]rpcrdma.Segment{{segment(0, 20), segment(100, 50)}}, HasReply: true, Reply: []rpcrdma.Segment{segment(1000, 16), segment(2000, 200)}}
		p.send(client, offered, nfsCall(5, nfs3Read, opaque([]byte("file")), words(0, 0, 30)))
		p.write(100, data[20:])
		p.write(0, data[:20])
		back := rpcrdma.Header{XID: 5, Write: [][]rpcrdma.Segment{{segment(0, 20), segment(100, 10)}}, HasReply: true, Reply: []rpcrdma.Segment{segment(1000, 0), segment(2000, 0)}}
		if long {
			p.write(1000, head[:16])
			p.write(2000, head[16:])
			back.Proc, back.Reply = rpcrdma.NoMsg, []rpcrdma.Segment{segment(1000, 16), segment(2000, len(head)-16)}
			p.send(server, back, nil)
		} else {
			p.send(server, back, head)
		}
		f := analyze(t, p.recording(), &Analyzer{})
		f.want(t)
		want := slices.Concat(head, data, make([]byte, 2))
		if m := f.one(t, 1); m.Long != long || m.Moved != 30 || !m.Whole || !bytes.Equal(m.Octets, want) || !m.Matched {
			t.Errorf("%v\n%x\nwant\n%x", m, m.Octets, want)
		}
		if m := f.one(t, 1); m.Detail != "OK count=30 eof=true" {
			t.Errorf("%q", m.Detail)
		}
	}
}

// Write chunks may be empty, or come back unused, even if something was written to them.
func TestUnusedWriteChunks(t *testing.T) {
	p := newPlayer(t, Port).start(linux)
	p.send(client, rpcrdma.Header{XID: 5, Write: [][]rpcrdma.Segment{{segment(0, 100)}, {}}}, nfsCall(5, nfs3Read, opaque([]byte("file")), words(0, 0, 30)))
	p.write(0, octets(10))
	p.send(server, rpcrdma.Header{XID: 5, Write: [][]rpcrdma.Segment{{segment(0, 0)}, {}}}, answer(5, words(70, 0)))
	f := analyze(t, p.recording(), &Analyzer{})
	f.want(t)
	if m := f.one(t, 1); m.Detail != "STALE" || m.Moved != 0 {
		t.Errorf("%v", m)
	}
}

// In a COMPOUND, the data of a READ stand in front of the results that follow.
func TestWriteChunksOfCompounds(t *testing.T) {
	data := octets(5)
	p := newPlayer(t, Port).start(linux)
	c := oncrpc.Call{XID: 5, Program: programNFS, Version: 4, Procedure: 1}
	var e xdr.Encoder
	_ = c.Encode(&e)
	arguments := slices.Concat(opaque(nil), words(1, 4, op4PutFH), opaque([]byte("file")),
		words(op4Read, 0, 0, 0, 0, 0, 0, 5), words(op4Read, 0, 0, 0, 0, 0, 5, 6), words(op4GetAttr, 1, 9))
	p.send(client, rpcrdma.Header{XID: 5, Write: [][]rpcrdma.Segment{{segment(0, 5)}, {segment(10, 6)}}}, append(e.AppendTo(nil), arguments...))
	p.write(0, data)
	p.write(10, data)
	before := answer(5, words(0), opaque(nil), words(4, op4PutFH, 0, op4Read, 0, 0, 5))
	between := words(op4Read, 0, 1, 5)
	after := words(op4GetAttr, 0, 1, 9, 0)
	p.send(server, rpcrdma.Header{XID: 5, Write: [][]rpcrdma.Segment{{segment(0, 5)}, {segment(10, 5)}}}, slices.Concat(before, between, after))
	f := analyze(t, p.recording(), &Analyzer{})
	f.want(t)
	if m := f.one(t, 0); m.Detail != "PUTFH READ READ GETATTR" {
		t.Errorf("%v", m)
	}
	want := slices.Concat(before, data, make([]byte, 3), between, data, make([]byte, 3), after)
	if m := f.one(t, 1); !bytes.Equal(m.Octets, want) || !m.Whole || m.Moved != 10 {
		t.Errorf("%v\n%x\nwant\n%x", m, m.Octets, want)
	}
}

// RDMA_ERROR ends a call, also one that can't be decoded.
func TestErrorsEndCalls(t *testing.T) {
	p := newPlayer(t, Port).start(linux)
	p.send(client, rpcrdma.Header{XID: 5}, nfsCall(5, 0))
	p.send(server, rpcrdma.Header{XID: 5, Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk}, nil)
	p.send(client, rpcrdma.Header{XID: 6, Version: 3}, nfsCall(6, 0))
	p.send(server, rpcrdma.Header{XID: 6, Version: 3, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: 1}, nil)
	var text bytes.Buffer
	f := analyze(t, p.recording(), &Analyzer{}, dissect.Text(&text, dissect.Options{}))
	f.want(t, "rpc-header by client")
	if s := f.summary(t); s.Errors != 2 || s.Unanswered != 0 || len(f.notes) > 0 || s.BadHeaders != 1 {
		t.Errorf("%+v, notes %q", s, f.notes)
	}
	for _, want := range []string{
		"RDMA_ERROR xid=00000005 credits=8 ERR_CHUNK\n", "RDMA_ERROR xid=00000006 credits=8 ERR_VERS versions 1 to 1\n",
		"> RPC-over-RDMA private data R=1 send=4096 receive=4096\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

// Either side may call the other (RFC 8167).
func TestReverseDirection(t *testing.T) {
	p := newPlayer(t, Port).start(linux)
	p.send(client, rpcrdma.Header{XID: 5}, nfsCall(5, 0))
	p.send(server, rpcrdma.Header{XID: 5}, nfsCall(5, 0)) // the same XID, the other way
	p.send(client, rpcrdma.Header{XID: 5}, answer(5))
	p.send(server, rpcrdma.Header{XID: 5}, answer(5))
	f := analyze(t, p.recording(), &Analyzer{})
	f.want(t)
	if s := f.summary(t); s.Calls != 2 || s.Replies != 2 || s.Unanswered != 0 {
		t.Errorf("%+v", s)
	}
}

func TestRefusedCallsAreShown(t *testing.T) {
	p := newPlayer(t, Port).start(linux)
	for i, err := range []error{
		&oncrpc.AcceptedError{Stat: oncrpc.ProgramMismatch, Low: 2, High: 4}, &oncrpc.RejectedError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak},
		&oncrpc.RejectedError{Stat: oncrpc.RPCMismatch, Low: 2, High: 2},
	} {
		xid := uint32(i)
		p.send(client, rpcrdma.Header{XID: xid}, nfsCall(xid, 1, opaque([]byte("file"))))
		var e xdr.Encoder
		if err := (&oncrpc.Reply{XID: xid, Err: err}).Encode(&e); err != nil {
			t.Fatal(err)
		}
		p.send(server, rpcrdma.Header{XID: xid}, e.AppendTo(nil))
	}
	f := analyze(t, p.recording(), &Analyzer{})
	f.want(t)
	for i, want := range []string{"accepted, but the server has no such version", "denied: too weak", "denied: versions 2 to 2 of RPC"} {
		if m := f.one(t, 2*i+1); !m.Failed || !strings.HasPrefix(m.Status, want) {
			t.Errorf("%v", m)
		}
	}
	if p := f.summary(t).Procedures(); len(p) != 1 || p[0].Failed != 3 {
		t.Errorf("%+v", p)
	}
}

// A caller may continue with what it was granted until it must have heard of
// less.
func TestCreditsThatFall(t *testing.T) {
	play := func(replies int) found {
		p := newPlayer(t, Port).start(linux)
		next := uint32(0)
		ask := func() {
			p.send(client, rpcrdma.Header{XID: next, Credits: 100}, nfsCall(next, 0))
			next++
		}
		reply := func(xid, credits uint32) { p.send(server, rpcrdma.Header{XID: xid, Credits: credits}, answer(xid)) }
		ask()
		reply(0, 10)
		for range 10 {
			ask()
		}
		for i := range replies {
			reply(uint32(i+1), 9) // 8 is the least that send takes
			ask()
		}
		return analyze(t, p.recording(), &Analyzer{})
	}
	f := play(9)
	f.want(t)
	f.noted(t, "10 calls of the client have no reply: XID 0000000a NFSv3 NULL, XID 0000000b NFSv3 NULL, XID 0000000c NFSv3 NULL, XID 0000000d NFSv3 NULL, ...")
	play(10).want(t, "rpc-credits by client")
}

func TestRecognition(t *testing.T) {
	for _, tc := range []struct {
		name    string
		port    uint16
		private []byte
		all     bool
		want    bool
	}{
		{"port", Port, nil, false, true},
		{"private data", 4711, linux.Append(nil), false, true},
		{"private data behind another's", 4711, linux.Append([]byte("xyz")), false, true},
		{"all", 4711, nil, true, true},
		{"nothing", 4711, nil, false, false},
		{"foreign private data", 4711, []byte("12345678"), false, false},
	} {
		p := newPlayer(t, tc.port)
		p.frame(frame(false, tc.private))
		p.frame(frame(true, nil))
		p.send(client, rpcrdma.Header{XID: 5}, nfsCall(5, 0))
		f := analyze(t, p.recording(), &Analyzer{All: tc.all})
		if got := f.Connections[0].Upper != nil; got != tc.want || (len(f.messages) == 1) != tc.want {
			t.Errorf("%s: %t, %d messages", tc.name, got, len(f.messages))
		}
		f.want(t)
	}
}

// What is remembered is bounded, and what is not remembered is nobody's fault.
func TestBounds(t *testing.T) {
	t.Run("bytes", func(t *testing.T) {
		data := octets(1000)
		head := writeCall(5, len(data))
		p := newPlayer(t, Port).start(linux)
		p.send(client, rpcrdma.Header{XID: 5, Read: []rpcrdma.ReadSegment{readSegment(len(head), 0, len(data))}}, head)
		p.read(tag, 0, data)
		p.send(server, rpcrdma.Header{XID: 5}, answer(5, words(0)))
		a := &Analyzer{kept: maxKept - 600}
		r := play(t, p, a)
		if m := r.one(t, 0); m.Whole || m.Length != uint64(len(head)+len(data)) || m.Title() != "NFSv3 WRITE" {
			t.Errorf("%v", m)
		}
		r.want(t)
		if a.kept != maxKept-600 {
			t.Errorf("%d bytes are kept", a.kept)
		}
	})
	t.Run("calls", func(t *testing.T) {
		p := newPlayer(t, Port).start(linux)
		p.send(client, rpcrdma.Header{XID: 1}, nfsCall(1, 0))
		p.send(server, rpcrdma.Header{XID: 1, Credits: 1000}, answer(1))
		for i := range uint32(20) {
			p.send(client, rpcrdma.Header{XID: 100 + i, Credits: 1000}, nfsCall(100+i, 0))
		}
		for i := range uint32(20) {
			p.send(server, rpcrdma.Header{XID: 100 + i, Credits: 1000}, answer(100+i))
		}
		a := &Analyzer{open: maxOpen - 10}
		r := play(t, p, a)
		r.want(t)
		r.noted(t, "too many calls are open")
		if s := r.summary(t); s.Replies != 11 || a.open != maxOpen-10 {
			t.Errorf("%+v, %d are open", s, a.open)
		}
	})
	t.Run("segments with an STag", func(t *testing.T) {
		var many []rpcrdma.Segment
		for i := range 300 {
			many = append(many, segment(16*i, 16))
		}
		p := newPlayer(t, Port).start(rpcrdma.Private{Send: 1 << 16, Receive: 1 << 16})
		p.send(client, rpcrdma.Header{XID: 5, Write: [][]rpcrdma.Segment{many}}, nfsCall(5, 0))
		p.write(16*299, octets(16))
		r := play(t, p, &Analyzer{})
		r.want(t)
		r.noted(t, "more than 256 open segments have the STag 0x00000077")
	})
	t.Run("lengths that are only named", func(t *testing.T) {
		const most = 1<<32 - 1
		big := rpcrdma.Segment{Handle: tag, Length: most, Offset: 1 << 40}
		p := newPlayer(t, Port).start(linux)
		p.send(client, rpcrdma.Header{XID: 1}, nfsCall(1, 0))
		p.send(server, rpcrdma.Header{XID: 1}, answer(1))
		p.send(client, rpcrdma.Header{XID: 5, Proc: rpcrdma.NoMsg, Read: []rpcrdma.ReadSegment{{Segment: big}, {Segment: big}, {Position: 4, Segment: big}}}, nil)
		p.read(tag, big.Offset+most-4, octets(4))
		p.send(client, rpcrdma.Header{XID: 6, Write: [][]rpcrdma.Segment{{big, big}}, HasReply: true, Reply: []rpcrdma.Segment{big}}, nfsCall(6, nfs3Read, opaque([]byte("file")), words(0, 0, most)))
		p.write(big.Offset+most-4, octets(4))
		p.send(server, rpcrdma.Header{XID: 6, Proc: rpcrdma.NoMsg, Write: [][]rpcrdma.Segment{{big, big}}, HasReply: true, Reply: []rpcrdma.Segment{big}}, nil)
		p.send(server, rpcrdma.Header{XID: 5}, answer(5))
		file := p.recording()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f := analyze(t, file, &Analyzer{})
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%d bytes were allocated", n)
		}
		f.want(t, "rpc-written-length by server", "rpc-written-length by server", "rpc-written-length by server")
		if m := f.one(t, 3); m.Whole || m.Length != 3*most || !m.Long {
			t.Errorf("%v", m)
		}
	})
	t.Run("past segments", func(t *testing.T) {
		p := newPlayer(t, Port).start(linux)
		for i := range uint32(6) {
			s := rpcrdma.Segment{Handle: stag.STag(100 + i), Length: 10}
			p.send(client, rpcrdma.Header{XID: i, HasReply: true, Reply: []rpcrdma.Segment{s}}, nfsCall(i, 0))
			s.Length = 0
			p.send(server, rpcrdma.Header{XID: i, HasReply: true, Reply: []rpcrdma.Segment{s}}, answer(i))
		}
		p.tagged(server, rdmap.OpWrite, 102, 0, octets(2)) // forgotten
		p.tagged(server, rdmap.OpWrite, 104, 0, octets(2))
		a := &Analyzer{past: maxPast - 2}
		play(t, p, a).want(t, "rpc-memory by server", "rpc-memory-after-reply by server")
		if a.past != maxPast-2 {
			t.Errorf("%d past segments", a.past)
		}
	})
	t.Run("procedures of all connections", func(t *testing.T) {
		p := newPlayer(t, Port).start(linux)
		for i := range uint32(5) {
			p.send(client, rpcrdma.Header{XID: 5}, nfsCall(5, 1000+i))
			p.send(server, rpcrdma.Header{XID: 5}, answer(5))
		}
		all := play(t, p, &Analyzer{counted: maxCounted - 2}).summary(t).Procedures()
		if len(all) != 3 || all[0].Name != "other procedures" || all[0].Calls != 3 {
			t.Errorf("%d procedures, first %+v", len(all), all[0])
		}
	})
	t.Run("procedures", func(t *testing.T) {
		p := newPlayer(t, Port).start(linux)
		for i := range uint32(300) {
			p.send(client, rpcrdma.Header{XID: 5}, nfsCall(5, 1000+i))
			p.send(server, rpcrdma.Header{XID: 5}, answer(5))
		}
		all := play(t, p, &Analyzer{}).summary(t).Procedures()
		if len(all) != maxProcedures+1 || all[0].Name != "other procedures" || all[0].Calls != 300-maxProcedures {
			t.Errorf("%d procedures, first %+v", len(all), all[0])
		}
	})
}

// play analyses what was played, with what an Analyzer remembers of other connections.
func play(t *testing.T, p *player, a *Analyzer) found {
	t.Helper()
	was := *a
	f := analyzeWith(t, p.recording(), a)
	if was.kept != a.kept || was.open != a.open || was.regions != a.regions {
		t.Errorf("remembered are %+v, were %+v", a, was)
	}
	return f
}

// A span tells what was moved, in whatever order.
func TestSpan(t *testing.T) {
	keep := func(int) bool { return true }
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {0, 0, 2, 1, 3, 2}} {
		var s span
		for _, i := range order {
			s.add(uint64(10*i), octets(10), keep)
		}
		if n, front := s.moved(); n != 40 || front != 40 || len(s.pieces) != 1 || s.many {
			t.Errorf("%v: %d, %d, %v", order, n, front, s.pieces)
		}
	}
	var s span
	for i := range maxPieces + 5 {
		s.add(uint64(20*i+5), octets(10), keep)
	}
	if n, front := s.moved(); !s.many || n != 10*maxPieces || front != 0 || len(s.data) > 0 {
		t.Errorf("%d, %d, %d pieces", n, front, len(s.pieces))
	}
	s = span{}
	s.add(0, []byte("abcdef"), keep)
	s.add(2, []byte("XY"), keep)
	if n, _ := s.moved(); n != 6 || string(s.data) != "abXYef" {
		t.Errorf("%d %q", n, s.data)
	}
	s.add(4, []byte("1234"), keep)
	if n, _ := s.moved(); n != 8 || !s.thin {
		t.Error("data that overlaps what is there in part can't be kept")
	}
}

func TestProcedureNames(t *testing.T) {
	for want, p := range map[string][3]uint32{
		"NFSv3 COMMIT": {programNFS, 3, 21}, "NFSv3 procedure 22": {programNFS, 3, 22}, "NFSv4 COMPOUND": {programNFS, 4, 1},
		"NFSv2 STATFS": {programNFS, 2, 17}, "MOUNTv3 EXPORT": {programMount, 3, 5}, "NFSACLv3 SETACL": {programNFSACL, 3, 2},
		"rpcbindv4 GETSTAT": {programPortmap, 4, 12}, "program 7 version 8 procedure 9": {7, 8, 9}, "NLMv4 procedure 17": {programNLM, 4, 17},
		"NLMv4 FREE_ALL": {programNLM, 4, 23}, "NFSv9 procedure 1": {programNFS, 9, 1},
	} {
		if got := procedureName(p[0], p[1], p[2]); got != want {
			t.Errorf("%v is %q, want %q", p, got, want)
		}
	}
	if operationNames[op4Sequence] != "SEQUENCE" || operationNames[op4Write] != "WRITE" || operationNames[op4Access] != "ACCESS" || len(operationNames) != 59 {
		t.Errorf("%q", operationNames)
	}
}
