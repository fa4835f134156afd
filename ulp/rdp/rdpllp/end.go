package rdpllp

import (
	"context"
	"errors"
	"io"
	"time"

	"urnic/internal/host/crc32c"
	"urnic/rnic"
	"urnic/ulp/rdp/machine"
	"urnic/ulp/rdp/rdpllp/llpwire"
)

// lingering is how long the peer has to accept the end of a connection that was closed.
const lingering = 10 * time.Second

// CloseWrite implements ddp.LLP: the peer is notified how many segments there were. A second call has no effect: what the first
// could not send is sent by a goroutine, beside which nobody may.
func (c *conn) CloseWrite() error {
	c.ends.Lock()
	defer c.ends.Unlock()
	if c.ended.Swap(true) {
		return nil
	}
	b := c.begin(llpwire.Overhead, llpwire.End, c.next)
	c.finish(b, crc32c.Update(0, b))
	done, err := c.Flush(false)
	if err != nil || done {
		return err
	}
	c.closing.Go(func() { // the window is full
		for !done && err == nil {
			done, err = c.Flush(true)
		}
	})
	return nil
}

// Discard implements ddp.LLP. What has ended reception may be a damaged message: it is dropped like all that follow, and
// counts as one of the segments that the peer's end reports. To fail for it would reset the connection, and the Terminate
// that tells the peer of it would be lost. So it would for a program that interrupts the receiver.
func (c *conn) Discard() error {
	damaged := uint64(0)
	for {
		c.drop(&damaged)
		if c.known && c.taken.count()+damaged >= c.total {
			if err := c.peersEnd(); !errors.Is(err, io.EOF) {
				return err
			}
			return nil
		}
		if c.failure != nil {
			return c.failure
		}
		if err := c.Await(); err != nil && !errors.Is(err, rnic.ErrInterrupted) { // nobody else receives from here on
			return err
		}
	}
}

// drop drops the messages that there are, and counts the segments.
func (c *conn) drop(damaged *uint64) {
	if !c.fill() {
		return
	}
	first := c.at
	for ; c.at < len(c.batch); c.at++ {
		k, number, _, err := llpwire.Parse(c.batch[c.at].Data)
		switch {
		case err != nil:
			*damaged++
		case k == llpwire.Segment:
			if order, ok := c.taken.order(number); ok {
				c.taken.add(order)
			}
		case k == llpwire.End && !c.known:
			c.known, c.total = true, c.taken.near(number)
		}
	}
	c.rdp.Free(c.batch[first:c.at]...)
}

// Close implements ddp.LLP: it ends this end's half, if that is still to be done. RDP's own close would drop what is on its way (RFC 908 §3.2.5), so that it waits until
// the peer has accepted all.
func (c *conn) Close() error {
	if c.over.Swap(true) {
		return nil
	}
	defer c.shared.leave()
	ctx, cancel := context.WithTimeout(context.Background(), lingering)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.rdp.Close() }) //nolint:errcheck // it may have ended
	defer stop()
	c.CloseWrite() //nolint:errcheck // the peer may have ended it
	c.closing.Wait()
	c.rdp.Flush(ctx) //nolint:errcheck // the same
	c.rdp.Close()    //nolint:errcheck // the same
	return nil
}

// Abort implements ddp.LLP. It ends a Close that waits.
func (c *conn) Abort() error {
	err := c.rdp.Close()
	if !c.over.Swap(true) {
		c.closing.Wait()
		c.shared.leave()
	}
	if errors.Is(err, machine.ErrNotOpen) || errors.Is(err, machine.ErrClosing) {
		return nil
	}
	return err
}

// Free implements rnic.LLPConn.
func (c *conn) Free() {}
