package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"urnic/internal/host/listen"
	"urnic/ulp/rds/rdsstress"
)

func (o *rdsStressOptions) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	if o.peer == "" {
		defer func() { err = served(ctx, err) }()
	}
	out := &lines{w: stdout}
	if o.pcap == "-" {
		out.w = stderr
	}
	local, err := o.localAddr()
	if err != nil {
		return err
	}
	var c *rdsstress.Control
	if o.peer != "" {
		c, err = o.dial(ctx, local, out)
	} else {
		c, err = o.accept(ctx, local, out)
	}
	if err != nil {
		return errors.Join(err, out.failed)
	}
	v := &rdsStressView{o: o, c: c, out: out}
	result, err := o.stress(ctx, c, v, stdout, stderr)
	if c.Active && o.seconds == 0 && o.requests == 0 || !c.Active {
		err = served(ctx, err)
	} else if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	v.end(ctx, result, err)
	return errors.Join(err, out.failed)
}

// accept waits for the active side.
func (o *rdsStressOptions) accept(ctx context.Context, local netip.Addr, out *lines) (*rdsstress.Control, error) {
	at := ":" + strconv.Itoa(o.control)
	if local.IsValid() {
		at = net.JoinHostPort(local.String(), strconv.Itoa(o.control))
	}
	l, err := listen.TCP(ctx, at)
	if err != nil {
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return nil, advise(err, "another program listens at port %d%s: give another port with -p, to both sides", o.control, errno(err))
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return nil, advise(err, "-r %v: that is no address of this machine: give one of its own%s", local, errno(err))
		}
		return nil, err
	}
	o.say(out, "waiting for incoming connection on %v", l.Addr())
	c, err := rdsstress.Accept(ctx, &rdsAllowed{l, o, out})
	_ = l.Close() // there is one run
	if err != nil {
		return nil, err
	}
	if local.IsValid() {
		c.Local = local
	}
	o.say(out, "accepted connection from %v", c.Peer)
	return c, nil
}

// rdsAllowed is a listener for control connections of peers that are allowed. Others do not end the run that is waited for.
type rdsAllowed struct {
	net.Listener
	o   *rdsStressOptions
	out *lines
}

// Accept implements net.Listener.
func (l *rdsAllowed) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := hostOfAddr(c.RemoteAddr())
		if l.o.allows(from) {
			return c, nil
		}
		_ = c.Close() // nothing was read or written
		l.o.say(l.out, "refused a connection from %v, which --allow does not include", from)
	}
}

// dial connects to the passive side.
func (o *rdsStressOptions) dial(ctx context.Context, local netip.Addr, out *lines) (*rdsstress.Control, error) {
	peer, err := rdsAddress(ctx, o.peer)
	if err != nil {
		return nil, err
	}
	if err := o.checkPeer(peer); err != nil {
		return nil, err
	}
	if local.IsValid() && local.Is4() != peer.Is4() {
		return nil, fmt.Errorf("-r %v: %v can't be reached from it: give two IPv4 addresses or two of IPv6", local, peer)
	}
	if o.showParams {
		for _, line := range o.showing() {
			o.say(out, "%s", line)
		}
	}
	o.say(out, "connecting to %v", net.JoinHostPort(peer.String(), strconv.Itoa(o.control)))
	for tries := 0; ; tries++ {
		dial, cancel := context.WithTimeout(ctx, o.timeout)
		c, err := rdsstress.Dial(dial, local, peer, o.params)
		cancel()
		switch {
		case err == nil:
			return c, nil
		case tries >= o.retries || ctx.Err() != nil || !temporary(err):
			return nil, o.adviseDial(err, local, peer)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// temporary reports whether it may help to dial again.
func temporary(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}

func (o *rdsStressOptions) adviseDial(err error, local, peer netip.Addr) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return advise(err, "nobody listens at port %d of %v%s: start `urnic rds stress` or rds-stress there first, or give the port with -p", o.control, peer, errno(err))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return advise(err, "-r %v: that is no address of this machine: give one of its own%s", local, errno(err))
	case temporary(err):
		return advise(err, "no route to %v%s: check the address and this machine's routes", peer, errno(err))
	}
	return err
}

// stress runs the load over a node.
func (o *rdsStressOptions) stress(ctx context.Context, c *rdsstress.Control, v *rdsStressView, stdout, stderr io.Writer) (result *rdsstress.Result, err error) {
	if err := o.checkPeer(c.Peer); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if c.Params.RDMASize > 0 && o.transport != "iwarp" {
		return nil, errors.Join(errors.New("the active side wants RDMA, which there is not over TCP: give --transport iwarp to both sides"), c.Close())
	}
	node, err := o.openNode(ctx, c.Local, nil, stdout, stderr)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	v.node = node.Node
	run := rdsstress.Options{Requests: o.requests, Timeout: o.timeout, Started: v.begin, Interval: v.interval}
	if o.outliers > 0 {
		run.OutlierTime, run.Outlier = time.Duration(o.outliers)*time.Microsecond, v.outlier
	}
	result, err = c.Run(ctx, node.Node, run)
	return result, errors.Join(err, node.Close())
}

// say prints what a person wants to know.
func (o *rdsStressOptions) say(out *lines, format string, args ...any) {
	if !o.json {
		out.print(fmt.Sprintf(format, args...))
	}
}

// showing is what --show-params shows.
func (o *rdsStressOptions) showing() []string {
	p := &o.params
	rdma := ""
	for _, f := range []struct {
		flag rdsstress.Flag
		name string
	}{{rdsstress.UseOnce, "use_once"}, {rdsstress.UseGetMR, "use_get_mr"}, {rdsstress.Fence, "use_fence"}, {rdsstress.CacheMRs, "cache_mrs"}} {
		if p.On(f.flag) {
			rdma += " " + f.name
		}
	}
	if p.Alignment > 0 {
		rdma += fmt.Sprintf(" align=%d", p.Alignment)
	}
	if rdma == "" {
		rdma = " (defaults)"
	}
	return []string{
		"Options:",
		fmt.Sprintf("  %-10s %d", "Tasks", p.Tasks),
		fmt.Sprintf("  %-10s %d", "Req size", p.RequestSize),
		fmt.Sprintf("  %-10s %d", "ACK size", p.AckSize),
		fmt.Sprintf("  %-10s %d", "RDMA size", p.RDMASize),
		fmt.Sprintf("  %-10s%s", "RDMA opts", rdma),
	}
}
