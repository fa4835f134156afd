package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"urnic/internal/host/plural"
	"urnic/internal/host/printable"
	"urnic/ulp/rds"
	"urnic/ulp/rds/rdsinfo"
)

// write prints a node in tables, of which each has a heading.
func (o *rdsInfoOptions) write(w io.Writer, r *rdsinfo.Report) error {
	fmt.Fprintln(w, title(r))
	n, all := r.Node, o.all()
	var err error
	table := func(wanted bool, heading, columns string, rows func(row func(cells ...any))) {
		if !wanted && !all || err != nil {
			return
		}
		fmt.Fprintf(w, "\n%s:\n", heading)
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, strings.ReplaceAll(columns, " ", "\t"))
		rows(func(cells ...any) {
			for i, c := range cells {
				if i > 0 {
					fmt.Fprint(t, "\t")
				}
				fmt.Fprint(t, printable.Column(fmt.Sprint(c)))
			}
			fmt.Fprintln(t)
		})
		err = t.Flush()
	}
	table(o.sockets, "Sockets", "Port SndBuf Unsent RcvBuf Unread Bytes Congested", func(row func(...any)) {
		for _, s := range n.Sockets {
			row(s.Port, s.SendBuffer, s.Unsent, s.ReceiveBuffer, s.Unread, s.UnreadBytes, yesNo(s.Congested))
		}
	})
	more := func(columns, verbose string) string {
		if o.verbose {
			return columns + verbose
		}
		return columns
	}
	cells := func(cells []any, verbose ...any) []any {
		if o.verbose {
			return append(cells, verbose...)
		}
		return cells
	}
	table(o.connections, "Connections", more("Peer Transport Tos Path NextTX Acked NextRX Unsent Unacked Flags", " Generation Unread"), func(row func(...any)) {
		for _, c := range n.Connections {
			for _, p := range c.Paths {
				row(cells([]any{
					c.Peer, c.Transport, c.TOS, fmt.Sprintf("%d/%s", p.Index, known(c.Negotiated)), p.NextTX, p.Acked, p.NextRX,
					p.Unsent + waiting(&c, &p), p.Unacked, pathFlags(&p),
				}, fmt.Sprintf("%08x", c.Generation), c.Held)...)
			}
		}
	})
	if (o.connections || all) && err == nil {
		err = writeFailures(w, n)
	}
	links := func(transport string, credits bool) func(row func(...any)) {
		return func(row func(...any)) {
			for _, c := range n.Connections {
				for _, p := range c.Paths {
					if c.Transport != transport {
						continue
					}
					line := []any{c.Peer, c.TOS, p.Index, p.State, p.Links, p.Tries, retry(&p), yesNo(p.Paused)}
					if credits {
						line = cells(line, yesNo(p.FlowControl), p.Credit, p.Owed)
					}
					row(line...)
				}
			}
		}
	}
	const linkColumns = "Peer Tos Path State Links Tries Retry Waits"
	if has := slices.Contains(n.Transports, "tcp"); has || o.tcp {
		table(o.tcp, "TCP links", linkColumns, links("tcp", false))
	}
	if has := slices.Contains(n.Transports, "iwarp"); has || o.iwarp {
		table(o.iwarp, "iWARP links", more(linkColumns, " FlowControl Credit Owed"), links("iwarp", true))
	}
	queue := func(wanted bool, heading string, q *rds.QueueInfo) {
		if q.Total > len(q.Messages) {
			heading += fmt.Sprintf(" (the first %d of %d)", len(q.Messages), q.Total)
		}
		table(wanted, heading, more("From To Seq Bytes Tos Transport Path", " Again"), func(row func(...any)) {
			for _, m := range q.Messages {
				row(cells([]any{m.From, m.To, m.Sequence, m.Bytes, m.TOS, m.Transport, m.Path}, yesNo(m.Retransmit))...)
			}
		})
	}
	queue(o.send, "Send queue", &n.Send)
	queue(o.retransmit, "Retransmit queue", &n.Retransmit)
	queue(o.receive, "Receive queue", &n.Receive)
	table(o.congestion, "Congested ports", "Node Ports", func(row func(...any)) {
		row(n.Addr, ports(n.Congested))
		for _, c := range n.Connections {
			if len(c.Congested) > 0 {
				row(c.Peer, ports(c.Congested))
			}
		}
	})
	table(o.memory, "Memory", "Of Bytes Limit", func(row func(...any)) {
		row("messages to be sent or acknowledged", n.Memory.Sent, "by socket")
		row("messages to be read", n.Memory.Received, n.Memory.ReceivedLimit)
		for _, c := range n.Connections {
			if c.Held > 0 {
				row(fmt.Sprintf("of these, from %v over %s", c.Peer, c.Transport), c.Held, n.Memory.PeerLimit)
			}
		}
		if n.Memory.Receives > 0 {
			row("receives that are posted", n.Memory.Receives, "by connection")
		}
	})
	table(o.counters, "Counters", "Name Value", func(row func(...any)) {
		for _, c := range n.Counters {
			row(c.Name, c.Value)
		}
	})
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}

// retry says when a path tries to connect again.
func retry(p *rds.PathInfo) string {
	if p.Retry == nil {
		return "-"
	}
	return fmt.Sprintf("%dms", *p.Retry)
}

// writeFailures says of the connections that are not there why.
func writeFailures(w io.Writer, n *rds.Info) error {
	for _, c := range n.Connections {
		for _, p := range c.Paths {
			if p.Error == "" {
				continue
			}
			line := fmt.Sprintf("%v path %d: %s", c.Peer, p.Index, p.Error)
			if p.Tries > 0 {
				line += fmt.Sprintf(" (%s)", plural.Count(p.Tries, "try"))
			}
			if p.Retry != nil {
				line += fmt.Sprintf(", again in %d ms", *p.Retry)
			}
			if _, err := fmt.Fprintln(w, printable.Escape(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

// waiting is how many messages wait until the number of paths is known: they count with path 0.
func waiting(c *rds.ConnectionInfo, p *rds.PathInfo) int {
	if p.Index == 0 {
		return c.Waiting
	}
	return 0
}

func known(paths int) string {
	if paths == 0 {
		return "?"
	}
	return strconv.Itoa(paths)
}

// pathFlags are the flags of rds-info, and p if the path waits for memory.
func pathFlags(p *rds.PathInfo) string {
	flags := []byte("---")
	if p.Unsent > 0 {
		flags[0] = 's'
	}
	switch p.State {
	case "connecting":
		flags[1] = 'c'
	case "up":
		flags[2] = 'C'
	}
	if p.Paused {
		flags = append(flags, 'p')
	}
	return string(flags)
}

func ports(list []uint16) string {
	if len(list) == 0 {
		return "none"
	}
	words := make([]string, len(list))
	for i, p := range list {
		words[i] = strconv.Itoa(int(p))
	}
	return strings.Join(words, ",")
}
