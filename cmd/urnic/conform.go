package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/conformance"
	"urnic/conformance/cases"
	"urnic/conformance/profile"
	"urnic/conformance/rdpconn"
	"urnic/conformance/report"
	"urnic/conformance/wire"
	"urnic/internal/host/listen"
	"urnic/internal/host/plural"
	"urnic/internal/host/version"
)

const conformLong = `Conform tests whether an iWARP endpoint, the target, conforms to RFCs 5044, 5041,
5040, 6581 and 7306, and to what can be seen of 5042. It names each clause that is broken.
It connects over TCP, misbehaves on purpose, and checks every byte that the target sends.
It tests servers and clients of RPC-over-RDMA in the same way (8166, 8167, 8797).

What it can test depends on what runs at the target (--profile):

  raw      any program that listens as an MPA responder, or connects: start-up,
           framing, refusals
  rping    rdma-core's "rping -s -P" at --target, or "rping -c" in a loop that
           connects to --listen
  urnic    the test service: "urnic conform serve", whose control address is
           --target
  rpcrdma  an NFS server at --target, with an --export in which the tester may
           create files; or a client that connects to --listen and calls in a
           loop

With --llp rdp it tests an RNIC over RDP in place of MPA over TCP
(docs/ddp-over-rdp.md): the cases of DDP and RDMAP run, those of MPA's framing and
start-up do not. The profile rpcrdma needs TCP.

Each case ends in pass, fail, inconclusive or skipped. For a failed case the report shows
what was sent, what was expected, what came, the exchange, and the clause. The report
begins with the verdict. PASS means that no case failed. With --strict, PASS also means
that the target conforms to each SHOULD, and that no case was inconclusive.

The exit status is 0 for PASS, 1 for FAIL, 2 if nothing was tested (wrong flags, no target,
no iWARP endpoint), 3 for TARGET LOST, 4 for INCONCLUSIVE, and 130 for INTERRUPTED.

Do not test a machine that others use. The tests write only to memory that the target
opens to them, but an endpoint may crash. Cases that are known to crash endpoints run last.
--spare leaves them out; --revive names a command that restarts the target in between. The
run ends when the target does not answer any more.`

// conformOptions are the flags of urnic conform.
type conformOptions struct {
	target, profile, listen  string
	llp                      string
	only                     []string
	strict, list, verbose    bool
	spare                    bool
	revive                   string
	timeout, settle          time.Duration
	jobs, rpingSize          int
	export, mount, handle    string
	json, junit, html, pcaps string
	logLevel                 string
}

func newConformCommand() *cobra.Command {
	var o conformOptions
	cmd := &cobra.Command{
		Use:   "conform --target HOST:PORT [flags]",
		Short: "Test whether an iWARP endpoint conforms to the RFCs",
		Long:  conformLong,
		Example: `  urnic conform serve                    offer the test service
  urnic conform --target 127.0.0.1:7176 --profile urnic      test that service
  urnic conform --target 192.0.2.7:7174 --profile rping --html r.html
  urnic conform --listen 192.0.2.9:7174 --profile rping      for rping -c
  urnic conform --target 192.0.2.7:20049                     any MPA responder
  urnic conform --target 127.0.0.1:7176 --profile urnic --only rfc5041-7.1 -v
  urnic conform --target 192.0.2.7:7174 --profile rping --spare
  urnic conform --target 192.0.2.7:20049 --profile rpcrdma --export /srv/test
  urnic conform --llp rdp --target 127.0.0.1:7176 --profile urnic
  urnic conform --list --only rfc6581                        list the cases
  urnic conform compare siw.json urnic.json                  compare two reports`,
		Args: func(cmd *cobra.Command, args []string) error { return untested(noArgs(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.checkLLP(); err != nil {
				return untested(err)
			}
			if o.list {
				return listCases(cmd.OutOrStdout(), o.only, conformance.LLP(o.llp))
			}
			if err := o.check(cmd.Flags()); err != nil {
				return untested(err)
			}
			return runConform(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return untested(flagError(cmd, err)) })
	f := cmd.Flags()
	f.StringVar(&o.target, "target", "", "the target's address, `HOST:PORT`")
	f.StringVar(&o.profile, "profile", "raw", "what runs at the target: raw, rping, urnic or rpcrdma")
	f.StringVar(&o.llp, "llp", llpTCP, "what DDP runs on at the target: tcp (MPA over TCP), or rdp (RDP over UDP)")
	f.StringVar(&o.listen, "listen", "", "`HOST:PORT` to which the target connects, as initiator; 0.0.0.0 is IPv4 alone, [::] IPv6 alone")
	f.StringSliceVar(&o.only, "only", nil, "cases to run, by `ID`, by the beginning of one (rfc5041-7.1), or by group")
	f.BoolVar(&o.strict, "strict", false, "count a broken SHOULD as a failure, and an inconclusive case as no success")
	f.DurationVar(&o.timeout, "timeout", conformance.DefaultTimeout, "how long an answer may take")
	f.DurationVar(&o.settle, "settle", 10*time.Millisecond, "wait this long after start-up, as Linux siw may lose an FPDU that comes at once; not with the profile urnic or over RDP")
	f.IntVar(&o.jobs, "jobs", 0, "how many cases run at a time (0: 16 with the profile urnic, else 1)")
	f.StringVar(&o.json, "json", "", "write the report as JSON to this `FILE` (- is standard output)")
	f.StringVar(&o.junit, "junit", "", "write the report as JUnit XML to this `FILE`")
	f.StringVar(&o.html, "html", "", "write the report as an HTML page to this `FILE`")
	f.StringVar(&o.pcaps, "pcap", "", "record each case in a file of its own in this `DIR`")
	f.BoolVar(&o.spare, "spare", false, "leave out the cases that are known to crash endpoints")
	f.StringVar(&o.revive, "revive", "", "shell `COMMAND` that restarts the target after a case has crashed it")
	f.IntVar(&o.rpingSize, "rping-size", 0, "with the profile rping: `BYTES` of the buffer of rping -s, its -S (0: detect)")
	f.StringVar(&o.export, "export", "", "with the profile rpcrdma: exported `PATH` in which the tester may create files; without it, cases of chunks are skipped")
	f.StringVar(&o.mount, "mount", "", "`HOST:PORT` of the export's MOUNT service, over TCP (default: ask the target's rpcbind)")
	f.StringVar(&o.handle, "handle", "", "file handle of the exported directory in `HEX`, in place of --export")
	f.StringVar(&o.logLevel, "log-level", "error", "what to log to standard error: debug (each cause of an error), info, warn or error")
	f.BoolVar(&o.list, "list", false, "list the cases, and how many requirements of the RFCs they cover")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "also print the cases that passed")
	cmd.AddCommand(newConformServeCommand(), newConformCompareCommand())
	return cmd
}

// checkLLP looks at --llp.
func (o *conformOptions) checkLLP() error {
	switch {
	case o.llp != llpTCP && o.llp != llpRDP:
		return fmt.Errorf("--llp %s: must be tcp or rdp", o.llp)
	case o.llp == llpRDP && o.profile == "rpcrdma":
		return errors.New("--llp rdp: RPC-over-RDMA is tested over TCP alone: give another --profile")
	}
	return nil
}

// check finds what is wrong with the flags.
func (o *conformOptions) check(f *pflag.FlagSet) error {
	switch {
	case !slices.Contains([]string{"raw", "rping", "urnic", "rpcrdma"}, o.profile):
		return fmt.Errorf("--profile %s: must be one of raw, rping, urnic, rpcrdma", o.profile)
	case o.profile != "rpcrdma" && (o.export != "" || o.mount != "" || o.handle != ""):
		return errors.New("--export, --mount and --handle are for --profile rpcrdma")
	case o.target == "" && (o.profile == "urnic" || o.listen == ""):
		return errors.New("no endpoint to test: give --target HOST:PORT, or --listen HOST:PORT if it connects")
	case new(slog.Level).UnmarshalText([]byte(o.logLevel)) != nil:
		return fmt.Errorf("--log-level %s: must be one of debug, info, warn, error", o.logLevel)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: must be more than 0", o.timeout)
	case o.settle < 0:
		return fmt.Errorf("--settle %v: must be 0 or more", o.settle)
	case o.jobs < 0:
		return fmt.Errorf("--jobs %d: must be 1 or more", o.jobs)
	case o.rpingSize < 0:
		return fmt.Errorf("--rping-size %d: must be 0 or more", o.rpingSize)
	case o.profile != "rping" && o.rpingSize != 0:
		return errors.New("--rping-size is for --profile rping")
	}
	for _, a := range []struct{ flag, address string }{{"target", o.target}, {"listen", o.listen}, {"mount", o.mount}} {
		if _, _, err := net.SplitHostPort(a.address); a.address != "" && err != nil {
			return fmt.Errorf("--%s %s: give HOST:PORT: %w", a.flag, a.address, err)
		}
	}
	if o.jobs == 0 && o.profile != "urnic" {
		o.jobs = 1
	}
	if (o.profile == "urnic" || o.llp == llpRDP) && !f.Changed("settle") {
		o.settle = 0
	}
	return nil
}

func runConform(ctx context.Context, o conformOptions, stdout, stderr io.Writer) (err error) {
	p, end, err := o.newProfile(ctx)
	if err != nil {
		return untested(err)
	}
	defer func() { err = errors.Join(err, end()) }()
	r := conformance.Runner{
		Groups: cases.All(), Profile: p,
		Options: conformance.Options{
			Timeout: o.timeout, Settle: o.settle, Strict: o.strict, Jobs: o.jobs, Only: o.only, PcapDir: o.pcaps, Spare: o.spare,
		},
	}
	if err := r.Check(); err != nil {
		return untested(err)
	}
	if r.Count() == 0 {
		return untested(fmt.Errorf("the selected cases do not run with the profile %s over %s: --list shows where they run", o.profile, p.LLP()))
	}
	switch err := o.reach(ctx, p); {
	case err != nil && ctx.Err() != nil: // which says nothing of the target
		return err
	case err != nil:
		return untested(err)
	}
	bar := newProgress(stderr, int64(r.Count()))
	if o.revive != "" {
		r.Options.Revive = func(ctx context.Context) error { return revive(ctx, o.revive, stderr) }
	}
	r.Options.Progress = func(_, _ int, _ conformance.Result) { bar.add(1) }
	rep, err := r.Run(ctx)
	bar.end()
	if err != nil {
		return err
	}
	rep.Tool, rep.Target = toolName(), o.describe()
	if err := o.write(rep, stdout); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return verdict(rep)
}

// newProfile returns the profile, and how to end its use.
func (o *conformOptions) newProfile(ctx context.Context) (conformance.Profile, func() error, error) {
	if o.profile == "urnic" {
		host, _, _ := net.SplitHostPort(o.listen)
		p := profile.NewUrnic(o.target, host, o.timeout)
		if o.llp == llpRDP {
			p.OverRDP()
		}
		return p, func() error { return nil }, nil
	}
	var listener profile.Listener
	end := func() error { return nil }
	if o.listen != "" {
		l, err := o.listens(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("--listen %s: %w", o.listen, err)
		}
		listener, end = l, l.Close
	}
	switch o.profile {
	case "rping":
		p := profile.NewRping(o.target, listener, o.timeout, o.rpingSize)
		if o.llp == llpRDP {
			p.OverRDP()
		}
		return p, end, nil
	case "rpcrdma":
		handle, err := hex.DecodeString(o.handle)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("--handle: %w", err), end())
		}
		export := profile.Export{Path: o.export, Mount: o.mount, Handle: handle}
		return profile.NewRPCRDMA(o.target, listener, o.timeout, export), end, nil
	}
	p := profile.NewRaw(o.target, listener, o.timeout)
	if o.llp == llpRDP {
		p.OverRDP()
	}
	return p, end, nil
}

// listens opens --listen.
func (o *conformOptions) listens(ctx context.Context) (profile.Listener, error) {
	if o.llp == llpRDP {
		return rdpconn.Listen(ctx, o.listen, rdpconn.Options{})
	}
	l, err := listen.TCP(ctx, o.listen)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// reach looks whether the target is there at all, and an iWARP endpoint, so that not each
// case has to find out. It asks like any initiator: Linux siw stops listening if a connection
// comes and goes without a Request.
func (o *conformOptions) reach(ctx context.Context, p conformance.Profile) error {
	if o.target == "" {
		return nil
	}
	if o.profile == "urnic" {
		limited, cancel := context.WithTimeout(ctx, o.timeout)
		defer cancel()
		session, err := p.Begin(limited, wire.NewTape())
		if err != nil {
			return o.adviseTarget(ctx, err)
		}
		return session.Close()
	}
	return o.adviseTarget(ctx, conformance.Probe(ctx, p, o.timeout))
}

// adviseTarget says what to do about a target that can't be tested.
func (o *conformOptions) adviseTarget(ctx context.Context, err error) error {
	dialed, failed := errors.AsType[*net.OpError](err)
	other, differs := errors.AsType[*profile.OtherLLPError](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, conformance.ErrNotIWARP):
		return fmt.Errorf("--target %s: %w: give the address of an RDMA listener", o.target, err)
	case errors.Is(err, conformance.ErrRejects):
		return fmt.Errorf("--target %s: %w: have a program listen there that accepts any private data", o.target, err)
	case errors.Is(err, conformance.ErrUnanswered):
		return fmt.Errorf("--target %s: %w: it is no iWARP endpoint, or it hangs, or it needs a longer --timeout", o.target, err)
	case differs:
		return fmt.Errorf("--target %s: %w: give --llp %s, or start `urnic conform serve --llp %s` there", o.target, err, other.Has.Name(), other.Wants.Name())
	case o.profile == "urnic" && (!failed || dialed.Op != "dial"):
		return fmt.Errorf("--target %s: what listens there is no test service: give the address of `urnic conform serve`: %w", o.target, err)
	}
	start := map[string]string{
		"raw":     "start the endpoint there first",
		"rping":   "start `rping -s -P` there first",
		"urnic":   "start `urnic conform serve --listen HOST:PORT` there first",
		"rpcrdma": "start the NFS server there first, and have it listen for RDMA",
	}
	if o.llp == llpRDP {
		start["rping"] = "start `urnic rping -s -P --llp rdp` there first"
		start["urnic"] = "start `urnic conform serve --llp rdp --listen HOST:PORT` there first"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return advise(err, "the target can't be reached at %s%s: %s", o.target, errno(err), start[o.profile])
	}
	return fmt.Errorf("the target can't be reached at %s: %s: %w", o.target, start[o.profile], err)
}

// revive runs the command that brings the target back.
func revive(ctx context.Context, command string, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Stdout, cmd.Stderr = stderr, stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("--revive %q: %w", command, err)
	}
	return nil
}

// describe names the target for the report.
func (o *conformOptions) describe() string {
	switch {
	case o.target == "":
		return "an initiator that connects to " + o.listen
	case o.listen != "" && o.profile != "urnic":
		return o.target + ", and an initiator that connects to " + o.listen
	}
	return o.target
}

// write writes the report in all forms that are asked for.
func (o *conformOptions) write(rep *conformance.Report, stdout io.Writer) error {
	forms := []struct {
		file  string
		write func(io.Writer, *conformance.Report) error
	}{
		{o.json, report.JSON},
		{o.junit, report.JUnit},
		{o.html, report.HTML},
	}
	for _, f := range forms {
		if f.file == "" {
			continue
		}
		if err := writeTo(f.file, stdout, func(w io.Writer) error { return f.write(w, rep) }); err != nil {
			return err
		}
	}
	if o.json == "-" || o.junit == "-" || o.html == "-" {
		return nil
	}
	return report.Text(stdout, rep, report.TextOptions{Verbose: o.verbose, Color: showsColors(stdout)})
}

// writeTo writes a file, or to standard output.
func writeTo(name string, stdout io.Writer, write func(io.Writer) error) (err error) {
	if name == "-" {
		return write(stdout)
	}
	created, err := os.Create(name)
	if err != nil {
		return alwaysTell(err)
	}
	f := &outputFile{created}
	defer func() { err = errors.Join(err, f.Close()) }()
	return write(f)
}

// listCases prints the cases that are selected, and the coverage of the whole suite.
func listCases(w io.Writer, only []string, over conformance.LLP) error {
	groups := cases.All()
	r := conformance.Runner{Groups: groups, Options: conformance.Options{Only: only}}
	if err := r.Check(); err != nil {
		return untested(err)
	}
	n := 0
	for g, c := range r.Selected() {
		if !c.IsFor(over) {
			continue
		}
		needs := "raw and up"
		switch {
		case c.Needs&conformance.NeedRPC != 0:
			needs = "rpcrdma"
		case c.Needs&conformance.NeedService != 0:
			needs = "urnic"
		case c.Needs != 0:
			needs = "rping and up"
		}
		fmt.Fprintln(w, c.ID())
		fmt.Fprintln(w, fillParagraph(c.Title, "    "))
		fmt.Fprintln(w, fillParagraph(fmt.Sprintf("%s; profile %s; target as %s", g, needs, strings.ReplaceAll(c.For().String(), " and ", " or ")), "    "))
		n++
	}
	fmt.Fprintf(w, "\n%s\n\n", plural.Count(n, "case"))
	return report.Coverage(w, conformance.CoverageOf(groups))
}

// toolName names this program, with its version, for the report.
func toolName() string {
	return "urnic " + version.Number
}
