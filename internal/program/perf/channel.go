package perf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"urnic/rnic"
)

// A channel carries control messages over a queue pair of its own.
type channel struct {
	qp       *rnic.QP
	send     *rnic.CQ
	recv     *rnic.CQ
	in, out  []byte
	inMR     *rnic.MR
	outMR    *rnic.MR
	messages chan *message // closed when no more come
	err      error         // why; to be read when messages is closed
	closers  []func() error
}

// controlDepth is how many control messages may arrive before they are looked
// at. Each side waits for answers, so that there are never more than two.
const controlDepth = 4

func newChannel(dev *rnic.Device) (_ *channel, err error) {
	c := &channel{
		in: make([]byte, controlDepth*maxControl), out: make([]byte, maxControl),
		messages: make(chan *message, controlDepth),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	pd, err := dev.AllocPD()
	if err != nil {
		return nil, err
	}
	c.closers = append(c.closers, pd.Close)
	for _, cq := range []**rnic.CQ{&c.send, &c.recv} {
		if *cq, err = dev.CreateCQ(rnic.CQAttr{Entries: 2 * controlDepth}); err != nil {
			return nil, err
		}
		c.closers = append(c.closers, (*cq).Close)
	}
	if c.inMR, err = pd.Register(c.in, rnic.LocalWrite); err != nil {
		return nil, err
	}
	c.closers = append(c.closers, c.inMR.Close)
	if c.outMR, err = pd.Register(c.out, 0); err != nil {
		return nil, err
	}
	c.closers = append(c.closers, c.outMR.Close)
	c.qp, err = pd.CreateQP(rnic.QPAttr{SendCQ: c.send, RecvCQ: c.recv, MaxSendWR: controlDepth, MaxRecvWR: controlDepth})
	if err != nil {
		return nil, err
	}
	c.closers = append(c.closers, c.qp.Close)
	for i := range controlDepth {
		if err := c.post(i); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// close gives the channel up. Nobody may be in read any more.
func (c *channel) close() error {
	var errs []error
	for _, f := range slices.Backward(c.closers) {
		errs = append(errs, f())
	}
	c.closers = nil
	return errors.Join(errs...)
}

func (c *channel) post(slot int) error {
	return c.qp.PostRecv(rnic.RecvWR{ID: uint64(slot), SGL: []rnic.SGE{c.inMR.SGE(slot*maxControl, maxControl)}})
}

// read takes messages until the connection ends or the context does.
func (c *channel) read(ctx context.Context) {
	defer close(c.messages)
	wcs := make([]rnic.WC, 1)
	for {
		_, err := c.recv.Wait(ctx, wcs)
		if err == nil {
			err = c.why(&wcs[0])
		}
		if err != nil {
			c.err = err
			return
		}
		slot := int(wcs[0].ID)
		m, err := decode(c.in[slot*maxControl:][:wcs[0].ByteLen])
		if err != nil {
			c.err = err
			return
		}
		select {
		case c.messages <- m: // first: it may be the last one, and say why
		case <-ctx.Done():
			c.err = context.Cause(ctx)
			return
		}
		if err := c.post(slot); err != nil {
			c.err = err
			return
		}
	}
}

// errHungUp says that the other side has ended a session.
var errHungUp = errors.New("the other side has hung up")

func (c *channel) why(wc *rnic.WC) error {
	switch {
	case wc.Status == rnic.StatusSuccess:
		return nil
	case c.qp.Err() != nil:
		return fmt.Errorf("%w: %w", errHungUp, c.qp.Err())
	case wc.Status == rnic.StatusFlushed:
		return errHungUp
	}
	return wc.Err()
}

// say sends a message.
func (c *channel) say(ctx context.Context, m *message) error {
	b, err := m.encode()
	if err != nil {
		return err
	}
	if len(b) > len(c.out) {
		return fmt.Errorf("a control message of %d bytes can't be sent", len(b))
	}
	copy(c.out, b)
	if err := c.qp.PostSend(rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{c.outMR.SGE(0, len(b))}}); err != nil {
		return err
	}
	var wcs [1]rnic.WC
	if _, err := c.send.Wait(ctx, wcs[:]); err != nil {
		return err
	}
	return c.why(&wcs[0])
}

// hear waits for a message of some type.
func (c *channel) hear(ctx context.Context, want string) (*message, error) {
	select {
	case m, there := <-c.messages:
		switch {
		case !there:
			return nil, c.err
		case m.Type == msgError:
			return nil, fmt.Errorf("the other side says: %s", m.Error)
		case m.Type != want:
			return nil, fmt.Errorf("a %s message came in place of %s: use the same urnic on both sides", m.Type, want)
		}
		return m, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ask sends a message and waits for the answer.
func (c *channel) ask(ctx context.Context, m *message, want string) (*message, error) {
	if err := c.say(ctx, m); err != nil {
		return nil, err
	}
	return c.hear(ctx, want)
}

// orAnswer prefers what the other side has to say of an error, if it does so
// soon.
func (c *channel) orAnswer(err error) error {
	const patience = time.Second
	enough := time.After(patience)
	for {
		select {
		case m, there := <-c.messages:
			if !there {
				return err
			}
			if m.Type == msgError {
				return fmt.Errorf("the other side says: %s", m.Error)
			}
		case <-enough:
			return err
		}
	}
}
