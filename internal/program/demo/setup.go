package demo

import (
	"context"
	"errors"
	"fmt"

	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
)

// talk connects anew under another configuration of MPA, has both sides send,
// and parts.
func (d *demo) talk(ctx context.Context, cfg mpa.Config, check func(p mpa.Params) bool) error {
	if err := d.link(ctx, rnic.QPAttr{}, rnic.ConnParam{MPA: &cfg}, rnic.ConnParam{MPA: &cfg}); err != nil {
		return err
	}
	if p, _ := d.a.qp.Params(); !check(p) {
		return fmt.Errorf("settled %+v", p)
	}
	if _, err := d.sendTo(ctx, "Send", 2000, rnic.SendWR{Op: rnic.OpSend}); err != nil {
		return err
	}
	if err := d.sendBack(ctx, 2000); err != nil {
		return err
	}
	return d.part(ctx)
}

// sendBack sends data from B to A.
func (d *demo) sendBack(ctx context.Context, n int) error {
	d.a, d.b = d.b, d.a
	defer func() { d.a, d.b = d.b, d.a }()
	_, err := d.sendTo(ctx, "Send back", n, rnic.SendWR{Op: rnic.OpSend})
	return err
}

func peerToPeer(ctx context.Context, d *demo) error {
	for _, rtr := range []mpa.RTR{mpa.RTRSend, mpa.RTRWrite, mpa.RTRRead} {
		cfg := mpa.Config{PeerToPeer: true, RTR: rtr}
		if err := d.link(ctx, rnic.QPAttr{}, rnic.ConnParam{MPA: &cfg}, rnic.ConnParam{MPA: &cfg}); err != nil {
			return err
		}
		if p, _ := d.a.qp.Params(); p.RTR != rtr {
			return fmt.Errorf("the indication is %v, not %v", p.RTR, rtr)
		}
		if err := d.sendBack(ctx, 100); err != nil { // the Responder may speak first
			return err
		}
		if err := d.part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func markers(ctx context.Context, d *demo) error {
	return d.talk(ctx, mpa.Config{Markers: true}, func(p mpa.Params) bool { return p.SendMarkers && p.RecvMarkers })
}

func revision1(ctx context.Context, d *demo) error {
	return d.talk(ctx, mpa.Config{Revision: mpa.Revision1, CRC: mpa.CRCOff}, func(p mpa.Params) bool { return p.Revision == 1 && !p.Enhanced && !p.CRC })
}

func shared(ctx context.Context, d *demo) error {
	srq, err := d.b.pd.CreateSRQ(rnic.SRQAttr{MaxWR: 8, Limit: 2})
	if err != nil {
		return err
	}
	if err := d.link(ctx, rnic.QPAttr{SRQ: srq}, rnic.ConnParam{}, rnic.ConnParam{}); err != nil {
		return err
	}
	buf, mr, err := d.b.memory(300, rnic.LocalWrite)
	if err != nil {
		return err
	}
	data, dataMR, err := d.a.data(300, 8)
	if err != nil {
		return err
	}
	for i := range 3 {
		if err := srq.PostRecv(rnic.RecvWR{ID: uint64(i), SGL: []rnic.SGE{mr.SGE(i*100, 100)}}); err != nil {
			return err
		}
	}
	for i := range 3 {
		if _, err := d.a.do(ctx, rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{dataMR.SGE(i*100, 100)}}); err != nil {
			return err
		}
		if _, err := d.b.want(ctx, d.b.recvCQ, uint64(i)); err != nil {
			return err
		}
	}
	e, err := d.b.WaitEvent(ctx)
	for err == nil && e.Type != rnic.EventSRQLimit { // others are of connections before
		e, err = d.b.WaitEvent(ctx)
	}
	return errors.Join(err, d.compare("Sends into a shared receive queue", buf, data), d.part(ctx), srq.Close())
}

func reject(ctx context.Context, d *demo) (err error) {
	if d.a.end, err = d.a.newEnd(rnic.QPAttr{}); err != nil {
		return err
	}
	l, err := d.b.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			err = r.Reject(ctx, []byte("not today"))
		}
		done <- err
	}()
	err = d.a.qp.Connect(ctx, l.Addr().String(), rnic.ConnParam{})
	var rejected *mpa.RejectedError
	if !errors.As(err, &rejected) {
		return fmt.Errorf("connect: %w; it should have been rejected", err)
	}
	return errors.Join(<-done, l.Close(), d.compare("reason for the rejection", rejected.PrivateData, []byte("not today")), d.a.drop())
}

func terminate(ctx context.Context, d *demo) error {
	if err := d.link(ctx, rnic.QPAttr{}, rnic.ConnParam{}, rnic.ConnParam{}); err != nil {
		return err
	}
	_, mr, err := d.a.data(100, 9)
	if err != nil {
		return err
	}
	_, sink, err := d.b.memory(50, rnic.LocalWrite|rnic.RemoteWrite)
	if err != nil {
		return err
	}
	_, recvID, err := d.b.recv(10)
	if err != nil {
		return err
	}
	// 100 bytes into a region of 50.
	if _, err := d.a.post(rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{mr.SGE(0, 100)}, Remote: sink.Remote(0)}); err != nil {
		return err
	}
	e, err := d.a.WaitEvent(ctx)
	for err == nil && e.Type != rnic.EventTerminateReceived {
		e, err = d.a.WaitEvent(ctx)
	}
	if err != nil {
		return err
	}
	const want = rdmap.TermCode(0x1101) // DDP: base or bounds violation
	if e.Terminate.Code != want {
		return fmt.Errorf("the Terminate at A says %v, not %v", e.Terminate.Code, want)
	}
	var wcs [1]rnic.WC
	if _, err := d.b.recvCQ.Wait(ctx, wcs[:]); err != nil {
		return err
	}
	if wcs[0].ID != recvID || wcs[0].Status != rnic.StatusFlushed {
		return fmt.Errorf("the receive of B ended with %v", wcs[0].Status)
	}
	return errors.Join(d.a.drop(), d.b.drop())
}
