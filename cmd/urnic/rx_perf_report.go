package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"urnic/internal/host/plural"
	"urnic/ulp/rx/rxperf"
	"urnic/ulp/rx/rxperf/rawudp"
)

// rxPerfReport is what --json prints.
type rxPerfReport struct {
	Server         string          `json:"server"`
	Transport      string          `json:"transport"`
	Security       string          `json:"security"`
	Mode           string          `json:"mode"`
	Bytes          int64           `json:"bytes"`
	ReplyBytes     int64           `json:"reply_bytes"`
	Parallel       int             `json:"parallel"`
	Conns          int             `json:"connections"`
	Chunk          int             `json:"chunk"`
	Rounds         int             `json:"rounds"`
	Calls          uint64          `json:"calls"`
	Seconds        float64         `json:"seconds"`
	BytesPerSecond float64         `json:"bytes_per_second"`
	CallsPerSecond float64         `json:"calls_per_second"`
	Latency        *rxperf.Latency `json:"latency_ns"`
	Samples        []float64       `json:"samples"`
	Baseline       *rxPerfBaseline `json:"baseline,omitempty"`
	Ratio          float64         `json:"ratio,omitempty"`
	Error          string          `json:"error,omitempty"`
}

// rxPerfBaseline is UDP without Rx.
type rxPerfBaseline struct {
	Size               int             `json:"datagram_bytes"`
	Datagrams          uint64          `json:"datagrams"`
	Seconds            float64         `json:"seconds"`
	BytesPerSecond     float64         `json:"bytes_per_second"`
	DatagramsPerSecond float64         `json:"datagrams_per_second"`
	Latency            *rxperf.Latency `json:"latency_ns,omitempty"`
	Lost               uint64          `json:"lost"`
	Samples            []float64       `json:"samples"`
}

// summary sums the rounds up.
func (o *rxPerfClientOptions) summary(rounds []rxPerfRound) *rxPerfReport {
	r := &rxPerfReport{
		Server: o.addr.String(), Transport: o.transport, Security: o.security(), Mode: o.run.Command.String(), Bytes: o.run.Send,
		ReplyBytes: o.run.Receive, Parallel: o.parallel, Conns: o.conns, Chunk: o.run.Chunk, Rounds: len(rounds),
	}
	if o.run.Command == rxperf.Receive {
		r.Bytes, r.ReplyBytes = o.run.Receive, 0
	}
	var own []*rxperf.Result
	var raw []*rawudp.Result
	for _, round := range rounds {
		own = append(own, round.rx)
		if round.raw != nil {
			raw = append(raw, round.raw)
		}
	}
	if len(own) == 0 {
		return r
	}
	var m *rxperf.Result
	m, r.Samples = middle(own, o.sample)
	r.Calls, r.Seconds, r.BytesPerSecond, r.CallsPerSecond, r.Latency = m.Calls, m.Seconds, m.BytesPerSecond(), m.CallsPerSecond(), m.Latency()
	if len(raw) == 0 {
		return r
	}
	b, samples := middle(raw, o.rawSample)
	r.Baseline = &rxPerfBaseline{
		Size: o.raw().Size, Datagrams: b.Datagrams, Seconds: b.Seconds, BytesPerSecond: b.BytesPerSecond(), DatagramsPerSecond: b.PerSecond(),
		Latency: b.Latency, Lost: b.Lost, Samples: samples,
	}
	if of := o.rawSample(b); of > 0 {
		r.Ratio = o.sample(m) / of
	}
	return r
}

// write prints the report in a table. Without a round there is none.
func (r *rxPerfReport) write(w io.Writer) error {
	if r.Rounds == 0 {
		return nil
	}
	what := fmt.Sprintf("%s of %s", r.Mode, plural.Count(r.Bytes, "byte"))
	if r.Mode == rxperf.RPC.String() {
		what = fmt.Sprintf("rpc of %s, replies of %d", plural.Count(r.Bytes, "byte"), r.ReplyBytes)
	}
	fmt.Fprintf(w, "%s to %s over %s, security %s: %s with %s at a time\n", what, r.Server, r.Transport, r.Security,
		plural.Count(r.Conns, "connection"), plural.Count(r.Parallel, "call"))
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tcalls\tseconds\tMB/s\tcalls/s\tp50 us\tp90 us\tp99 us\tp99.9 us\tmax us\t")
	row := func(name string, n uint64, seconds, bytes, rate float64, l *rxperf.Latency) {
		fmt.Fprintf(t, "%s\t%d\t%.2f\t%.1f\t%.0f\t", name, n, seconds, bytes/1e6, rate)
		if l != nil {
			for _, ns := range []float64{l.P50, l.P90, l.P99, l.P999, l.Max} {
				fmt.Fprintf(t, "%.1f\t", ns/1e3)
			}
		}
		fmt.Fprintln(t)
	}
	row("Rx", r.Calls, r.Seconds, r.BytesPerSecond, r.CallsPerSecond, r.Latency)
	if b := r.Baseline; b != nil {
		row("UDP", b.Datagrams, b.Seconds, b.BytesPerSecond, b.DatagramsPerSecond, b.Latency)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if b := r.Baseline; b != nil {
		_, err := fmt.Fprintf(w, "ratio %.2f to UDP without Rx, in datagrams of %s, %d of which were lost\n", r.Ratio, plural.Count(b.Size, "byte"), b.Lost)
		return err
	}
	return nil
}
