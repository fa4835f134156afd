package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"urnic/internal/host/printable"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/machine"
	"urnic/ulp/rdp/rdpfile"
)

const rdpRecvLong = `Recv receives files from urnic rdp send, or from another program with the same conventions.
It receives one file to standard output, or to a file with -o. With -d it receives any
number of files, whose names are numbers. ADDRESS is where to listen, :10908 by default: a
UDP port at all addresses. Both versions and both orders of delivery are accepted, as the
sender asks.

A file gets its name when it is complete. Until then it has a hidden name beside it, and is
removed if it fails. RDP has the same segment for a close and for a failure, an RST; its
number distinguishes them. A file is complete if the RST has the number after the last that
has arrived, and nothing before it is missing. If the sender closes too early, or fails and
is urnic, the RST has another number, and the file is removed.

If the sender disappears without an RST, the file may or may not be complete. It is then
kept under its name with .part appended, and the command fails.

Without -d, recv takes the first connection that carries data, or that ends as an empty file
does, and closes others. A connection that is only opened and aborted, as by urnic rdp ping,
does not count.

The exit status is 0 if each file is complete. With -d and without -n, recv serves until it
is interrupted, with status 0; failed files are logged as errors. With -d and -n N it ends
after N files; if one of them failed, the status is 1.

With --json it prints a JSON object in one line when it listens, and for each file;
see docs/json.md.`

// rdpRecvFormat is the format of --json.
const rdpRecvFormat = "urnic-rdp-recv/1"

// rdpRecvOptions are the flags of urnic rdp recv.
type rdpRecvOptions struct {
	rdpFlags
	output      string
	dir         string
	count       int
	unsequenced bool
	json        bool
	verbose     bool
}

func newRDPRecvCommand() *cobra.Command {
	var o rdpRecvOptions
	cmd := &cobra.Command{
		Use:   "recv [ADDRESS]",
		Short: "Receive files",
		Long:  rdpRecvLong,
		Example: `  urnic rdp recv -o file
  urnic rdp recv 192.0.2.7:10908 | tar x
  urnic rdp recv -d incoming --pcap incoming.pcapng
  urnic rdp recv --version 2 --port 1200 -o file`,
		Args: rxArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			at, err := o.listenAt(append(args, "")[0])
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), at, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "write the file to this `FILE`, which is replaced (- or none: standard output)")
	f.StringVarP(&o.dir, "directory", "d", "", "write each file to this `DIRECTORY`, as 0001, 0002 and so on")
	f.IntVarP(&o.count, "count", "n", 0, "with -d, end after `FILES` (0: serve until interrupted)")
	f.BoolVar(&o.unsequenced, "unsequenced", false, "no effect: the sender chooses the order of delivery")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print where it listens and each file, to standard error if the file goes to standard output")
	f.BoolVar(&o.json, "json", false, "print JSON objects")
	o.add(f, 0)
	return cmd
}

func (o *rdpRecvOptions) check() error {
	if o.output == "-" {
		o.output = ""
	}
	toStdout := o.output == "" && o.dir == ""
	switch {
	case o.output != "" && o.dir != "":
		return errors.New("give only one of -o and -d")
	case o.count < 0:
		return fmt.Errorf("-n %d: must be 0 or more (0: no end)", o.count)
	case o.count > 0 && o.dir == "":
		return errors.New("-n is for -d: without it there is one file")
	case o.json && o.pcap == "-":
		return errJSONAndPcap
	case toStdout && o.json:
		return errors.New("--json and the file would both go to standard output: give -o or -d")
	case toStdout && o.pcap == "-":
		return errors.New("--pcap - and the file would both go to standard output: give -o or -d")
	}
	return o.rdpFlags.check()
}

// An rdpReceiver receives files for a command.
type rdpReceiver struct {
	*rdpRecvOptions
	out    *lines
	quiet  bool // files are not told of
	stderr io.Writer
}

func (o *rdpRecvOptions) run(ctx context.Context, at netip.AddrPort, stdout, stderr io.Writer) (err error) {
	if o.dir != "" && o.count == 0 {
		defer func() { err = served(ctx, err) }()
	}
	if err := o.checkOutput(); err != nil {
		return err
	}
	var l *rdp.Listener
	e, err := o.openEndpoint(ctx, "urnic rdp recv", at, func(e *rdp.Endpoint) (err error) {
		l, err = e.Listen(rdp.ListenConfig{Port: uint16(o.port), Params: o.params(at)})
		return err
	}, stdout, stderr)
	if err != nil {
		return err
	}
	r := &rdpReceiver{rdpRecvOptions: o, out: &lines{w: stdout}, stderr: stderr}
	if o.output == "" && o.dir == "" || o.pcap == "-" {
		r.out.w = stderr
	}
	r.quiet = !o.verbose && !o.json
	defer func() { err = errors.Join(err, e.Close(), r.out.failed) }()
	r.listening(e, l)
	if o.dir != "" {
		return r.serve(ctx, l)
	}
	c, err := r.first(ctx, l)
	if err != nil {
		return err
	}
	return r.one(ctx, c, stdout)
}

// checkOutput looks at where files are to go, before a sender has to.
func (o *rdpRecvOptions) checkOutput() error {
	if o.dir != "" {
		switch info, err := os.Stat(o.dir); {
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("-d %s: that is no directory", o.dir)
		}
		return nil
	}
	if o.output == "" {
		return nil
	}
	switch info, err := os.Stat(o.output); {
	case err == nil && info.IsDir():
		return fmt.Errorf("-o %s: that is a directory: give the file's name, or -d for files that get numbers", o.output)
	case errors.Is(err, fs.ErrNotExist):
		_, err := os.Stat(filepath.Dir(o.output))
		return err
	default:
		return err
	}
}

// listening says where that is.
func (r *rdpReceiver) listening(e *rdpEndpoint, l *rdp.Listener) {
	switch {
	case r.json:
		line, err := jsonLine(rdpRecvFormat, struct {
			Listening string `json:"listening"`
			Port      uint16 `json:"port"`
		}{e.LocalAddr().String(), l.Port()})
		if err == nil {
			r.out.print(line)
		}
	case !r.quiet || r.out.w != r.stderr:
		r.out.print("listening at " + r.place(e.LocalAddr(), l.Port()))
	}
}

// brings waits until a connection brings something, or ends as a file without content does. It reports false for one of which
// nothing comes.
func brings(ctx context.Context, c *rdp.Conn) bool {
	if c.AwaitMessage(ctx) != nil {
		return false
	}
	s := c.Status()
	return s.Queued > 0 || errors.Is(s.Err, machine.ErrReset) && !s.Short
}

// one receives the file of a command that is to receive one.
func (r *rdpReceiver) one(ctx context.Context, c *rdp.Conn, stdout io.Writer) error {
	begun := time.Now()
	if r.output == "" {
		n, err := r.progressing(func(p *progress) (int64, error) { return rdpfile.Receive(ctx, c, progressWriter{stdout, p}) })
		return r.end(c, "-", n, begun, err)
	}
	name, perm := r.output, fs.FileMode(0o666)
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // the file is replaced, not a link to it
	}
	if info, err := os.Stat(name); err == nil {
		if !info.Mode().IsRegular() {
			return r.device(ctx, c, name, begun)
		}
		perm = info.Mode().Perm()
	}
	part, err := createPart(filepath.Dir(name), perm)
	if err != nil {
		return r.refuse(c, err)
	}
	n, err := r.receiveAt(ctx, c, part)
	switch {
	case err == nil:
		err = part.commit(filepath.Base(name))
	case isPart(err) && n > 0:
		return r.keep(c, part, filepath.Base(name), n, err)
	default:
		err = errors.Join(adviseReceive(err, c.RemoteHost(), n), part.discard())
	}
	if err != nil {
		return r.refuse(c, err)
	}
	return r.end(c, r.output, n, begun, nil)
}

// isPart reports whether what has come has no holes, although nobody has said that it is all.
func isPart(err error) bool {
	return errors.Is(err, machine.ErrUnreachable) && !errors.Is(err, rdpfile.ErrHoles)
}

// keep keeps what may not be all under another name.
func (r *rdpReceiver) keep(c *rdp.Conn, part *partFile, name string, n int64, err error) error {
	why := adviseReceive(err, c.RemoteHost(), n)
	name, err = freeName(part.dir, name+".part")
	if err != nil {
		return errors.Join(why, alwaysTell(err), part.discard())
	}
	if err := part.commit(name); err != nil {
		return errors.Join(why, err)
	}
	return alwaysTell(advise(why, "%v: it is in %s", why, filepath.Join(part.dir, name)))
}

// refuse closes a connection of which nothing came.
func (r *rdpReceiver) refuse(c *rdp.Conn, err error) error {
	c.Close() //nolint:errcheck // it may have ended
	return err
}

// receiveAt receives a file into another one.
func (r *rdpReceiver) receiveAt(ctx context.Context, c *rdp.Conn, f io.WriterAt) (int64, error) {
	return r.progressing(func(p *progress) (int64, error) { return rdpfile.ReceiveAt(ctx, c, progressWriterAt{f, p}) })
}

// progressing shows the progress of a file. With -d there may be many, and none is shown.
func (r *rdpReceiver) progressing(receive func(*progress) (int64, error)) (int64, error) {
	var p *progress
	if r.dir == "" {
		name := r.output
		if name == "" {
			name = "standard output"
		}
		p = newProgress(r.stderr, 0, progressbar.OptionSetDescription(printable.Name(name)), progressbar.OptionShowBytes(true))
	}
	defer p.end()
	return receive(p)
}

// device receives into what is no regular file, such as a pipe.
func (r *rdpReceiver) device(ctx context.Context, c *rdp.Conn, name string, begun time.Time) error {
	opened, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return r.refuse(c, err)
	}
	f := &outputFile{opened}
	n, err := r.progressing(func(p *progress) (int64, error) { return rdpfile.Receive(ctx, c, progressWriter{f, p}) })
	return r.end(c, r.output, n, begun, errors.Join(err, f.Close()))
}

// end reports a file, or returns why there is none.
func (r *rdpReceiver) end(c *rdp.Conn, to string, n int64, begun time.Time, err error) error {
	if err != nil {
		return r.refuse(c, adviseReceive(err, c.RemoteHost(), n))
	}
	if !r.quiet {
		r.did(c, to, n, begun)
	}
	return nil
}

func (r *rdpReceiver) did(c *rdp.Conn, to string, n int64, begun time.Time) {
	s := c.Status().Stats
	report := rdpFile{
		From: peerOf(c), To: to, Port: c.LocalPort(), Version: c.Version(), Sequenced: c.Sequenced(), Bytes: n, Seconds: time.Since(begun).Seconds(),
		Segments: s.Received, Duplicates: &s.Duplicates,
	}
	format := ""
	if r.json {
		format = rdpRecvFormat
	}
	report.print(r.out, format)
}

// A progressWriterAt tells a progress of what is written.
type progressWriterAt struct {
	io.WriterAt
	progress *progress
}

func (w progressWriterAt) WriteAt(b []byte, at int64) (int, error) {
	n, err := w.WriterAt.WriteAt(b, at)
	w.progress.add(int64(n))
	return n, err
}
