package rping

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"urnic/internal/host/plural"
	"urnic/rnic"
)

// Server answers the rounds of a client on a connected queue pair until the
// client disconnects, which is no error.
func (e *End) Server(ctx context.Context) error {
	for n := 0; ; n++ {
		first, err := e.recv(ctx)
		if err != nil {
			if e.closed(err) {
				return nil
			}
			return fmt.Errorf("round %d: %w", n, e.why(err))
		}
		if err := e.answer(ctx, first); err != nil {
			return fmt.Errorf("round %d: %w", n, e.why(err))
		}
		if e.options.Round != nil {
			e.options.Round(n, int(first.size))
		}
	}
}

// closed reports whether a receive failed because the client has disconnected.
func (e *End) closed(err error) bool {
	var c *rnic.CompletionError
	return errors.As(err, &c) && c.WC.Status == rnic.StatusFlushed && e.QP.Err() == nil
}

func (e *End) answer(ctx context.Context, ping advert) error {
	if int64(ping.size) > int64(len(e.ping)) {
		return fmt.Errorf("rping: the client's data have %s, this side's buffer %d: start the server with a larger size", plural.Count(ping.size, "byte"), len(e.ping))
	}
	if err := e.do(ctx, rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{e.pingMR.SGE(0, int(ping.size))}, Remote: ping.remote}); err != nil {
		return err
	}
	if e.options.Show != nil {
		e.options.Show("server ping data: " + text(e.ping[:ping.size]))
	}
	// Clients don't look at what the server sends, only that it does. It has the buffer
	// that is open to the peer all the same: testers of memory protection want to know it.
	if err := e.send(ctx, e.pingMR, len(e.ping)); err != nil {
		return err
	}
	sink, err := e.recv(ctx)
	if err != nil {
		return err
	}
	// The data is a text with a zero at its end: that is all that goes back.
	n := int(ping.size)
	if i := bytes.IndexByte(e.ping[:n], 0); i >= 0 {
		n = i + 1
	}
	if n > int(sink.size) {
		return fmt.Errorf("rping: the client's sink has %s, its data have %d", plural.Count(sink.size, "byte"), n)
	}
	if err := e.do(ctx, rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{e.pingMR.SGE(0, n)}, Remote: sink.remote}); err != nil {
		return err
	}
	return e.send(ctx, e.sinkMR, 0)
}
