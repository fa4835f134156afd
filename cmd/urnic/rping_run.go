package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/schollz/progressbar/v3"

	"urnic/internal/host/printable"
	"urnic/internal/program/rping"
	"urnic/rnic"
)

// runRping is either side, with flags that have been checked.
func runRping(ctx context.Context, o rpingOptions, stdout, stderr io.Writer) (err error) {
	if o.debug {
		o.trace, o.logLevel = true, "debug"
	}
	var network rnic.Network
	if o.source != "" {
		network = boundNetwork{net.ParseIP(o.source)}
	}
	dev, err := o.open(network, stdout, stderr)
	if err != nil {
		return err
	}
	r := &rpingRun{rpingOptions: o, out: &lines{w: stdout}, err: &lines{w: stderr}, stderr: stderr, endless: o.server}
	defer func() { err = r.ended(ctx, errors.Join(err, dev.Close())) }()
	if r.pd, err = dev.AllocPD(); err != nil {
		return err
	}
	if o.pcap == "-" {
		r.out = r.err
	}
	if o.client {
		err = r.client(ctx)
	} else {
		err = r.server(ctx)
	}
	return errors.Join(err, r.out.failed)
}

// ended returns the error of a run, which the user may have ended as it was meant to be.
func (r *rpingRun) ended(ctx context.Context, err error) error {
	if r.endless {
		return served(ctx, err)
	}
	return err
}

// lines writes lines of several connections to one writer. What a terminal can't show is
// escaped.
type lines struct {
	mu     sync.Mutex
	w      io.Writer
	failed error // the first error of w
}

func (l *lines) print(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := fmt.Fprintln(l.w, printable.Escape(s)); err != nil && l.failed == nil {
		l.failed = err
	}
}

// A rpingRun is a run of urnic rping on an open device.
type rpingRun struct {
	rpingOptions
	pd       *rnic.PD
	out, err *lines
	stderr   io.Writer // for the progress alone
	endless  bool      // it ends when the user ends it: a server, or the rounds of a client without -C
}

// end makes an end of a connection, of which the report is to tell.
func (r *rpingRun) end(report *rpingReport) (*rping.End, error) {
	o := rping.Options{Size: r.size, Count: r.count, Validate: r.validate, Round: report.round}
	if r.verbose {
		o.Show = r.out.print
	}
	return rping.NewEnd(r.pd, o)
}

func (r *rpingRun) client(ctx context.Context) (err error) {
	report := &rpingReport{Role: "client", Peer: r.endpoint(), Size: r.size}
	e, err := r.end(report)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, e.Close())
		r.tell(ctx, report, e.QP, err)
	}()
	dial, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if err := e.QP.Connect(dial, r.endpoint(), rnic.ConnParam{IRD: 1, ORD: 1}); err != nil {
		return adviseDial(err, r.endpoint(), r.source, r.timeout)
	}
	r.endless = r.count == 0
	report.begin(r.progress())
	err = e.Client(ctx)
	report.end()
	if ctx.Err() != nil && !r.json {
		r.out.print("--- " + r.endpoint() + " rping statistics ---")
		r.out.print(report.sum())
	}
	return errors.Join(err, disconnect(ctx, e.QP))
}

// progress is that of a client's rounds. Where other lines may come, it would be
// in their way.
func (r *rpingRun) progress() *progress {
	if r.verbose || r.json || r.trace {
		return nil
	}
	return newProgress(r.stderr, int64(r.count), progressbar.OptionSetDescription("rping"),
		progressbar.OptionShowIts(), progressbar.OptionSetItsString("rounds"))
}

// disconnect closes a connection gracefully, if it is still there.
func disconnect(ctx context.Context, qp *rnic.QP) error {
	if qp.State() != rnic.RTS {
		return nil
	}
	return qp.Disconnect(context.WithoutCancel(ctx)) // the device bounds the time
}

func (r *rpingRun) server(ctx context.Context) (err error) {
	l, err := r.pd.Device().Listen(ctx, r.endpoint())
	if err != nil {
		return adviseListen(err, r.endpoint())
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		c, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		if !r.persistent {
			return unlessEnded(ctx, r.serve(ctx, c))
		}
		wg.Go(func() {
			if err := r.serve(ctx, c); err != nil && ctx.Err() == nil {
				r.err.print(fmt.Sprintf("urnic: client %v: %s", c.RemoteAddr(), text(err)))
			}
		})
	}
}

func (r *rpingRun) serve(ctx context.Context, c *rnic.ConnRequest) (err error) {
	report := &rpingReport{Role: "server", Peer: c.RemoteAddr().String()}
	e, err := r.end(report)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	defer func() {
		err = errors.Join(err, e.Close())
		r.tell(ctx, report, e.QP, err)
	}()
	if err := c.Accept(ctx, e.QP, rnic.ConnParam{IRD: 1, ORD: 1}); err != nil {
		return err
	}
	report.begin(nil)
	err = e.Server(ctx)
	report.end()
	return err
}
