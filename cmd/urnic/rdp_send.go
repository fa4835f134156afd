package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"urnic/internal/host/plural"
	"urnic/internal/host/printable"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/machine"
	"urnic/ulp/rdp/rdpfile"
)

const rdpSendLong = `Send sends files to a host that runs urnic rdp recv, or another program with the same
conventions. Each FILE has its own connection; the messages of the connection, joined, are
the file. With --unsequenced each message begins with its offset in the file, in 8 bytes,
big-endian, so that the receiver places it as it arrives. FILE - is standard input. Names
are not sent.

A file has arrived when the peer has acknowledged all of it. Urnic then closes the
connection, which marks the end of the file. RDP does not acknowledge a close. So urnic
repeats it a few times, and answers a receiver that asks, for the time of --linger.

If a file can't be read to its end, or the command is interrupted, a receiver that is urnic
notices that the file is incomplete.

The exit status is 0 if all files have arrived. The command ends at the first that has not.

With --json it prints a JSON object in one line for each file that has arrived;
see docs/json.md.`

// rdpSendOptions are the flags of urnic rdp send.
type rdpSendOptions struct {
	rdpFlags
	unsequenced bool
	timeout     time.Duration
	linger      time.Duration
	json        bool
	verbose     bool
}

func newRDPSendCommand() *cobra.Command {
	var o rdpSendOptions
	cmd := &cobra.Command{
		Use:   "send FILE... HOST[:UDPPORT]",
		Short: "Send files",
		Long:  rdpSendLong,
		Example: `  urnic rdp send file 192.0.2.7
  urnic rdp send --version 1 -v a b c 192.0.2.7:10908
  urnic rdp send --unsequenced --congestion cubic file 192.0.2.7
  tar c dir | urnic rdp send - 192.0.2.7`,
		Args: rxArgs(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			last := len(args) - 1
			to, err := o.host(cmd.Context(), args[last])
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), args[:last], to, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.unsequenced, "unsequenced", false, "deliver messages out of sequence")
	f.DurationVar(&o.timeout, "connect-timeout", 30*time.Second, "how long the peer may take to accept a connection")
	f.DurationVar(&o.linger, "linger", rdpfile.Linger, "how long to make sure that the peer has received the end")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print each file when it has arrived")
	f.BoolVar(&o.json, "json", false, "print a JSON object for each file")
	o.add(f, 2)
	return cmd
}

func (o *rdpSendOptions) check() error {
	switch {
	case o.version == 0:
		return errors.New("--version 0: must be 1 or 2")
	case o.linger < 0:
		return fmt.Errorf("--linger %v: must be 0 or more", o.linger)
	case o.json && o.pcap == "-":
		return errJSONAndPcap
	}
	return errors.Join(checkConnectTimeout(o.timeout), o.rdpFlags.check())
}

// A rdpFile is what is printed of a file that was sent or received.
type rdpFile struct {
	From       string  `json:"from"`
	To         string  `json:"to"`
	Port       uint16  `json:"port"` // of RDP, of the receiver
	Version    uint8   `json:"version"`
	Sequenced  bool    `json:"sequenced"`
	Bytes      int64   `json:"bytes"`
	Seconds    float64 `json:"seconds"`
	Segments   uint32  `json:"segments"`
	Resent     *uint32 `json:"resent,omitempty"`
	Duplicates *uint32 `json:"duplicates,omitempty"`
	RTT        float64 `json:"rtt_ms,omitempty"`
}

// print prints it, as JSON of that format, or in words if there is none.
func (r *rdpFile) print(out *lines, format string) {
	if format != "" {
		line, err := jsonLine(format, r)
		if err != nil { // of strings and numbers: it can't be
			line = err.Error()
		}
		out.print(line)
		return
	}
	line := fmt.Sprintf("%s -> %s: %s in %.3f s", printable.Name(r.From), printable.Name(r.To), plural.Count(r.Bytes, "byte"), r.Seconds)
	if r.Seconds > 0 {
		line += fmt.Sprintf(", %.1f MB/s", float64(r.Bytes)/1e6/r.Seconds)
	}
	if r.Resent != nil && *r.Resent > 0 {
		line += fmt.Sprintf(", %s of %d sent again", plural.Count(int(*r.Resent), "segment"), r.Segments)
	}
	out.print(line)
}

func (o *rdpSendOptions) run(ctx context.Context, files []string, to netip.AddrPort, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	for _, name := range files {
		if info, err := os.Stat(name); name != "-" && err != nil {
			return err
		} else if name != "-" && info.IsDir() {
			return fmt.Errorf("%s is a directory: send its files, or an archive of it (tar c %[1]s | urnic rdp send - ...)", name)
		}
	}
	at, err := o.source(ctx, to)
	if err != nil {
		return err
	}
	e, err := o.openEndpoint(ctx, "urnic rdp send", at, nil, stdout, stderr)
	if err != nil {
		return err
	}
	out := &lines{w: stdout}
	if o.pcap == "-" {
		out.w = stderr
	}
	var finishing sync.WaitGroup
	defer func() {
		finishing.Wait()
		err = errors.Join(err, e.Close(), out.failed)
	}()
	for _, name := range files {
		c, err := o.dial(ctx, e, to, o.send(at), o.timeout)
		if err != nil {
			return err
		}
		if err := o.sendFile(ctx, c, name, stdin, out, stderr); err != nil {
			giveUp(c)
			return o.adviseSend(err, to)
		}
		finishing.Go(func() { rdpfile.Finish(ctx, c, o.linger) })
	}
	return nil
}

// send are the parameters of the connection.
func (o *rdpSendOptions) send(at netip.AddrPort) rdp.Params {
	p := o.params(at)
	p.Sequenced = !o.unsequenced
	p.SendQueue = rdpSendQueue
	return p
}

// rdpSendQueue is how many messages wait behind the window, so that there is one when it has room.
const rdpSendQueue = 64

// sendFile sends one file, and reports it.
func (o *rdpSendOptions) sendFile(ctx context.Context, c *rdp.Conn, name string, stdin io.Reader, out *lines, stderr io.Writer) (err error) {
	begun := time.Now()
	var size int64
	r := stdin
	if name == "-" {
		name = "standard input"
		limited, cancel := whileOpen(ctx, c)
		defer cancel()
		r = &interruptibleReader{ctx: limited, r: stdin}
	} else {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		r = f
	}
	p := newProgress(stderr, size, progressbar.OptionSetDescription(printable.Name(name)), progressbar.OptionShowBytes(true))
	n, err := rdpfile.Send(ctx, c, progressReader{r, p})
	p.end()
	if err != nil {
		return err
	}
	if s := c.Status(); o.verbose || o.json {
		report := rdpFile{
			From: name, To: peerOf(c), Port: c.RemotePort(), Version: c.Version(), Sequenced: c.Sequenced(), Bytes: n, Seconds: time.Since(begun).Seconds(),
			Segments: s.Stats.Sent, Resent: &s.Stats.Resent, RTT: float64(s.RTT.Microseconds()) / 1000,
		}
		format := ""
		if o.json {
			format = "urnic-rdp-send/1"
		}
		report.print(out, format)
	}
	return nil
}

// peerOf names the host of a peer.
func peerOf(c *rdp.Conn) string {
	if h := c.RemoteHost(); h.Port() != 0 {
		return h.String()
	}
	return c.RemoteHost().Addr().String()
}

// errRDPEnded says that a connection has ended, of which Err tells more.
var errRDPEnded = errors.New("the connection has ended")

// whileOpen returns a context that ends when the connection does.
func whileOpen(ctx context.Context, c *rdp.Conn) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		if c.Wait(limited, ended) == nil {
			cancel(rdpEnd(c))
		}
	}()
	return limited, func() {
		cancel(nil)
		<-waiting
	}
}

// rdpEnd says why a connection has ended.
func rdpEnd(c *rdp.Conn) error {
	if err := c.Err(); err != nil {
		return fmt.Errorf("%w: %w", rdpfile.ErrEarly, err)
	}
	return errRDPEnded
}

// ended reports whether a connection is not open any more.
func ended(s rdp.Status) bool { return s.State != machine.Open }

// giveUp ends a connection in the middle of a file, and gives the peer a moment to ask again, also if the command is
// interrupted: else it could not know for a while.
func giveUp(c *rdp.Conn) {
	wait := min(2*c.Status().Timeout, 500*time.Millisecond)
	if c.Abort() == nil {
		time.Sleep(wait)
	}
}
