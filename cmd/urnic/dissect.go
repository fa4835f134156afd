package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"urnic/internal/capture"
	"urnic/internal/dropin/datagram/datagramflow"
	"urnic/internal/host/plural"
	"urnic/internal/program/dissect"
	"urnic/internal/program/dissect/dissectpage"
	"urnic/ulp/rds/rdsflow"
	"urnic/ulp/rpcrdma/rpcflow"
)

const dissectLong = `Dissect reads captures and finds iWARP connections on any port. It decodes MPA, DDP and RDMAP,
verifies CRC32c, and checks both sides against RFCs 5040, 5041, 5044, 6581 and 7306. A
violation names the broken clause.

RPC-over-RDMA (RFCs 8166, 8797): transport headers with credits and chunk lists, the chunk
of each RDMA Read and Write, RPC messages with the data of their chunks, and replies matched
to calls. NFS and its companions are shown by name. A connection carries RPC-over-RDMA if
the private data of a side says so, or if the server's port is 20049. --ulp rpcrdma assumes
it for all connections; --ulp none decodes nothing above RDMAP.

RDS 3.1: messages reassembled from fragments or segments, pings, congestion maps,
acknowledgements, credits, and the key of RDMA_DEST that each RDMA operation uses. RDS over
TCP is found by port 16385, or on any port by its first header; over iWARP by its private
data; and over RoCEv2. --ulp rds assumes it for all connections.

Rx, the RPC protocol of AFS, over UDP: packets, also those in jumbograms, acknowledgements,
aborts with their codes, challenges and responses, debug and version packets, and calls,
with the names of AFS's operations. Rx is found by the ports of AFS, by those of --rx-port,
or on any port by packets that can't be anything else. --ulp rx assumes it for all UDP. With
the key of a service (--rx-keyfile, --rx-key), what rxkad protects is decrypted and
verified, and the client is named. Rx over an RNIC is found by its private data.

RDP, the Reliable Data Protocol of RFCs 908 and 1151, in both versions: over IP as protocol
27, and over UDP at port 10908, at those of --rdp-port, or on any port by a SYN whose
checksum is right. --ulp rdp assumes it for all UDP. DDP over RDP, at RDP's port 50, is
decoded and checked as DDP over MPA is, in any order of its segments, with its ULP.

Datagrams of UD and UC queue pairs between programs under urnic run, on any port: headers
with QP numbers, Q_Key, operation, group and fragments; damaged and missing datagrams.

Captures are pcap or pcapng files, gzipped or not, of Ethernet, Linux cooked, PPP, raw IP or
loopback, IPv4 and IPv6, also within VLANs, MPLS, PPPoE, GRE, VXLAN and other tunnels. FILE
- is standard input. Repeated and reordered packets are put in order. Dissect reports what
is missing, which is no violation, and what it could not decode. On a terminal it shows its
progress after two seconds.

Output
  (default)         a line for each start-up frame, RDMA message, transport
                    header, RPC message, violation and note: seconds, packet,
                    connection, > from the client or < from the server
  --rpc, --rds      for connections that carry RPC-over-RDMA or RDS: no RDMA
                    messages
  --rx              for Rx: only calls
  --rdp             for RDP: only how connections open and end. DDP over RDP is
                    shown; its segments only with --segments
  --ladder          the exchange between two columns
  --html FILE       a page for a browser: verdict, violations with their
                    clauses, connections, throughput, outstanding Reads and
                    credits over time, and the ladder with a filter
  --json            one JSON object in each line
  --summary         a table: connections, counts, violations
  --summary --json  exactly one JSON object

docs/json.md has the schemas of both. With --json alone, the last line of each file has its
sums.

The exit status is 0 if all files were read to their end, and the connection of --connection
is there. With --strict, it is 0 only if the verdict on each file is ok: there is a
connection of iWARP, RDS, Rx or RDP, everything was checked, and no rule was broken.`

// What --ulp may be.
const (
	ulpAuto = "auto"
	ulpRPC  = "rpcrdma"
	ulpRDS  = "rds"
	ulpRx   = "rx"
	ulpRDP  = "rdp"
	ulpNone = "none"
)

// dissectOptions are the flags of urnic dissect.
type dissectOptions struct {
	dissect.Options
	json, ladder, summary, strict bool
	ulp                           string
	html                          string
	page                          *dissectpage.Page // with html
	rx                            dissectRxFlags
	rdp                           dissectRDPFlags
}

func newDissectCommand() *cobra.Command {
	var o dissectOptions
	cmd := &cobra.Command{
		Use:   "dissect FILE...",
		Short: "Decode and verify the iWARP connections in captures",
		Long:  dissectLong,
		Example: `  urnic dissect capture.pcap                      a line for each message
  urnic dissect --ladder capture.pcap             the exchange as a ladder
  urnic dissect --html page.html capture.pcap     a page for a browser
  urnic dissect --segments --json capture.pcap    every FPDU, for programs
  urnic dissect --summary *.pcap.gz               one table for many files
  urnic dissect --strict --summary capture.pcap   status 1 unless it is ok
  urnic dissect --rpc nfs.pcap                    calls, replies and chunks
  urnic dissect --rpc --ladder nfs.pcap           the same as a ladder
  urnic dissect --ulp rpcrdma other.pcap          all of it is RPC-over-RDMA
  urnic dissect --rds --ladder rds.pcap           RDS over iWARP, TCP or RoCEv2
  urnic dissect --ladder afs.pcap                 Rx: packets and calls of AFS
  urnic dissect --rx --rx-keyfile KeyFileExt afs.pcap   calls, decrypted
  urnic dissect --ladder rdp.pcap                 RDP: segments, open and end
  urnic dissect --segments ddp-over-rdp.pcap      DDP over RDP: segments
  tcpdump -U -i eth0 -w - tcp | urnic dissect -   live`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no capture: give FILE..., or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, pair := range [][2]string{{"html", "json"}, {"html", "ladder"}, {"html", "summary"}, {"ladder", "json"}, {"ladder", "summary"}, {"summary", "segments"}, {"summary", "connection"}} {
				if err := exclude(cmd.Flags(), pair[0], pair[1]); err != nil {
					return err
				}
			}
			if o.html != "" && len(args) != 1 {
				return fmt.Errorf("--html is for one capture, not %d: give one FILE", len(args))
			}
			if o.Connection < 0 {
				return fmt.Errorf("--connection %d: connections are numbered from 1; 0 shows all", o.Connection)
			}
			switch o.ulp {
			case ulpAuto, ulpRPC, ulpRDS, ulpRx, ulpRDP, ulpNone:
			default:
				return fmt.Errorf("--ulp %s: there are %s, %s, %s, %s, %s and %s", o.ulp, ulpAuto, ulpRPC, ulpRDS, ulpRx, ulpRDP, ulpNone)
			}
			if err := errors.Join(o.rx.check(), o.rdp.check()); err != nil {
				return err
			}
			o.Upper = o.Upper || o.rx.calls
			return runDissect(cmd.Context(), o, args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Segments, "segments", false, "show each segment, not only messages")
	f.BoolVar(&o.json, "json", false, "write JSON, one object a line; with --summary, one object")
	f.BoolVar(&o.ladder, "ladder", false, "draw the exchange between two columns")
	f.StringVar(&o.html, "html", "", "write a page to this `FILE` (- is standard output)")
	f.BoolVar(&o.summary, "summary", false, "print a summary of each connection")
	f.BoolVar(&o.strict, "strict", false, "exit with status 1 if a rule is broken, or if not everything could be checked")
	f.StringVar(&o.ulp, "ulp", ulpAuto, "the upper layer protocol: "+ulpAuto+", "+ulpRPC+", "+ulpRDS+", "+ulpRx+", "+ulpRDP+" or "+ulpNone)
	f.BoolVar(&o.Upper, "rpc", false, "for RPC-over-RDMA, show only transport headers and RPC messages")
	f.BoolVar(&o.Upper, "rds", false, "for RDS, show only its messages, no RDMA messages")
	o.rx.add(f)
	o.rdp.add(f)
	f.IntVar(&o.Connection, "connection", 0, "show only the connection of this number in each file (0: all)")
	return cmd
}

// runDissect dissects files. What it found is written even if a file turns out
// to be damaged.
func runDissect(ctx context.Context, o dissectOptions, files []string, stdin io.Reader, stdout, stderr io.Writer) error {
	w := bufio.NewWriterSize(stdout, 64<<10)
	var summary dissect.Summary
	var errs []error
	violations, most, read := 0, 0, 0
	var remarks bytes.Buffer
	if o.html != "" {
		o.page = dissectpage.New(o.Options)
	}
	p := o.progress(files, stdout, stderr)
	for _, name := range files {
		r, err := dissectFile(ctx, o, name, stdin, w, p)
		if err != nil {
			errs = append(errs, unlessEnded(ctx, fmt.Errorf("%s: %w", name, err)))
		}
		if r == nil {
			continue
		}
		violations += r.Violations()
		most = max(most, r.Total.Connections)
		read++
		summary.Add(name, r)
		if err == nil {
			errs = append(errs, o.remark(&remarks, name, r))
		}
		if ctx.Err() != nil {
			break
		}
		switch {
		case o.html != "":
			errs = append(errs, writeTo(o.html, w, func(w io.Writer) error { return o.page.Write(w, toolName(), name, r) }))
		case o.json && !o.summary:
			errs = append(errs, r.WriteJSON(w, name))
		}
	}
	p.end()
	_, err := stderr.Write(remarks.Bytes())
	errs = append(errs, err)
	if o.summary {
		write := summary.WriteTable
		if o.json {
			write = func(w io.Writer) error { return writeSummary(w, &summary) }
		}
		errs = append(errs, write(w))
	}
	errs = append(errs, w.Flush())
	if o.Connection > most && read > 0 && ctx.Err() == nil {
		errs = append(errs, fmt.Errorf("--connection %d: %s", o.Connection, howMany(most, files)))
	}
	if o.strict && violations > 0 {
		errs = append(errs, fmt.Errorf("%s", plural.Count(violations, "violation")))
	}
	return errors.Join(errs...)
}

// writeSummary writes the summary of --json.
func writeSummary(w io.Writer, s *dissect.Summary) error {
	var b bytes.Buffer
	if err := s.WriteJSON(&b); err != nil {
		return err
	}
	return writeJSON(w, "urnic-dissect-summary/1", json.RawMessage(b.Bytes()))
}

// howMany says how many connections there are.
func howMany(n int, files []string) string {
	where := "the capture"
	if len(files) > 1 {
		where = "each of the captures"
	}
	switch n {
	case 0:
		return fmt.Sprintf("there is no iWARP connection in %s", where)
	case 1:
		return fmt.Sprintf("there is only 1 iWARP connection in %s", where)
	}
	return fmt.Sprintf("there are at most %d iWARP connections in %s", n, where)
}

// progress is that of the files' bytes. There is none where the end is not
// known, and where it would be in the way of the output.
func (o *dissectOptions) progress(files []string, stdout, stderr io.Writer) *progress {
	if !o.summary && o.html == "" && isTerminal(plainWriter(stdout)) {
		return nil
	}
	var total int64
	for _, name := range files {
		s, err := os.Stat(name)
		if name == "-" || err == nil && !s.Mode().IsRegular() {
			return nil
		}
		if err == nil { // what is missing is reported when its turn comes
			total += s.Size()
		}
	}
	return newProgress(stderr, total, progressbar.OptionSetDescription("dissect"), progressbar.OptionShowBytes(true))
}

// dissectFile dissects one file, or standard input for "-". The result is nil
// if the file is no capture.
func dissectFile(ctx context.Context, o dissectOptions, name string, stdin io.Reader, w *bufio.Writer, p *progress) (*dissect.Result, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = progressReader{f, p}
	}
	r, err := capture.NewReader(in)
	if err != nil {
		return nil, err
	}
	var h dissect.Handler
	switch {
	case o.page != nil:
		h = o.page.Handle
	case o.summary:
	case o.json:
		h = dissect.JSON(w, o.Options)
	case o.ladder:
		h = dissect.Ladder(w, o.Options)
	default:
		h = dissect.Text(w, o.Options)
	}
	if name == "-" && h != nil { // somebody may watch what comes
		write := h
		h = func(e *dissect.Event) error { return errors.Join(write(e), w.Flush()) }
	}
	return dissect.Config{ULP: o.upper(), Handler: h, Unlisted: !o.summary}.Analyze(ctx, r)
}

// upper returns what follows the upper layer protocol, or nil.
func (o *dissectOptions) upper() dissect.ULP {
	switch o.ulp {
	case ulpNone:
		return nil
	case ulpRPC:
		return &rpcflow.Analyzer{All: true}
	case ulpRDS:
		return &rdsflow.Analyzer{All: true}
	case ulpRx:
		return o.rx.analyzer(true)
	case ulpRDP:
		return o.rdp.analyzer(true)
	}
	return dissect.AnyULP{&rpcflow.Analyzer{}, &rdsflow.Analyzer{}, o.rx.analyzer(false), o.rdp.analyzer(false), &datagramflow.Analyzer{}}
}

// remark writes what a reader of the output may wonder about. With --strict, what was not
// checked is an error.
func (o *dissectOptions) remark(w io.Writer, name string, r *dissect.Result) error {
	var errs []error
	for _, m := range r.Remarks() {
		if o.strict && m.Open {
			errs = append(errs, fmt.Errorf("%s: %s", name, m.Text))
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", name, m.Text)
	}
	return errors.Join(errs...)
}
