package cases

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"

	"urnic/conformance/mutants/rpcpeer"
	"urnic/conformance/rpc"
	"urnic/rnic"
)

// A script is a server of RPC-over-RDMA on verbs that does as much as the cases ask
// for, by the tester's own codec, and one thing wrong if it is told so: the cases are
// tried on it.
type script struct {
	fault string // one of those of TestFaultsOfAServerAreFound
	pd    *rnic.PD
	mu    sync.Mutex
	files map[string][]byte // by their handles, which are their names
}

const (
	scriptCredits = 32
	scratchLen    = 1 << 20
	recvLen       = 4096
)

// scriptRoot is the file handle of its one directory.
var scriptRoot = []byte(rpcpeer.Root)

// startScript runs a script, and returns its address.
func startScript(t *testing.T, fault string) string {
	t.Helper()
	dev, err := rnic.Open(rnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	pd, err := dev.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	l, err := dev.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &script{fault: fault, pd: pd, files: map[string][]byte{}}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		dev.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			req, err := l.Accept(ctx)
			if err != nil {
				return
			}
			wg.Go(func() { _ = s.serve(ctx, req) }) // how it fares, the tester tells
		}
	})
	return l.Addr().String()
}

// A scripted is one connection.
type scripted struct {
	*script
	ctx            context.Context
	qp             *rnic.QP
	sendCQ, recvCQ *rnic.CQ
	in, scratch    []byte // the receives, and what is sent, read and written from
	inMR, mr       *rnic.MR
	theirs         *rpc.Private
}

func (s *script) serve(ctx context.Context, req *rnic.ConnRequest) (err error) {
	c := &scripted{script: s, ctx: ctx, theirs: rpc.FindPrivate(req.PrivateData())}
	if s.fault == "threshold-of-8192" {
		offer := rpc.Offer(8192, rpc.FlagR)
		c.theirs = &offer
	}
	var closers []func() error
	defer func() {
		for i := range closers {
			err = errors.Join(err, closers[len(closers)-1-i]())
		}
	}()
	for _, cq := range []**rnic.CQ{&c.sendCQ, &c.recvCQ} {
		if *cq, err = s.pd.Device().CreateCQ(rnic.CQAttr{Entries: 128}); err != nil {
			return err
		}
		closers = append(closers, (*cq).Close)
	}
	if c.qp, err = s.pd.CreateQP(rnic.QPAttr{SendCQ: c.sendCQ, RecvCQ: c.recvCQ, MaxSendWR: 64, MaxRecvWR: 64}); err != nil {
		return err
	}
	closers = append(closers, c.qp.Close)
	c.in, c.scratch = make([]byte, recvLen*(scriptCredits+1)), make([]byte, scratchLen)
	access := rnic.LocalWrite
	if s.fault == "sink-open-to-all" {
		access |= rnic.RemoteRead | rnic.RemoteWrite
	}
	for _, m := range []struct {
		mr     **rnic.MR
		mem    []byte
		access rnic.Access
	}{{&c.inMR, c.in, rnic.LocalWrite}, {&c.mr, c.scratch, access}} {
		if *m.mr, err = s.pd.Register(m.mem, m.access); err != nil {
			return err
		}
		closers = append(closers, (*m.mr).Close)
	}
	for i := range scriptCredits + 1 {
		if err := c.recv(uint64(i)); err != nil {
			return err
		}
	}
	private := rpc.Offer(rpc.DefaultThreshold, rpc.FlagR)
	if s.fault == "reserved-bits" {
		private.Flags |= 0x80
	}
	if err := req.Accept(ctx, c.qp, rnic.ConnParam{PrivateData: private.Octets()}); err != nil {
		return err
	}
	for {
		var wc [1]rnic.WC
		if _, err := c.recvCQ.Wait(ctx, wc[:]); err != nil {
			return err
		}
		if err := wc[0].Err(); err != nil {
			return err
		}
		at := int(wc[0].ID) * recvLen
		if err := c.handle(append([]byte(nil), c.in[at:at+int(wc[0].ByteLen)]...)); err != nil {
			return err
		}
		if s.fault == "credits-without-receives" {
			continue // so that it does not depend on who is faster
		}
		if err := c.recv(wc[0].ID); err != nil {
			return err
		}
	}
}

func (c *scripted) recv(i uint64) error {
	return c.qp.PostRecv(rnic.RecvWR{ID: i, SGL: []rnic.SGE{c.inMR.SGE(int(i)*recvLen, recvLen)}})
}

func (c *scripted) do(wr rnic.SendWR) error {
	if err := c.qp.PostSend(wr); err != nil {
		return err
	}
	var wc [1]rnic.WC
	if _, err := c.sendCQ.Wait(c.ctx, wc[:]); err != nil {
		return err
	}
	return wc[0].Err()
}

// send sends a header with a Payload stream; it invalidates an STag unless that is 0.
func (c *scripted) send(h rpc.Header, payload []byte, invalidate uint32) error {
	n := copy(c.scratch, append(h.Octets(), payload...))
	wr := rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{c.mr.SGE(0, n)}}
	if invalidate != 0 {
		wr.Op, wr.Invalidate = rnic.OpSendInvalidate, stagOf(invalidate)
	}
	return c.do(wr)
}

// pull reads segments, one behind the other.
func (c *scripted) pull(segments []rpc.ReadSegment) ([]byte, error) {
	n := 0
	for _, s := range segments {
		err := c.do(rnic.SendWR{
			Op: rnic.OpRead, SGL: []rnic.SGE{c.mr.SGE(n, int(s.Length))},
			Remote: rnic.Remote{STag: stagOf(s.Handle), TO: s.Offset},
		})
		if err != nil {
			return nil, err
		}
		n += int(s.Length)
	}
	return append([]byte(nil), c.scratch[:n]...), nil
}

// push writes data into a chunk, and returns it as it is told back. Data that are too
// long are not written.
func (c *scripted) push(chunk rpc.Chunk, data []byte) (rpc.Chunk, error) {
	out := make(rpc.Chunk, len(chunk))
	for i, s := range chunk {
		n := min(int(s.Length), len(data))
		out[i] = s
		out[i].Length = uint32(n)
		if n == 0 {
			continue
		}
		copy(c.scratch, data[:n])
		wr := rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{c.mr.SGE(0, n)}, Remote: rnic.Remote{STag: stagOf(s.Handle), TO: s.Offset}}
		if err := c.do(wr); err != nil {
			return nil, err
		}
		data = data[n:]
	}
	return out, nil
}

func (c *scripted) credits() uint32 {
	switch c.fault {
	case "no-credits":
		return 0
	case "credits-without-receives":
		return 4 * scriptCredits
	}
	return scriptCredits
}

func (c *scripted) fail(h rpc.Header, err uint32) error {
	e := rpc.Header{XID: h.XID, Version: h.Version, Credits: c.credits(), Proc: rpc.Error, Err: err, Low: 1, High: 1}
	switch c.fault {
	case "error-with-version-1":
		e.Version = 1
	case "error-without-xid":
		e.XID = 0
	case "error-chunk-always":
		e.Err = rpc.ErrChunk
	case "range-from-2":
		e.Low, e.High = 2, 2
	}
	return c.send(e, nil, 0)
}

func (c *scripted) handle(b []byte) error {
	if len(b) < rpc.MinHeader {
		if c.fault == "answers-short-messages" {
			return c.fail(rpc.Header{Version: 1}, rpc.ErrChunk)
		}
		return nil
	}
	h, payload, err := rpc.ParseHeader(b)
	switch {
	case h.Version != rpc.Version && c.fault != "any-version":
		return c.fail(h, rpc.ErrVers)
	case h.Proc == rpc.Error && c.fault == "answers-errors", h.Proc == rpc.Done && c.fault == "answers-done":
		return c.fail(h, rpc.ErrChunk)
	case h.Proc == rpc.Error, h.Proc == rpc.Done:
		return nil
	case err != nil, h.Proc == rpc.MsgP, h.Proc == rpc.NoMsg && len(h.Reads) == 0:
		return c.fail(h, rpc.ErrChunk)
	}
	message, position, ok, err := c.assemble(h, payload)
	if err != nil {
		return err
	}
	if !ok || len(message) < 4 || binary.BigEndian.Uint32(message) != h.XID {
		return c.fail(h, rpc.ErrChunk)
	}
	call, err := rpc.ParseCall(message)
	if err != nil {
		return c.fail(h, rpc.ErrChunk)
	}
	// What is eligible of NFS version 3's arguments, here: the data of WRITE, which are
	// what is last.
	if position >= 0 && call.Procedure != rpc.Write && c.fault != "all-is-eligible" {
		return c.fail(h, rpc.ErrChunk)
	}
	return c.answer(h, call)
}

// assemble returns the unreduced Payload stream, and the position of its chunk, or -1.
func (c *scripted) assemble(h rpc.Header, payload []byte) (message []byte, position int, ok bool, err error) {
	zero, rest := h.Reads, []rpc.ReadSegment(nil)
	for i, s := range h.Reads {
		if s.Position != 0 {
			zero, rest = h.Reads[:i], h.Reads[i:]
			break
		}
	}
	message = payload
	if h.Proc == rpc.NoMsg {
		if message, err = c.pull(zero); err != nil {
			return nil, 0, false, err
		}
	}
	if len(rest) == 0 {
		return message, -1, true, nil
	}
	at := int(rest[0].Position)
	if at%4 != 0 || at > len(message) {
		return nil, 0, false, nil
	}
	data, err := c.pull(rest)
	if err != nil {
		return nil, 0, false, err
	}
	data = append(data, make([]byte, rpc.Roundup(len(data)))...)
	return append(append(append([]byte(nil), message[:at]...), data...), message[at:]...), at, true, nil
}

// answer carries a call out and sends the reply.
func (c *scripted) answer(h rpc.Header, call rpc.Call) error {
	head, data, hasData := c.nfs(call)
	reply := rpc.Header{XID: h.XID, Version: rpc.Version, Credits: c.credits(), Proc: rpc.Msg}
	var err error
	moved := false
	for i, w := range h.Writes {
		var n []byte
		if i == 0 && hasData && len(w) > 0 {
			n, moved = data, w.Len() >= len(data)
			if !moved {
				return c.fail(h, rpc.ErrChunk)
			}
			if c.fault == "roundup-in-chunk" {
				n = append(slices.Clip(n), make([]byte, rpc.Roundup(len(n)))...)
			}
		}
		chunk, err := c.push(w, n)
		if err != nil {
			return err
		}
		if c.fault == "chunk-lengths-unchanged" {
			chunk = w
		}
		reply.Writes = append(reply.Writes, chunk)
	}
	if c.fault == "no-write-list-back" {
		reply.Writes = nil
	}
	if hasData && (!moved || c.fault == "data-inline-too") {
		head = append(head, data...)
		head = append(head, make([]byte, rpc.Roundup(len(data)))...)
	} else if hasData && c.fault == "roundup-in-stream" {
		head = append(head, make([]byte, rpc.Roundup(len(data)))...)
	}
	message := rpc.Reply{XID: call.XID, Results: head}
	if head == nil {
		message.Status = rpc.GarbageArgs
	}
	stream := message.Octets()
	if h.Reply != nil {
		reply.Reply, _ = c.push(h.Reply, nil)
	}
	if len(reply.Octets())+len(stream) > c.theirs.ReceiveSize() {
		if h.Reply.Len() < len(stream) {
			return c.fail(h, rpc.ErrChunk)
		}
		if reply.Reply, err = c.push(h.Reply, stream); err != nil {
			return err
		}
		stream, reply.Proc = nil, rpc.NoMsg
	}
	if c.fault == "no-reply-chunk-back" && reply.Proc == rpc.Msg {
		reply.Reply = nil
	}
	if c.fault == "read-list-back" {
		reply.Reads = h.Reads
	}
	return c.send(reply, stream, c.invalidate(h))
}

// invalidate returns the STag that the reply to a call invalidates, or 0.
func (c *scripted) invalidate(h rpc.Header) uint32 {
	if !c.theirs.Invalidates() && c.fault != "always-invalidates" {
		return 0
	}
	switch {
	case c.fault == "invalidates-any":
		return 0x77777701
	case len(h.Writes) > 0 && len(h.Writes[0]) > 0:
		return h.Writes[0][0].Handle
	case len(h.Reply) > 0:
		return h.Reply[0].Handle
	case len(h.Reads) > 0:
		return h.Reads[0].Handle
	}
	return 0
}
