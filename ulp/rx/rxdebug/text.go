package rxdebug

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"urnic/internal/host/printable"
	"urnic/ulp/rx/wire"
)

// WriteText writes the report as human-readable text. What the server has written itself is shown with
// its control characters escaped.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Rx server %s", r.Server)
	if r.Protocol != "" {
		fmt.Fprintf(&b, ", debug protocol %s", printable.Escape(r.Protocol))
	}
	fmt.Fprintln(&b)
	if r.Version != nil {
		fmt.Fprintf(&b, "Version: %s\n", printable.Escape(*r.Version))
	}
	if r.Basic != nil && r.asked.Basic {
		r.Basic.text(&b)
	}
	if r.Stats != nil {
		r.Stats.text(&b)
	}
	if r.Conns != nil {
		fmt.Fprintf(&b, "\n%s: %d\n", r.connsHeading(), len(r.Conns))
		for i := range r.Conns {
			r.Conns[i].text(&b)
		}
	}
	if r.Peers != nil {
		fmt.Fprintf(&b, "\nPeers: %d\n", len(r.Peers))
		for i := range r.Peers {
			r.Peers[i].text(&b)
		}
	}
	if len(r.Missing) > 0 {
		fmt.Fprintf(&b, "\nThe server does not know: %s\n", strings.Join(r.Missing, ", "))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (r *Report) connsHeading() string {
	if r.asked.AllConns && !slices.Contains(r.Missing, missingAll) {
		return "Connections"
	}
	return "Connections that do something"
}

// table writes lines of cells that stand below each other.
func table(w io.Writer, rows ...[]any) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, cell)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // to memory
}

func (b *Basic) text(w io.Writer) {
	packets := fmt.Sprintf("%d free", b.FreePackets)
	if b.Packets != nil {
		packets += fmt.Sprintf(" of %d", *b.Packets)
	}
	waits := "nobody waits for one"
	if b.WaitingForPackets {
		waits = "some wait for one"
	}
	calls := fmt.Sprintf("%d carried out", b.CallsExecuted)
	if b.CallsWaiting != nil {
		calls += fmt.Sprintf(", %d waiting for a thread", *b.CallsWaiting)
	}
	if b.IdleThreads != nil {
		calls += fmt.Sprintf(", %d threads idle", *b.IdleThreads)
	}
	if b.CallsWaited != nil {
		calls += fmt.Sprintf(", %d have waited", *b.CallsWaited)
	}
	table(w,
		[]any{"Packets:", fmt.Sprintf("%s, %d reclaimed, %s", packets, b.PacketReclaims, waits)},
		[]any{"Calls:", calls},
		[]any{"Descriptors:", fmt.Sprintf("%d used", b.UsedFDs)},
	)
}

func (s *Stats) text(w io.Writer) {
	fmt.Fprintln(w, "\nStatistics:")
	d, f, r, o := &s.Data, &s.Buffers, &s.Reads, &s.Objects
	greedy := "the socket has buffers of the usual size"
	if f.Greedy {
		greedy = "the socket has large buffers"
	}
	bogus := fmt.Sprintf("%d too short", r.Bogus)
	if r.BogusHost != "" {
		bogus += fmt.Sprintf(" (the last from %s)", r.BogusHost)
	}
	table(w,
		[]any{"  data read", fmt.Sprintf("%d, and %d duplicates, %d of no call, %d of a call that was over", d.DataRead, d.Duplicates, d.Spurious, d.IgnoredDally)},
		[]any{"  data sent", fmt.Sprintf("%d, and %d again, %d of them for an acknowledgement; %d not again, as acknowledged", d.DataSent, d.DataResent, d.DataPushed, d.IgnoredAcked)},
		[]any{"  acknowledgements", fmt.Sprintf("%d read, %d sent, %d pings sent", d.AcksRead, d.AcksSent, d.PingsSent)},
		[]any{"  aborts, busies", fmt.Sprintf("%d aborts sent, %d busies sent, %d calls refused as too many waited", d.AbortsSent, d.BusiesSent, d.Busies)},
		[]any{"  failures", fmt.Sprintf("%d of sending, %d fatal errors", d.SendFailures, d.FatalErrors)},
		[]any{"  round-trip time", fmt.Sprintf("mean %.3f ms, min %.3f ms, max %.3f ms, total %.3f s, %d samples", 1e3*s.RTT.Mean, 1e3*s.RTT.Min, 1e3*s.RTT.Max, s.RTT.Total, s.RTT.Samples)},
		[]any{"  there are", fmt.Sprintf("%d server connections, %d client connections, %d peers, %d calls, %d of them free", o.ServerConns, o.ClientConns, o.Peers, o.Calls, o.FreeCalls)},
		[]any{"  packet buffers", fmt.Sprintf("%d requests; failed: receive %d and %d, send %d and %d, special %d; %s", f.Requests, f.ReceiveFailed, f.ReceiveCbufFailed, f.SendFailed, f.SendCbufFailed, f.SpecialFailed, greedy)},
		[]any{"  reads", fmt.Sprintf("%s, %d without a packet, %d without a buffer; %d selects, %d to send", bogus, r.NoPacket, r.NoBuffers, d.SocketSelects, d.SendSelects)},
	)
	rows := [][]any{{"  packets", "read", "sent"}}
	for t := wire.TypeData; t.Known(); t++ {
		if name := t.String(); s.Packets.Read[name] != 0 || s.Packets.Sent[name] != 0 {
			rows = append(rows, []any{"  " + name, s.Packets.Read[name], s.Packets.Sent[name]})
		}
	}
	table(w, rows...)
}

// counted is a number with its noun.
func counted[T uint16 | uint32 | uint64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (c *Conn) text(w io.Writer) {
	id := c.CID
	if c.Epoch != "" {
		id = c.Epoch + "/" + id
	}
	fmt.Fprintf(w, "%s, %s side, %s, serial %d, security index %d, NAT MTU %d%s", c.Peer, c.Side, id, c.Serial, c.Index, c.NatMTU, joined(c.Flags))
	if c.Error != 0 {
		fmt.Fprintf(w, ", ended by %v", wire.Code(c.Error))
	}
	fmt.Fprintln(w)
	if s := c.Security; s != nil {
		fmt.Fprintf(w, "  %s level %s%s", s.Class, s.Level, joined(s.Flags))
		if s.Expires != "" {
			fmt.Fprintf(w, ", until %s", s.Expires)
		}
		fmt.Fprintf(w, "; received %s in %s, sent %s in %s\n", counted(s.BytesReceived, "byte"), counted(s.PacketsReceived, "packet"),
			counted(s.BytesSent, "byte"), counted(s.PacketsSent, "packet"))
	}
	for i, k := range c.Calls {
		if k.Number == 0 && k.Mode == "" {
			continue // the channel has had no call
		}
		fmt.Fprintf(w, "  channel %d: call %d, %s", i, k.Number, k.State)
		if k.Mode != "" {
			fmt.Fprintf(w, ", %s%s", k.Mode, joined(k.Flags))
		}
		for _, q := range k.Queues {
			fmt.Fprintf(w, ", has %s", q)
		}
		fmt.Fprintln(w)
	}
}

// joined is a list behind other words.
func joined(flags []string) string {
	if len(flags) == 0 {
		return ""
	}
	return " (" + strings.Join(flags, ", ") + ")"
}

func (p *Peer) text(w io.Writer) {
	since := "in use"
	if p.IdleSince != "" {
		since = "idle since " + p.IdleSince
	}
	fmt.Fprintf(w, "%s, %s, %s\n", p.Peer, counted(p.References, "reference"), since)
	fmt.Fprintf(w, "  sent %s and %d again, %s; received %s\n", counted(p.Sent, "packet"), p.Resent, counted(p.BytesSent, "byte"), counted(p.BytesReceived, "byte"))
	fmt.Fprintf(w, "  RTT %.3f ms, deviation %.3f ms, timeout %.3f s; congestion window %d (change %d)\n", p.RTT, p.Deviation, p.Timeout, p.CongWindow, p.Congestions)
	fmt.Fprintf(w, "  MTU %d, of the interface %d, behind NAT %d, maximum %d; jumbograms of %d, interface %d, maximum %d\n", p.MTU, p.IfMTU, p.NatMTU, p.MaxMTU, p.Jumbo, p.IfJumbo, p.MaxJumbo)
	fmt.Fprintf(w, "  skew in %d, out %d; bursts of %d, %d left, %.3f s apart, rate flag %d\n", p.InSkew, p.OutSkew, p.BurstSize, p.Burst, p.BurstWait, p.RateFlag)
}
