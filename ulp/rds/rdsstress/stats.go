package rdsstress

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"urnic/ulp/rds"
)

// Totals are what a side has counted.
type Totals struct {
	RequestsSent     uint64 `json:"requests_sent"`
	RequestsReceived uint64 `json:"requests_received"`
	AcksSent         uint64 `json:"acks_sent"`
	AcksReceived     uint64 `json:"acks_received"`
	BytesSent        uint64 `json:"bytes_sent"`
	BytesReceived    uint64 `json:"bytes_received"`
	RDMAIn           uint64 `json:"rdma_bytes_in"`  // into this side's memory
	RDMAOut          uint64 `json:"rdma_bytes_out"` // out of it
}

// A Sample is what has happened in an interval.
type Sample struct {
	Tasks   int
	Seconds float64
	Totals
	SendTime time.Duration // mean, of a call that sends a request
	RTT      time.Duration // mean, from a request to its acknowledgement
}

// A Latency says how long requests took to be acknowledged, in nanoseconds.
type Latency struct {
	Min   float64 `json:"min"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p99_9"`
	P9999 float64 `json:"p99_99"`
	Max   float64 `json:"max"`
	Mean  float64 `json:"mean"`
}

// A Result describes a run.
type Result struct {
	Sample            // from the first message that came to the end
	Unanswered int64  // requests that were outstanding when the run ended
	All        Totals // with what came after the end was decided
	// Reconnects counts the connections that were lost and made again, from the first message that came until the
	// end was decided. So those do not count that set-up has cost, or that a side has ended with its run.
	Reconnects    uint64
	Retransmitted uint64 // messages that were sent again, in the same time

	latency *hdrhistogram.Histogram
}

// Latency returns how long requests took; nil if none was acknowledged.
func (r *Result) Latency() *Latency {
	h := r.latency
	if h.TotalCount() == 0 {
		return nil
	}
	at := func(p float64) float64 { return float64(h.ValueAtPercentile(p)) }
	return &Latency{
		Min: float64(h.Min()), P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), P9999: at(99.99),
		Max: float64(h.Max()), Mean: h.Mean(),
	}
}

// A Bucket counts the requests that took at least Low, and less than twice of it.
type Bucket struct {
	Low   time.Duration
	Count int64
}

// Buckets returns how many requests took how long, in powers of two of a microsecond; the
// first has those that took less than 2 µs.
func (r *Result) Buckets() []Bucket {
	var list []Bucket
	for _, bar := range r.latency.Distribution() {
		i := 0
		for us := bar.From / 1000; us > 1; us >>= 1 {
			i++
		}
		for len(list) <= i && bar.Count > 0 {
			list = append(list, Bucket{Low: time.Microsecond << len(list)})
		}
		if bar.Count > 0 {
			list[i].Count += bar.Count
		}
	}
	return list
}

// longest is the longest time that the histogram holds.
const longest = time.Minute

// stats count while a run is in progress.
type stats struct {
	requestsSent, requestsReceived, acksSent, acksReceived atomic.Uint64
	bytesSent, bytesReceived, rdmaIn, rdmaOut              atomic.Uint64
	sendTime, rtt                                          atomic.Int64

	node *rds.Node // whose counters are read

	mu      sync.Mutex
	latency *hdrhistogram.Histogram
	begun   time.Time // zero before the first message has come
	last    reading   // at the last sample
	zero    reading   // at the beginning
	end     *reading  // when the end was decided
}

// A reading is what the counters say at a moment.
type reading struct {
	Totals
	sendTime, rtt                     time.Duration
	reconnects, losses, retransmitted uint64 // of the node; only of readAll
	at                                time.Time
}

func (s *stats) init(node *rds.Node) {
	s.node = node
	s.latency = hdrhistogram.New(1, int64(longest), 3)
}

// readAll is read with the counters of the node, which take more time.
func (s *stats) readAll() reading {
	r := s.read()
	for _, c := range s.node.Info(0).Counters {
		switch c.Name {
		case "reconnects":
			r.reconnects = c.Value
		case "losses":
			r.losses = c.Value
		case "retransmitted":
			r.retransmitted = c.Value
		}
	}
	return r
}

func (s *stats) read() reading {
	return reading{
		Totals: Totals{
			RequestsSent: s.requestsSent.Load(), RequestsReceived: s.requestsReceived.Load(),
			AcksSent: s.acksSent.Load(), AcksReceived: s.acksReceived.Load(),
			BytesSent: s.bytesSent.Load(), BytesReceived: s.bytesReceived.Load(),
			RDMAIn: s.rdmaIn.Load(), RDMAOut: s.rdmaOut.Load(),
		},
		sendTime: time.Duration(s.sendTime.Load()), rtt: time.Duration(s.rtt.Load()), at: time.Now(),
	}
}

// since returns what has happened between two readings.
func (b *reading) since(a *reading) Sample {
	s := Sample{
		Seconds: b.at.Sub(a.at).Seconds(),
		Totals: Totals{
			b.RequestsSent - a.RequestsSent, b.RequestsReceived - a.RequestsReceived,
			b.AcksSent - a.AcksSent, b.AcksReceived - a.AcksReceived,
			b.BytesSent - a.BytesSent, b.BytesReceived - a.BytesReceived,
			b.RDMAIn - a.RDMAIn, b.RDMAOut - a.RDMAOut,
		},
	}
	if s.RequestsSent > 0 {
		s.SendTime = (b.sendTime - a.sendTime) / time.Duration(s.RequestsSent)
	}
	if s.AcksReceived > 0 {
		s.RTT = (b.rtt - a.rtt) / time.Duration(s.AcksReceived)
	}
	return s
}

// begin is notified when the first message has come.
func (s *stats) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zero = s.readAll()
	s.last, s.begun = s.zero, s.zero.at
}

// freeze is notified when the end is decided.
func (s *stats) freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun.IsZero() {
		s.end = new(s.readAll())
	}
}

func (s *stats) sample() Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.read()
	sample := now.since(&s.last)
	s.last = now
	return sample
}

func (s *stats) sent(op Op, n int, took time.Duration) {
	s.bytesSent.Add(uint64(n))
	if op == Ack {
		s.acksSent.Add(1)
		return
	}
	s.requestsSent.Add(1)
	s.sendTime.Add(int64(took))
}

func (s *stats) received(op Op, n int) {
	s.bytesReceived.Add(uint64(n))
	if op == Ack {
		s.acksReceived.Add(1)
		return
	}
	s.requestsReceived.Add(1)
}

// answered takes the time that a request took.
func (s *stats) answered(d time.Duration) {
	s.rtt.Add(int64(d))
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.latency.RecordValue(int64(min(max(d, 1), longest))) // which it has room for
}

// result returns what has come of the run.
func (r *run) result() *Result {
	s := &r.stats
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.readAll()
	end := &all
	if s.end != nil {
		end = s.end
	}
	out := &Result{Unanswered: r.pending.Load(), All: all.Totals, latency: s.latency}
	if !s.begun.IsZero() {
		out.Sample = end.since(&s.zero)
		// Losses has links that carried nothing, too: those that a node makes to have the other one dial. Reconnects has paths
		// that an earlier run over the same node has lost.
		out.Reconnects = min(end.reconnects-s.zero.reconnects, end.losses-s.zero.losses)
		out.Retransmitted = end.retransmitted - s.zero.retransmitted
	}
	out.Tasks = int(r.c.Params.Tasks)
	return out
}
