package cases

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"

	"urnic/rnic"
	"urnic/stag"
)

// startSilentRping runs a server that does what rdma-core's rping -s -P -S size does, and
// returns its address. Its messages say nothing, and it leaves it to the RNIC to find that
// the client's data don't fit.
func startSilentRping(t *testing.T, size int) string {
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
			wg.Go(func() { serveSilently(ctx, pd, req, size) })
		}
	})
	return l.Addr().String()
}

// serveSilently does one round, and then waits. Why it ends, the tester tells.
func serveSilently(ctx context.Context, pd *rnic.PD, req *rnic.ConnRequest, size int) {
	defer req.Close()
	cq, err := pd.Device().CreateCQ(rnic.CQAttr{Entries: 16})
	if err != nil {
		return
	}
	defer cq.Close()
	qp, err := pd.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: 8, MaxRecvWR: 8})
	if err != nil {
		return
	}
	defer qp.Close()
	const messageLen = 16
	buffer, messages := make([]byte, size), make([]byte, 2*messageLen)
	open, err := pd.Register(buffer, rnic.LocalWrite|rnic.RemoteRead|rnic.RemoteWrite)
	if err != nil {
		return
	}
	defer open.Close()
	own, err := pd.Register(messages, rnic.LocalWrite)
	if err != nil {
		return
	}
	defer own.Close()
	recv := rnic.RecvWR{SGL: []rnic.SGE{own.SGE(messageLen, messageLen)}}
	wait := func() bool {
		var wcs [1]rnic.WC
		_, err := cq.Wait(ctx, wcs[:])
		return err == nil && wcs[0].Err() == nil
	}
	if qp.PostRecv(recv) != nil || req.Accept(ctx, qp, rnic.ConnParam{IRD: 1, ORD: 1}) != nil || !wait() {
		return
	}
	ping := messages[messageLen:]
	n := binary.BigEndian.Uint32(ping[12:])
	remote := rnic.Remote{TO: binary.BigEndian.Uint64(ping), STag: stag.STag(binary.BigEndian.Uint32(ping[8:]))}
	read := rnic.SendWR{Op: rnic.OpRead, Remote: remote, SGL: []rnic.SGE{open.SGE(0, int(n))}}
	if qp.PostRecv(recv) != nil || qp.PostSend(read) != nil || !wait() {
		return
	}
	if qp.PostSend(rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{own.SGE(0, messageLen)}}) != nil || !wait() {
		return
	}
	wait()
}
