package perf

import (
	"fmt"
	"net"
	"time"

	"urnic/mpa"
)

// A Report is the result of a run, for programs.
type Report struct {
	Urnic  string `json:"urnic"`
	Go     string `json:"go"`
	OS     string `json:"os"`
	Kernel string `json:"kernel,omitempty"`
	CPU    string `json:"cpu,omitempty"`
	Cores  int    `json:"cores"` // that the program may use
	Date   string `json:"date"`

	Op      Op       `json:"op,omitempty"` // not of connections and idle queue pairs
	Test    Test     `json:"test"`
	Poll    Poll     `json:"poll"`
	CRC     bool     `json:"crc"`
	Markers bool     `json:"markers"`
	Inline  bool     `json:"inline"`
	Depth   int      `json:"depth"`
	Rate    float64  `json:"rate,omitempty"` // messages a second that were to be sent
	QPs     []int    `json:"qps"`
	Bidir   bool     `json:"bidir"`
	MULPDU  int      `json:"mulpdu,omitempty"` // bytes
	MSS     int      `json:"mss,omitempty"`    // bytes, of TCP
	MTU     int      `json:"mtu,omitempty"`    // bytes, of the interface
	Rounds  int      `json:"rounds"`
	Notes   []string `json:"notes,omitempty"` // what the figures mean

	Results []Result `json:"results"`
	Error   string   `json:"error,omitempty"` // what went wrong
}

// A Result is what a case came to: the medians of the rounds, of latencies the
// percentiles of all rounds together.
type Result struct {
	Size       int     `json:"size,omitempty"`
	QPs        int     `json:"qps"`
	Iterations uint64  `json:"iterations"` // messages, round trips or connections of all rounds
	Seconds    float64 `json:"seconds"`    // of all rounds

	BytesPerSecond       float64      `json:"bytes_per_second,omitempty"`
	MessagesPerSecond    float64      `json:"messages_per_second,omitempty"`
	Latency              *Percentiles `json:"latency_ns,omitempty"`    // half a round trip, or a whole one: see Notes
	RoundTrip            *Percentiles `json:"round_trip_ns,omitempty"` // a whole one
	Service              *Percentiles `json:"service_ns,omitempty"`    // with a rate: from when a message was really sent
	ConnectionsPerSecond float64      `json:"connections_per_second,omitempty"`
	BytesPerQP           float64      `json:"bytes_per_qp_side,omitempty"`
	GoroutinesPerQP      *float64     `json:"goroutines_per_qp_side,omitempty"`
	AllocsPerOp          *float64     `json:"allocs_per_op,omitempty"` // objects that this process has allocated

	Samples []float64 `json:"samples,omitempty"` // of each round: bytes, messages or connections a second, the median latency, or bytes of an idle queue pair

	Baseline     *BaselineResult  `json:"baseline,omitempty"`  // one of the next, or the only one
	Baselines    []BaselineResult `json:"baselines,omitempty"` // of a stream: with a call for each message, and batched
	Ratio        float64          `json:"ratio,omitempty"`     // to the baseline: the median of those of the rounds
	RatioSamples []float64        `json:"ratio_samples,omitempty"`
	Scaling      float64          `json:"ratio_to_first,omitempty"` // of bandwidth, to the first number of queue pairs

	curve []point // of latency
}

// The kinds of baselines.
const (
	kindPerMessage  = "per-message" // a call that sends for each message
	kindBatched     = "batched"     // calls of the sizes that are fastest, whatever the messages
	kindPingPong    = "ping-pong"
	kindConnections = "connections"
)

// A BaselineResult is what bare TCP came to.
type BaselineResult struct {
	Kind                 string       `json:"kind"` // per-message, batched, ping-pong or connections
	BytesPerSecond       float64      `json:"bytes_per_second,omitempty"`
	MessagesPerSecond    float64      `json:"messages_per_second,omitempty"`
	Latency              *Percentiles `json:"latency_ns,omitempty"`
	RoundTrip            *Percentiles `json:"round_trip_ns,omitempty"`
	ConnectionsPerSecond float64      `json:"connections_per_second,omitempty"`
	WriteSize            int          `json:"write_size,omitempty"` // bytes of each call that sends
	ReadSize             int          `json:"read_size,omitempty"`  // bytes of the buffer of each call that receives
	Samples              []float64    `json:"samples,omitempty"`
	Tries                []Try        `json:"tries,omitempty"` // of the batched one: what decided its sizes, the fastest first
	Ratio                float64      `json:"ratio,omitempty"` // of the result to this baseline: the median of those of the rounds
	RatioSamples         []float64    `json:"ratio_samples,omitempty"`

	curve []point
}

// baselineOf returns what rounds over bare TCP came to.
func baselineOf(kind string, bare Result) BaselineResult {
	return BaselineResult{
		Kind: kind, BytesPerSecond: bare.BytesPerSecond, MessagesPerSecond: bare.MessagesPerSecond, Latency: bare.Latency, RoundTrip: bare.RoundTrip,
		ConnectionsPerSecond: bare.ConnectionsPerSecond, Samples: bare.Samples, curve: bare.curve,
	}
}

// compare makes the ratios of a result to the baseline.
func (b *BaselineResult) compare(r *Result) {
	b.RatioSamples = nil
	for i, s := range r.Samples {
		b.RatioSamples = append(b.RatioSamples, s/b.Samples[i])
	}
	b.Ratio = median(b.RatioSamples)
}

// newReport returns a report with what is known before the run.
func newReport(o *Options) *Report {
	r := &Report{
		Date: time.Now().UTC().Format(time.RFC3339),
		Op:   o.Op, Test: o.Test, Poll: o.Poll, CRC: !o.NoCRC, Markers: o.Markers, Inline: o.Inline, Depth: o.Depth, Rate: o.Rate, QPs: o.QPs,
		Bidir: o.Bidir, Rounds: o.Rounds, Results: []Result{},
	}
	if o.Test == TestConnect || o.Test == TestIdle {
		r.Op = ""
	}
	r.setEnvironment()
	r.Notes = o.notes()
	return r
}

// setPath tells the sizes of the way to the server.
func (r *Report) setPath(s *Segments, local net.Addr, o *Options) {
	r.MSS = s.size()
	r.MTU = mtuOf(local)
	switch {
	case o.MULPDU != 0:
		r.MULPDU = o.MULPDU
	case r.MSS != 0:
		r.MULPDU = mpa.MULPDU(r.MSS, o.Markers)
	}
}

// compare makes b the baseline that the ratio of a result is to.
func (r *Result) compare(b BaselineResult) {
	b.compare(r)
	r.Baseline, r.Ratio, r.RatioSamples = &b, b.Ratio, b.RatioSamples
}

// notes says what the figures mean.
func (o *Options) notes() []string {
	var notes []string
	note := func(s string) { notes = append(notes, s) }
	s := o.setup(o.Sizes[0], o.QPs[0])
	if o.Test == TestLatency {
		switch {
		case o.Rate > 0:
			note(fmt.Sprintf("open loop: %v messages a second, each sent at its time whatever became of those before, up to %d outstanding", o.Rate, o.Depth))
			note("latency is from the intended start of a message until its answer is here, with all that it had to wait: the whole round trip")
		case s.pingPong():
			note("latency is half round trip")
		default:
			note("latency is the whole round trip")
		}
		if o.Rate == 0 {
			note("closed loop: a message is sent when the one before is answered, so that a stall counts as one slow message, however many would have met it; --rate counts them all")
		}
		if o.Op == OpWrite {
			note("each Write has Immediate Data: nothing else reports that it has arrived")
		}
	}
	if o.Test == TestIdle {
		note("seconds are those until all are connected, one after the other")
	}
	if !o.Baseline {
		return notes
	}
	switch o.Test {
	case TestLatency:
		if o.Poll == PollBusy {
			note("baseline: bare TCP, system calls on a non-blocking socket in a busy loop on both sides")
		} else {
			note("baseline: bare TCP, blocking reads and writes of Go on both sides")
		}
	case TestConnect:
		note(fmt.Sprintf("baseline: bare TCP, as many loops that dial and close as RDMA has, and as many that accept and close: %d", o.QPs[0]))
	default:
		note("per-message TCP: bare TCP, one blocking write of Go for each message")
		note("batched TCP: bare TCP, the same bytes as one stream without regard to messages, in blocking calls of the sizes that were fastest")
		note("ratios are urnic's figure divided by the one before them, and their range is over the rounds; all connections of a row are equally old")
	}
	return notes
}
