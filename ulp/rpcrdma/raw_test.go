package rpcrdma_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"urnic/rnic"
	"urnic/stag"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

const rawReceives = 128

// A raw peer speaks to a connection by verbs, and says what a test wants.
type raw struct {
	t       testing.TB
	dev     *rnic.Device
	pd      *rnic.PD
	cq      *rnic.CQ
	qp      *rnic.QP
	mem     []byte
	mr      *rnic.MR
	wcs     []rnic.WC // receives that nobody has asked for yet
	private []byte    // of the other side
	sent    uint64    // messages
}

// newRaw makes the objects of a peer, with receives of 4,096 bytes.
func newRaw(t testing.TB) *raw {
	t.Helper()
	r := &raw{t: t, dev: open(t, "raw"), mem: make([]byte, 4096*rawReceives)}
	var err error
	must := func() {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	r.pd, err = r.dev.AllocPD()
	must()
	r.cq, err = r.dev.CreateCQ(rnic.CQAttr{Entries: 4096})
	must()
	r.qp, err = r.pd.CreateQP(rnic.QPAttr{SendCQ: r.cq, RecvCQ: r.cq, MaxSendWR: 1024, MaxRecvWR: rawReceives, MaxInline: 1024})
	must()
	r.mr, err = r.pd.Register(r.mem, rnic.LocalWrite)
	must()
	for i := range rawReceives {
		r.post(uint64(i + 1))
	}
	return r
}

func (r *raw) post(id uint64) {
	r.t.Helper()
	if err := r.qp.PostRecv(rnic.RecvWR{ID: id, SGL: []rnic.SGE{r.mr.SGE(4096*int(id-1), 4096)}}); err != nil {
		r.t.Fatal(err)
	}
}

// default private data of a raw peer: 4,096 bytes both ways, without invalidation.
var rawPrivate = rpcrdma.Private{Send: 4096, Receive: 4096}.Append(nil)

// rawDial connects to a server.
func rawDial(t testing.TB, address string, private []byte) *raw {
	t.Helper()
	r := newRaw(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.qp.Connect(ctx, address, rnic.ConnParam{PrivateData: private}); err != nil {
		t.Fatal(err)
	}
	p, _ := r.qp.Params()
	r.private = p.PrivateData
	return r
}

// rawServe dials a raw peer, and returns both sides.
func rawServe(t testing.TB, private []byte, cfg rpcrdma.Config) (*raw, *rpcrdma.Conn) {
	t.Helper()
	r := newRaw(t)
	l := listen(t, r.dev)
	accepted := make(chan error, 1)
	go func() {
		request, err := l.Accept(context.Background())
		if err == nil {
			r.private = request.PrivateData()
			err = request.Accept(context.Background(), r.qp, rnic.ConnParam{PrivateData: private})
		}
		accepted <- err
	}()
	c := dial(t, l.Addr().String(), cfg)
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	return r, c
}

// send sends a message, and waits until it is sent.
func (r *raw) send(p []byte) { r.sendInvalidate(p, 0) }

func (r *raw) sendInvalidate(p []byte, s stag.STag) {
	r.t.Helper()
	op := rnic.OpSend
	if s != 0 {
		op = rnic.OpSendInvalidate
	}
	r.sent++
	mr := r.register(append([]byte{0}, p...), 0)
	r.do(rnic.SendWR{Op: op, SGL: []rnic.SGE{mr.SGE(1, len(p))}, Invalidate: s})
}

// do carries out one request, and returns its completion.
func (r *raw) do(wr rnic.SendWR) rnic.WC {
	r.t.Helper()
	wr.ID = 1 << 40
	if err := r.qp.PostSend(wr); err != nil {
		r.t.Fatal(err)
	}
	for {
		wc := r.next()
		if wc.ID == wr.ID {
			return wc
		}
		r.wcs = append(r.wcs, wc)
	}
}

func (r *raw) next() rnic.WC {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var wcs [1]rnic.WC
	if _, err := r.cq.Wait(ctx, wcs[:]); err != nil {
		r.t.Fatal(err)
	}
	return wcs[0]
}

// recv receives a message, and posts the receive again.
func (r *raw) recv() (h rpcrdma.Header, stream []byte, wc rnic.WC) {
	r.t.Helper()
	if len(r.wcs) > 0 {
		wc, r.wcs = r.wcs[0], r.wcs[1:]
	} else {
		wc = r.next()
	}
	if err := wc.Err(); err != nil {
		r.t.Fatal(err, r.qp.Err())
	}
	p := append([]byte(nil), r.mem[4096*int(wc.ID-1):][:wc.ByteLen]...)
	r.post(wc.ID)
	stream, err := h.Decode(p, rpcrdma.Limits{})
	if err != nil {
		r.t.Fatal(err)
	}
	return h, stream, wc
}

// silent fails if there is a message.
func (r *raw) silent() {
	r.t.Helper()
	var wcs [1]rnic.WC
	if len(r.wcs) > 0 || r.cq.Poll(wcs[:]) > 0 {
		r.t.Fatal("there is a message:", r.wcs, wcs)
	}
}

func (r *raw) register(p []byte, access rnic.Access) *rnic.MR {
	r.t.Helper()
	mr, err := r.pd.Register(p, access)
	if err != nil {
		r.t.Fatal(err)
	}
	return mr
}

// readable and writable open memory, and return segments of such lengths that cover it.
func (r *raw) readable(p []byte, lengths ...int) []rpcrdma.Segment {
	return segments(r.register(p, rnic.RemoteRead|rnic.RemoteInvalidate), len(p), lengths)
}

func (r *raw) writable(p []byte, lengths ...int) []rpcrdma.Segment {
	return segments(r.register(p, rnic.LocalWrite|rnic.RemoteWrite|rnic.RemoteInvalidate), len(p), lengths)
}

func segments(mr *rnic.MR, n int, lengths []int) (s []rpcrdma.Segment) {
	if len(lengths) == 0 {
		lengths = []int{n}
	}
	at := 0
	for _, n := range lengths {
		s = append(s, rpcrdma.Segment{Handle: mr.STag(), Length: uint32(n), Offset: mr.Base() + uint64(at)})
		at += n
	}
	return s
}

// at makes a Read chunk of segments.
func at(position int, s ...rpcrdma.Segment) (r []rpcrdma.ReadSegment) {
	for _, s := range s {
		r = append(r, rpcrdma.ReadSegment{Position: uint32(position), Segment: s})
	}
	return r
}

// ended waits until the connection has ended, and returns why.
func (r *raw) ended() error {
	r.t.Helper()
	select {
	case <-r.qp.Done():
		return r.qp.Err()
	case <-time.After(time.Minute):
		r.t.Fatal("the connection lives on")
		return nil
	}
}

// header returns a header of a call or a reply.
func header(xid uint32, change func(h *rpcrdma.Header)) rpcrdma.Header {
	h := rpcrdma.Header{XID: xid, Version: rpcrdma.Version, Credits: 8}
	if change != nil {
		change(&h)
	}
	return h
}

func octets(h rpcrdma.Header) []byte { return h.Append(nil) }

// callMessage returns a call of the test program behind a header.
func callMessage(h rpcrdma.Header, proc uint32, args func(e *xdr.Encoder)) []byte {
	var e xdr.Encoder
	_ = (&oncrpc.Call{XID: h.XID, Program: 0x20000000, Version: 1, Procedure: proc}).Encode(&e) // without a credential nothing can be too long
	if args != nil {
		args(&e)
	}
	return e.AppendTo(h.Append(nil))
}

// callLen is how long the header of a call of the test program is.
const callLen = 40

// replyMessage returns a reply without results behind a header.
func replyMessage(h rpcrdma.Header) []byte {
	return append(h.Append(nil), replyStream(h.XID)...)
}

func replyStream(xid uint32) []byte {
	var e xdr.Encoder
	_ = (&oncrpc.Reply{XID: xid}).Encode(&e) // without a credential nothing can be too long
	return e.AppendTo(nil)
}

// null makes a null call and wants its reply.
func (r *raw) null() rpcrdma.Header {
	r.t.Helper()
	xid := xids.Add(1)
	r.send(callMessage(header(xid, nil), procNull, nil))
	h, stream, _ := r.recv()
	if h.XID != xid || h.Proc != rpcrdma.Msg || len(stream) != headerLen || binary.BigEndian.Uint32(stream) != xid {
		r.t.Fatalf("the reply to a null call is %+v %x", h, stream)
	}
	return h
}
