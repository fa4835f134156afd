package main

import (
	"context"
	"fmt"
	"time"

	"urnic/internal/host/plural"
	"urnic/ulp/rds"
	"urnic/ulp/rds/rdsstress"
)

// A rdsStressView prints how a run goes.
type rdsStressView struct {
	o     *rdsStressOptions
	c     *rdsstress.Control
	out   *lines
	cpu   cpuMeter
	whole cpuMeter
	node  *rds.Node
	last  []rds.CounterInfo // of the node, at the last line of --show-perfdata
}

// begin is called when both sides are ready.
func (v *rdsStressView) begin() {
	v.cpu.begin(v.o.cpu)
	v.whole.begin(v.o.cpu)
	switch {
	case v.o.json || v.o.summary:
		return
	case v.o.perfData:
		v.perfHeading()
		return
	}
	v.out.print(fmt.Sprintf("%4s %6s %6s %10s %10s %10s %7s %8s %5s", "tsks", "tx/s", "rx/s", "tx+rx K/s", "mbi K/s", "mbo K/s", "tx us/c", "rtt us", "cpu %"))
}

// interval is told what has happened since the last line.
func (v *rdsStressView) interval(s rdsstress.Sample) {
	switch {
	case v.o.json || v.o.summary:
	case v.o.perfData:
		v.perfRow(&s)
	default:
		v.out.print(row(&s, v.cpu.percent()))
	}
}

// outlier is told of a request that has taken long.
func (v *rdsStressView) outlier(took time.Duration, from, to uint16) {
	v.out.print(fmt.Sprintf("Found RTT = %d us, from port %d to port %d", took.Microseconds(), from, to))
}

// row is a line of the table. A share of processor time below 0 was not measured.
func row(s *rdsstress.Sample, cpu float64) string {
	rate := func(n uint64) float64 { return float64(n) / max(s.Seconds, 1e-9) }
	micro := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	return fmt.Sprintf("%4d %6.0f %6.0f %10.2f %10.2f %10.2f %7.2f %8.2f %5.2f", s.Tasks, rate(s.RequestsSent), rate(s.RequestsReceived),
		rate(s.BytesSent+s.BytesReceived)/1024, rate(s.RDMAIn)/1024, rate(s.RDMAOut)/1024, micro(s.SendTime), micro(s.RTT), cpu)
}

// rdsStressReport is the JSON object.
type rdsStressReport struct {
	Role        string `json:"role"`
	Local       string `json:"local"`
	Peer        string `json:"peer"`
	Transport   string `json:"transport"`
	Tasks       uint16 `json:"tasks"`
	Depth       uint32 `json:"depth"`
	RequestSize uint32 `json:"request_size"`
	AckSize     uint32 `json:"ack_size"`
	RDMASize    uint32 `json:"rdma_size"`
	Verify      bool   `json:"verify"`

	Seconds float64 `json:"seconds"`
	rdsstress.Totals
	RequestsPerSecond float64            `json:"requests_per_second"`
	BytesPerSecond    float64            `json:"bytes_per_second"`
	SendTime          float64            `json:"send_ns"`
	RTT               *rdsstress.Latency `json:"rtt_ns"`
	Unanswered        int64              `json:"unanswered"`
	Losses            uint64             `json:"connections_lost"`
	Retransmitted     uint64             `json:"retransmitted"`
	Error             string             `json:"error,omitempty"`
}

// end prints what has come of the run. Without a result, it did not take place.
func (v *rdsStressView) end(ctx context.Context, r *rdsstress.Result, err error) {
	if v.o.json {
		v.report(ctx, r, err)
		return
	}
	if r == nil || r.Seconds == 0 {
		return
	}
	if !v.o.summary {
		v.out.print("---------------------------------------------")
	}
	v.out.print(row(&r.Sample, v.whole.percent()) + "  (average)")
	if l := r.Latency(); l != nil {
		v.out.print(fmt.Sprintf("rtt us: min %s, p50 %s, p90 %s, p99 %s, p99.9 %s, p99.99 %s, max %s", rttMicros(l.Min), rttMicros(l.P50),
			rttMicros(l.P90), rttMicros(l.P99), rttMicros(l.P999), rttMicros(l.P9999), rttMicros(l.Max)))
	}
	if r.Reconnects > 0 {
		v.out.print(fmt.Sprintf("%s lost and made again, %s sent again", plural.Count(r.Reconnects, "connection"), plural.Count(r.Retransmitted, "message")))
	}
	if r.Unanswered > 0 {
		v.out.print(plural.Count(int(r.Unanswered), "request") + " without an ack at the end")
	}
	if v.o.histogram {
		v.out.print("RTT histogram")
		for _, b := range r.Buckets() {
			low := b.Low.Microseconds()
			v.out.print(fmt.Sprintf("[%8d - %8d] us %12d", low, 2*low, b.Count))
		}
	}
}

func rttMicros(ns float64) string { return fmt.Sprintf("%.1f", ns/float64(time.Microsecond)) }

func (v *rdsStressView) report(ctx context.Context, r *rdsstress.Result, err error) {
	p := &v.c.Params
	report := rdsStressReport{
		Role: "passive", Local: v.c.Local.String(), Peer: v.c.Peer.String(), Transport: v.o.transport,
		Tasks: p.Tasks, Depth: p.Depth, RequestSize: p.RequestSize, AckSize: p.AckSize, RDMASize: p.RDMASize, Verify: p.On(rdsstress.Verify),
		Error: reason(ctx, err),
	}
	if v.c.Active {
		report.Role = "active"
	}
	if r != nil {
		report.Seconds, report.Totals, report.Unanswered = r.Seconds, r.Totals, r.Unanswered
		report.Losses, report.Retransmitted = r.Reconnects, r.Retransmitted
		report.SendTime, report.RTT = float64(r.SendTime), r.Latency()
		if r.Seconds > 0 {
			report.RequestsPerSecond = float64(r.RequestsSent) / r.Seconds
			report.BytesPerSecond = float64(r.BytesSent+r.BytesReceived+r.RDMAIn+r.RDMAOut) / r.Seconds
		}
	}
	line, err := jsonLine("urnic-rds-stress/1", &report)
	if err == nil {
		v.out.print(line)
	}
}
