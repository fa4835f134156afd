package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"urnic/internal/capture"
	"urnic/internal/dissect"
	"urnic/ulp/rds/rdsflow"
	"urnic/ulp/rpcrdma/rpcflow"
)

const dissectLong = `Dissect reads captures, finds the iWARP connections in them on any port, takes MPA,
DDP and RDMAP apart, verifies CRC32c, and checks what both sides did against the RFCs
(5040, 5041, 5044, 6581, 7306). A violation names the clause that is broken.

On top of that it follows RPC-over-RDMA (RFC 8166, 8797): transport headers with credits
and chunk lists, which chunk each RDMA Read and Write is for, and the RPC messages, with
what chunks have moved put back in its place, replies matched to calls. NFS and what
belongs to it are shown by name. A connection carries RPC-over-RDMA if a side says so in
its private data, or if the server's port is 20049; --ulp rpcrdma takes all connections
for it, --ulp none looks no further than RDMAP.

It follows RDS 3.1 as well: messages put together from fragments or segments, pings,
congestion maps, acknowledgements, credits, and which key of RDMA_DEST each RDMA operation
uses. It finds RDS over TCP by port 16385, or on any port by its first header; over iWARP
by its private data; and over RoCEv2. --ulp rds takes all connections for it.

It takes pcap and pcapng files, compressed with gzip or not, of Ethernet, Linux cooked, PPP,
raw IP and loopback captures, IPv4 and IPv6, also within VLANs, MPLS, PPPoE, GRE, VXLAN and
other tunnels. What could not be decoded is said. FILE - is standard input. Lost, repeated and
reordered packets are put in order; what is missing is said and is no violation. How
much of the files was read is shown on a terminal, if that takes longer than two seconds.

Output
  (default)         a line for each start-up frame, RDMA message, transport header and
                    message of RPC, violation and note: seconds, packet, connection,
                    > from the client or < from the server
  --rpc, --rds      of connections that carry RPC-over-RDMA or RDS, not the RDMA messages
  --ladder          the exchange between two columns
  --json            one JSON object a line for each of those
  --summary         a table: connections, counts, violations
  --summary --json  exactly one JSON object:

{"connections":[{
  "file", "client", "server":        client is the MPA Initiator; addresses are ip:port
  "mpa":{
    "revision":                      the Reply's; the Request's if there is no Reply
    "crc":                           either side asked for CRCs, so both use them
    "markers_client":                the client set M: it wants markers in what it receives
    "markers_server":                the server set M
    "enhanced":                      the frame named below carries IRD and ORD (RFC 6581)
    "ird","ord":                     the server's, as its Reply settles them; the client's as its
                                     Request asks for if there is no Reply; 0 if not enhanced
    "p2p":                           the peer-to-peer model
    "rejected":                      the Reply rejects the connection
    "private_data_client":           octets of the ULP, without the enhanced block
    "private_data_server"},
  "segments":{"rdma-write", ...}:    FPDUs by the opcode they carry; all twelve names are there
  "messages":{"rdma-write", ...}:    RDMA messages that are there to their end
  "other_segments":                  FPDUs whose opcode is reserved or missing
  "payload_bytes":                   data of the ULP in Writes, Read Responses, Sends, Immediate Data
  "crc_bad":                         FPDUs whose CRC is wrong
  "undecoded_bytes":                 octets that were lost or could not be decoded
  "violations":[{"rule","clause","from","packet","time","detail"}],
  "unlisted_violations":             how many more there are than listed
  "notes":[...]                      what was lost, rejected, ignored or not decoded
  "ignored_segments":{"rst","syn","fin","checksum","ack","data"},   TCP segments left out, as a
                                     TCP ignores them
  "differing_bytes":                 octets that were sent again and read differently
  "transport":                       "iWARP", or what carries the ULP without: "TCP", "RoCEv2"
  "ulp":                             "RPC-over-RDMA", "RDS" or ""
  "ulp_summary":{                    empty without them. Of RPC-over-RDMA:
    "calls","replies","unanswered","rdma_errors","bad_headers",
    "max_open":                      calls that were open at a time
    "credits_asked","credits_granted":  [lowest, highest]
    "procedures":[{"name","program","version","procedure","calls","replies",
      "failed":                      replies of RPC that say no
      "inline_bytes":                of RPC messages in Sends
      "read_chunks","read_chunk_bytes","write_chunks","write_chunk_bytes":  data items moved
      "long_calls","long_replies","long_bytes":  messages that came in chunks themselves
      "shortest_seconds","mean_seconds","longest_seconds"}]   from call to reply
                                     of RDS:
    "rejected",                      by private data
    "client":{...},"server":{        what each has sent
      "data","data_bytes","pings","pongs","probes","congestion_maps",
      "acks",                        alone
      "ack_required","retransmitted",   messages that say so
      "headers",                     one for each message, over RDMA for each fragment
      "credits","bad_headers","max_length","last_sequence","last_ack"}}
}],
"unlisted_connections":              how many more connections there are than listed
"files":[{
  "file",
  "verdict":                         ok: iWARP or RDS, and all of it was checked;
                                     violations: rules were broken;
                                     incomplete: not all could be checked;
                                     no-iwarp: there is neither
  "packets","tcp_packets","tcp_connections","iwarp_connections",
  "direct_connections":              of RDS without iWARP
  "violations",
  "undecoded_bytes":                 of all these connections
  "short_packets","short_bytes":     TCP packets captured in part, and what is missing of them
  "ip_fragments","unknown_link_packets",
  "undecoded_packets":[{"reason","packets"}]   that may hold TCP
  "not_followed":                    TCP connections that were given up too early
  "mid_stream":                      TCP connections whose start is missing, and may be iWARP
  "ignored_segments":{...}           of all TCP connections
  "remarks":[...]                    the same for people, as on standard error
}]}

With --json alone, the last line of each file is {"event":"file", ...} with the same keys.

The exit status is 0 if all files were read to their end, and the connection of --connection
is there; with --strict, only if the verdict on all files is ok as well: there is iWARP, all
of it was checked, and no rule was broken.`

// What --ulp may be.
const (
	ulpAuto = "auto"
	ulpRPC  = "rpcrdma"
	ulpRDS  = "rds"
	ulpNone = "none"
)

// dissectOptions are the flags of urnic dissect.
type dissectOptions struct {
	dissect.Options
	json, ladder, summary, strict bool
	ulp                           string
}

func newDissectCommand() *cobra.Command {
	var o dissectOptions
	cmd := &cobra.Command{
		Use:   "dissect FILE...",
		Short: "Decode and verify the iWARP connections in captures",
		Long:  dissectLong,
		Example: `  urnic dissect capture.pcap                      a line a message
  urnic dissect --ladder capture.pcap             the exchange as a ladder
  urnic dissect --segments --json capture.pcap    every FPDU, for programs
  urnic dissect --summary *.pcap.gz               one table for many files
  urnic dissect --strict --summary capture.pcap   exit status 1 unless all is in order
  urnic dissect --rpc nfs.pcap                    NFS over RDMA: calls, replies, chunks
  urnic dissect --rpc --ladder nfs.pcap           the same as a ladder
  urnic dissect --ulp rpcrdma other.pcap          all of it is RPC-over-RDMA
  urnic dissect --rds --ladder rds.pcap           RDS over iWARP, TCP or RoCEv2
  tcpdump -U -i eth0 -w - tcp | urnic dissect -   live`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no capture to dissect: give FILE..., or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, pair := range [][2]string{{"ladder", "json"}, {"ladder", "summary"}, {"summary", "segments"}, {"summary", "connection"}} {
				if err := exclude(cmd.Flags(), pair[0], pair[1]); err != nil {
					return err
				}
			}
			if o.Connection < 0 {
				return fmt.Errorf("--connection %d: connections are numbered from 1; 0 shows all", o.Connection)
			}
			switch o.ulp {
			case ulpAuto, ulpRPC, ulpRDS, ulpNone:
			default:
				return fmt.Errorf("--ulp %s: there are %s, %s, %s and %s", o.ulp, ulpAuto, ulpRPC, ulpRDS, ulpNone)
			}
			return runDissect(cmd.Context(), o, args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Segments, "segments", false, "show each segment, not only messages")
	f.BoolVar(&o.json, "json", false, "write JSON, one object a line; with --summary, one object")
	f.BoolVar(&o.ladder, "ladder", false, "draw the exchange between two columns")
	f.BoolVar(&o.summary, "summary", false, "only sum up each connection")
	f.BoolVar(&o.strict, "strict", false, "exit with status 1 if a rule is broken, or if not all could be checked")
	f.StringVar(&o.ulp, "ulp", ulpAuto, "the upper layer protocol: "+ulpAuto+", "+ulpRPC+", "+ulpRDS+" or "+ulpNone)
	f.BoolVar(&o.Upper, "rpc", false, "of RPC-over-RDMA, show no RDMA messages, only headers and RPC messages")
	f.BoolVar(&o.Upper, "rds", false, "of RDS, show no RDMA messages, only those of RDS")
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
	p := o.progress(files, stdout, stderr)
	for _, name := range files {
		r, err := dissectFile(ctx, o, name, stdin, w, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
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
		if o.json && !o.summary {
			errs = append(errs, r.WriteJSON(w, name))
		}
	}
	p.end()
	_, err := stderr.Write(remarks.Bytes())
	errs = append(errs, err)
	if o.summary {
		write := summary.WriteTable
		if o.json {
			write = summary.WriteJSON
		}
		errs = append(errs, write(w))
	}
	errs = append(errs, w.Flush())
	if o.Connection > most && read > 0 && ctx.Err() == nil {
		errs = append(errs, fmt.Errorf("--connection %d: %s", o.Connection, howMany(most, files)))
	}
	if o.strict && violations > 0 {
		errs = append(errs, fmt.Errorf("%d violations", violations))
	}
	return errors.Join(errs...)
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

// progress is that of the files' octets. There is none where the end is not
// known, and where it would be in the way of the output.
func (o *dissectOptions) progress(files []string, stdout, stderr io.Writer) *progress {
	if !o.summary && isTerminal(plainWriter(stdout)) {
		return nil
	}
	var total int64
	for _, name := range files {
		s, err := os.Stat(name)
		if name == "-" || err == nil && !s.Mode().IsRegular() {
			return nil
		}
		if err == nil { // what is missing is told when its turn comes
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
	}
	return dissect.AnyULP{&rpcflow.Analyzer{}, &rdsflow.Analyzer{}}
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
