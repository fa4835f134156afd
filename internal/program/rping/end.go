package rping

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"urnic/rnic"
)

// Options says what a round is like.
type Options struct {
	Size     int               // bytes of ping data; 0: DefaultSize. The server takes up to its own Size.
	Count    int               // rounds of a client; 0: until the context ends
	Validate bool              // the client compares what comes back
	Show     func(line string) // gets the ping data of each round as a line, if not nil
	// Round is called after each round with its number, from 0, and the bytes of its
	// ping data, if it is not nil.
	Round func(n, size int)
}

func (o *Options) check() error {
	if o.Size == 0 {
		o.Size = DefaultSize
	}
	if o.Size < MinSize || o.Size > MaxSize {
		return fmt.Errorf("rping: size %d: must be %d to %d", o.Size, MinSize, MaxSize)
	}
	if o.Count < 0 {
		return fmt.Errorf("rping: count %d is negative", o.Count)
	}
	return nil
}

// An End is one end of an rping connection: a queue pair with its memory.
// Make it before the connection, as its receive must be posted by then.
type End struct {
	QP *rnic.QP

	options        Options
	sendCQ, recvCQ *rnic.CQ
	ping, sink     []byte
	message        []byte // ours
	arrived        []byte // the peer's
	pingMR, sinkMR *rnic.MR
	messageMR      *rnic.MR
	arrivedMR      *rnic.MR
	closers        []func() error
}

// The ids of receives and other requests.
const (
	idRecv = iota + 1
	idSend
)

// NewEnd makes an end in a protection domain. Close gives it up.
func NewEnd(pd *rnic.PD, o Options) (_ *End, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	e := &End{options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	for _, cq := range []**rnic.CQ{&e.sendCQ, &e.recvCQ} {
		if *cq, err = pd.Device().CreateCQ(rnic.CQAttr{Entries: 16}); err != nil {
			return nil, err
		}
		e.closers = append(e.closers, (*cq).Close)
	}
	if e.QP, err = pd.CreateQP(rnic.QPAttr{SendCQ: e.sendCQ, RecvCQ: e.recvCQ, MaxSendWR: 8, MaxRecvWR: 8}); err != nil {
		return nil, err
	}
	e.closers = append(e.closers, e.QP.Close)
	// The rights are those that rdma-core's rping gives, more than it needs: testers
	// of memory protection count on them.
	const open = rnic.LocalWrite | rnic.RemoteRead | rnic.RemoteWrite
	for _, m := range []struct {
		mem    *[]byte
		mr     **rnic.MR
		size   int
		access rnic.Access
	}{
		{&e.ping, &e.pingMR, o.Size, open},
		{&e.sink, &e.sinkMR, o.Size, open},
		{&e.message, &e.messageMR, advertLen, 0},
		{&e.arrived, &e.arrivedMR, advertLen, rnic.LocalWrite},
	} {
		*m.mem = make([]byte, m.size)
		if *m.mr, err = pd.Register(*m.mem, m.access); err != nil {
			return nil, err
		}
		e.closers = append(e.closers, (*m.mr).Close)
	}
	return e, e.postRecv()
}

// Close gives up all that the end has.
func (e *End) Close() error {
	var errs []error
	for _, c := range slices.Backward(e.closers) {
		errs = append(errs, c())
	}
	e.closers = nil
	return errors.Join(errs...)
}

func (e *End) postRecv() error {
	return e.QP.PostRecv(rnic.RecvWR{ID: idRecv, SGL: []rnic.SGE{e.arrivedMR.SGE(0, advertLen)}})
}

// recv waits for the peer's next message, and posts the receive for the one
// after it.
func (e *End) recv(ctx context.Context) (advert, error) {
	wc, err := wait(ctx, e.recvCQ)
	if err != nil {
		return advert{}, err
	}
	a, err := parseAdvert(e.arrived[:min(int(wc.ByteLen), advertLen)])
	if err != nil {
		return advert{}, err
	}
	return a, e.postRecv()
}

// do posts a request and waits for its completion.
func (e *End) do(ctx context.Context, wr rnic.SendWR) error {
	wr.ID = idSend
	if err := e.QP.PostSend(wr); err != nil {
		return err
	}
	_, err := wait(ctx, e.sendCQ)
	return err
}

// send sends an advertisement of n bytes of a region.
func (e *End) send(ctx context.Context, mr *rnic.MR, n int) error {
	advert{mr.Remote(0), uint32(n)}.append(e.message[:0])
	return e.do(ctx, rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{e.messageMR.SGE(0, advertLen)}})
}

func wait(ctx context.Context, cq *rnic.CQ) (rnic.WC, error) {
	var wcs [1]rnic.WC
	if _, err := cq.Wait(ctx, wcs[:]); err != nil {
		return rnic.WC{}, err
	}
	return wcs[0], wcs[0].Err()
}
