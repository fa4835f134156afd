package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"urnic/internal/host/plural"
	"urnic/internal/host/printable"
	"urnic/ulp/rx"
)

const rxCallLong = `Call calls an operation of a service. A request is the opcode in four bytes, the arguments in
XDR, and for a streaming call its data. The reply is shown as hexadecimal digits, or as the
types of --results. The exit status is 0 if the call was carried out.

An argument is TYPE:VALUE:

  int:-5 uint:5      32 bits     string:foo   length, bytes, padding
  hyper:-5 uhyper:5  64 bits     opaque:00ff  the same, of hexadecimal digits
  bool:true          32 bits     hex:0000002a these bytes and nothing else

Types of --results are int, uint, hyper, uhyper, bool, string and opaque, separated by
commas, and rest for everything that is left.

With --in, the data of a file follows the arguments. With --out, the whole reply goes to a
file. - is standard input or output. Data may have any length.

Without a key there is no security. With one, call makes a ticket with it, for --user, as
-localauth of OpenAFS's tools does, and rxkad protects the packets. Its ciphers are of 1990
and do not stop an attacker who records the traffic. See docs/rx.md.

With --json it prints one JSON object, on standard error with --out -; see docs/json.md.`

// maxReply is how many bytes of a reply are shown.
const maxReply = 1 << 20

// rxCallOptions are the flags of urnic rx call.
type rxCallOptions struct {
	rxFlags
	rxClientFlags
	in, out string
	results []string
	json    bool
	timeout time.Duration

	addr    netip.AddrPort
	service uint16
	opcode  uint32
	args    []byte
}

func newRXCallCommand() *cobra.Command {
	var o rxCallOptions
	cmd := &cobra.Command{
		Use:   "call HOST:PORT SERVICE OPCODE [ARGUMENT...]",
		Short: "Call an operation, with arguments and data",
		Long:  rxCallLong,
		Example: `  urnic rx call 192.0.2.7:7002 73 510 --results int,int     highest IDs of pts
  urnic rx call 192.0.2.7:7005 4 127 --keyfileext KeyFileExt --level auth
  urnic rx call 192.0.2.7:7077 2077 3 uint:100000 --in data --out reply`,
		Args: rxArgs(3, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if err := o.parse(cmd.Context(), args); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.in, "in", "", "send the data of this `FILE` after the arguments (- is standard input)")
	f.StringVar(&o.out, "out", "", "write the reply to this `FILE` (- is standard output)")
	f.StringSliceVar(&o.results, "results", nil, "`TYPES` of the reply, separated by commas")
	f.BoolVar(&o.json, "json", false, "write one JSON object")
	f.DurationVar(&o.timeout, "timeout", 12*time.Second, "longest silence of the server")
	o.rxClientFlags.add(f)
	o.rxFlags.add(f)
	return cmd
}

func (o *rxCallOptions) check() error {
	switch {
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: must be more than 0", o.timeout)
	case o.pcap == "-" && (o.json || o.out == "-"):
		return errors.New("--pcap - and the reply would both go to standard output: record into a file")
	case o.out != "" && len(o.results) > 0:
		return errors.New("give only one of --out and --results")
	}
	return errors.Join(checkResults(o.results), o.rxFlags.check(), o.rxClientFlags.check())
}

func (o *rxCallOptions) parse(ctx context.Context, args []string) (err error) {
	service, err := strconv.ParseUint(args[1], 0, 16)
	if err != nil || service == 0 {
		return fmt.Errorf("%s is no service: give its ID, 1 to 65535", args[1])
	}
	opcode, err := strconv.ParseInt(args[2], 0, 64)
	if err != nil || opcode < math.MinInt32 || opcode > math.MaxUint32 {
		return fmt.Errorf("%s is no opcode: give its number", args[2])
	}
	o.service, o.opcode = uint16(service), uint32(opcode)
	o.args = binary.BigEndian.AppendUint32(nil, o.opcode)
	for _, arg := range args[3:] {
		if o.args, err = rxArgument(o.args, arg); err != nil {
			return err
		}
	}
	o.addr, err = rxAddress(ctx, args[0])
	return err
}

// rxCallReport is what --json prints.
type rxCallReport struct {
	Server    string  `json:"server"`
	Service   uint16  `json:"service"`
	Opcode    uint32  `json:"opcode"`
	Transport string  `json:"transport"`
	Security  string  `json:"security"`
	Sent      int64   `json:"sent"`
	Received  int64   `json:"received"`
	Seconds   float64 `json:"seconds"`
	Reply     *string `json:"reply,omitempty"`
	Results   []any   `json:"results,omitempty"`
}

func (o *rxCallOptions) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	data, closeIn, err := o.input(stdin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeIn()) }()
	shown := &shownReply{}
	var out io.Writer = shown
	if o.out == "-" {
		out = stdout
	} else if o.out != "" {
		created, err := os.Create(o.out)
		if err != nil {
			return fmt.Errorf("--out: the reply can't be written, give a file that can be: %w", err)
		}
		f := &outputFile{created}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	security, err := o.client(time.Now())
	if err != nil {
		return err
	}
	e, err := o.openEndpoint(ctx, netip.AddrPort{}, nil, stdout, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	r := &rxCallReport{Server: o.addr.String(), Service: o.service, Opcode: o.opcode, Transport: o.transport, Security: o.security()}
	if err := o.call(ctx, e, rx.DialConfig{Security: security, DeadTime: o.timeout}, data, out, r); err != nil {
		return adviseRX(ctx, err, o.addr, o.service)
	}
	if o.out == "-" || o.pcap == "-" {
		stdout = stderr
	}
	return o.report(stdout, r, shown)
}

// input returns what follows the arguments.
func (o *rxCallOptions) input(stdin io.Reader) (r io.Reader, done func() error, err error) {
	done = func() error { return nil }
	switch o.in {
	case "":
		return nil, done, nil
	case "-":
		return stdin, done, nil
	}
	f, err := os.Open(o.in)
	if err != nil {
		return nil, done, fmt.Errorf("--in: the data can't be read: %w", err)
	}
	return f, f.Close, nil
}

// A localError is one of reading or writing files, and not of the call.
type localError struct{ error }

func (e *localError) Unwrap() error { return e.error }

// A localSide marks its errors, to tell them from those of the call.
type localSide struct {
	r io.Reader
	w io.Writer
}

func (l localSide) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	if err != nil && err != io.EOF {
		err = &localError{err}
	}
	return n, err
}

func (l localSide) Write(b []byte) (int, error) {
	n, err := l.w.Write(b)
	if err != nil {
		err = &localError{err}
	}
	return n, err
}

// call makes the call.
func (o *rxCallOptions) call(ctx context.Context, e rx.Endpoint, cfg rx.DialConfig, data io.Reader, out io.Writer, r *rxCallReport) (err error) {
	conn, err := e.Dial(ctx, o.addr, o.service, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	begin := time.Now()
	call, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, call.Close()) }()
	n, err := call.Write(o.args)
	r.Sent = int64(n)
	if err != nil {
		return err
	}
	buf := make([]byte, 256<<10)
	if data != nil {
		n, err := io.CopyBuffer(struct{ io.Writer }{call}, localSide{r: data}, buf)
		r.Sent += n
		if err != nil {
			return err
		}
	}
	if err := call.CloseWrite(); err != nil {
		return err
	}
	r.Received, err = io.CopyBuffer(localSide{w: out}, struct{ io.Reader }{call}, buf)
	r.Seconds = time.Since(begin).Seconds()
	return err
}

// A shownReply keeps a reply that is to be shown.
type shownReply struct{ b []byte }

var errLongReply = errors.New("the reply has more than 1 MiB: write it into a file with --out")

func (s *shownReply) Write(b []byte) (int, error) {
	if len(b) > maxReply-len(s.b) {
		return 0, errLongReply
	}
	s.b = append(s.b, b...)
	return len(b), nil
}

// report prints what has come of the call.
func (o *rxCallOptions) report(w io.Writer, r *rxCallReport, shown *shownReply) (err error) {
	var wrong error
	if len(o.results) > 0 {
		r.Results, wrong = rxResults(shown.b, o.results)
	}
	switch {
	case o.json:
		if o.out == "" {
			r.Reply = new(hex.EncodeToString(shown.b))
		}
		err = writeJSON(w, "urnic-rx-call/1", r)
	case len(o.results) > 0:
		for _, v := range r.Results {
			if _, err := fmt.Fprintln(w, printable.Escape(fmt.Sprint(v))); err != nil {
				return err
			}
		}
	case o.out == "":
		if len(shown.b) > 0 {
			_, err = io.WriteString(w, hex.Dump(shown.b))
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "%s in %v\n", plural.Count(len(shown.b), "byte"), time.Duration(r.Seconds*float64(time.Second)).Round(time.Microsecond))
		}
	}
	return errors.Join(err, wrong)
}
