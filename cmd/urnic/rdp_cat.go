package main

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"urnic/ulp/rdp"
	"urnic/ulp/rdp/rdpfile"
	"urnic/ulp/rdp/rdpstream"
)

const rdpCatLong = `Cat connects standard input and output with a peer, as nc does. It opens a connection to HOST,
or waits for one with -l. Input goes to the peer at once, and what arrives is written at
once.

Messages are those of urnic rdp send and recv, in both directions. An RDP connection can't
end in one direction alone. So the side that has connected ends the connection when its
input has ended and the peer has accepted everything; what the peer would send later is
lost. With -l, the end of the input does not end the connection.

With --stream, on both sides, the connection carries a byte stream of urnic (docs/rdp.md).
Each direction then ends when the input of its side ends, and the command ends when both
have.

The exit status is 0 if everything was sent and accepted, and the data from the peer is
complete.`

// rdpCatOptions are the flags of urnic rdp cat.
type rdpCatOptions struct {
	rdpFlags
	listen      bool
	stream      bool
	unsequenced bool
	timeout     time.Duration
	linger      time.Duration
}

func newRDPCatCommand() *cobra.Command {
	var o rdpCatOptions
	cmd := &cobra.Command{
		Use:   "cat HOST[:UDPPORT] | -l [ADDRESS]",
		Short: "Connect standard input and output with a peer",
		Long:  rdpCatLong,
		Example: `  urnic rdp cat -l > file                   on one machine, and
  urnic rdp cat 192.0.2.7 < file            on the other one
  urnic rdp cat --stream -l                 a chat, with
  urnic rdp cat --stream 192.0.2.7`,
		Args: func(cmd *cobra.Command, args []string) error {
			least := 1
			if o.listen {
				least = 0
			}
			return rxArgs(least, 1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.defaultVersion()
			if err := o.check(); err != nil {
				return err
			}
			ctx := cmd.Context()
			var at netip.AddrPort
			var err error
			if o.listen {
				at, err = o.listenAt(append(args, "")[0])
			} else {
				at, err = o.host(ctx, args[0])
			}
			if err != nil {
				return err
			}
			return o.run(ctx, at, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.listen, "listen", "l", false, "wait for a connection")
	f.BoolVar(&o.stream, "stream", false, "carry a byte stream of urnic, whose directions end separately")
	f.BoolVar(&o.unsequenced, "unsequenced", false, "deliver messages out of sequence (with -l: as the peer asks)")
	f.DurationVar(&o.timeout, "connect-timeout", 30*time.Second, "how long the peer may take to accept a connection")
	f.DurationVar(&o.linger, "linger", rdpfile.Linger, "how long to make sure that the peer has received the end")
	o.add(f, 0)
	f.Lookup("version").Usage = "`VERSION` of RDP, 1 or 2 (0: 2; both with -l)"
	return cmd
}

// defaultVersion has connections be of version 2 if no flag names one.
func (o *rdpCatOptions) defaultVersion() {
	if !o.listen && o.version == 0 {
		o.version = 2
	}
}

func (o *rdpCatOptions) check() error {
	switch {
	case o.pcap == "-":
		return errors.New("--pcap - and the data would both go to standard output: record into a file")
	case o.stream && o.unsequenced:
		return errors.New("give only one of --stream and --unsequenced: a stream has an order")
	}
	return errors.Join(checkConnectTimeout(o.timeout), o.rdpFlags.check())
}

func (o *rdpCatOptions) run(ctx context.Context, at netip.AddrPort, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	from := at
	if !o.listen {
		if from, err = o.source(ctx, at); err != nil {
			return err
		}
	}
	var accept func(context.Context) (catConn, error)
	e, err := o.openEndpoint(ctx, "urnic rdp cat", from, func(e *rdp.Endpoint) (err error) {
		if o.listen {
			accept, err = o.listener(e, from)
		}
		return err
	}, stdout, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	var c catConn
	if o.listen {
		c, err = accept(ctx)
	} else {
		c, err = o.connect(ctx, e, from, at)
	}
	switch {
	case err != nil:
		return err
	case o.stream:
		return o.bothStreams(ctx, c.stream, stdin, stdout)
	}
	return o.both(ctx, c.messages, stdin, stdout)
}

// A catConn is a connection of one of two kinds.
type catConn struct {
	messages *rdp.Conn
	stream   *rdpstream.Conn
}

// streams are the parameters of a stream.
func (o *rdpCatOptions) streams(at netip.AddrPort) rdpstream.Config {
	return rdpstream.Config{Port: uint16(o.port), Version: uint8(o.version), Params: o.params(at)}
}

// listener listens, and returns what accepts the first connection.
func (o *rdpCatOptions) listener(e *rdp.Endpoint, at netip.AddrPort) (func(context.Context) (catConn, error), error) {
	if o.stream {
		l, err := rdpstream.Listen(e, o.streams(at))
		return func(ctx context.Context) (catConn, error) {
			c, err := l.AcceptContext(ctx)
			if err = errors.Join(err, l.Close()); err != nil {
				return catConn{}, err
			}
			return catConn{stream: c.(*rdpstream.Conn)}, nil
		}, err
	}
	l, err := e.Listen(rdp.ListenConfig{Port: uint16(o.port), Params: o.params(at)})
	return func(ctx context.Context) (catConn, error) {
		c, err := l.Accept(ctx)
		return catConn{messages: c}, errors.Join(err, l.Close())
	}, err
}

// connect opens a connection.
func (o *rdpCatOptions) connect(ctx context.Context, e *rdpEndpoint, at, to netip.AddrPort) (c catConn, err error) {
	if !o.stream {
		p := o.params(at)
		p.Sequenced, p.SendQueue = !o.unsequenced, rdpSendQueue
		c.messages, err = o.dial(ctx, e, to, p, o.timeout)
		return c, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, o.timeout, errRDPSilent)
	defer cancel()
	c.stream, err = rdpstream.Dial(limited, e.Endpoint, to, o.streams(at))
	if err != nil && ctx.Err() != nil {
		return c, context.Cause(ctx)
	}
	return c, o.adviseDial(err, to, o.timeout)
}

// both moves messages in both directions until the connection ends.
func (o *rdpCatOptions) both(ctx context.Context, c *rdp.Conn, stdin io.Reader, stdout io.Writer) error {
	limited, stop := whileOpen(ctx, c)
	defer stop()
	sent := make(chan error, 1)
	go func() {
		_, err := rdpfile.Send(limited, c, &interruptibleReader{ctx: limited, r: stdin})
		if err == nil && !o.listen {
			rdpfile.Finish(ctx, c, o.linger)
		} else if err != nil && !errors.Is(err, rdpfile.ErrEarly) {
			giveUp(c)
		}
		sent <- err
	}()
	n, err := rdpfile.Receive(ctx, c, stdout)
	if errors.Is(err, io.EOF) { // this side has closed
		return o.adviseSend(<-sent, c.RemoteHost())
	}
	if err != nil {
		giveUp(c)
		err = adviseReceive(err, c.RemoteHost(), n)
	}
	switch failed := <-sent; {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil || o.listen:
		return err // the peer has ended it, as it may
	default:
		return o.adviseSend(failed, c.RemoteHost())
	}
}

// bothStreams moves bytes in both directions until both have ended.
func (o *rdpCatOptions) bothStreams(ctx context.Context, c *rdpstream.Conn, stdin io.Reader, stdout io.Writer) error {
	over := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // ends reads and writes
	defer over()
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(c, stdin)
		if err == nil {
			err = c.CloseWrite()
		}
		sent <- err
	}()
	_, err := io.Copy(stdout, c)
	if err != nil {
		_ = c.SetDeadline(time.Unix(1, 0)) // as above
	}
	err = errors.Join(err, <-sent)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(err, c.CloseContext(ctx))
}
