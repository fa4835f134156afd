package main

// A reading is what one run of a program says of itself. What the run does not
// measure is zero.
type reading struct {
	Size                 int     `json:"size,omitempty"` // bytes of a message
	QPs                  int     `json:"qps,omitempty"`
	BytesPerSecond       float64 `json:"bytes_per_second,omitempty"`
	MessagesPerSecond    float64 `json:"messages_per_second,omitempty"`
	ConnectionsPerSecond float64 `json:"connections_per_second,omitempty"`

	// LatencyNS is the mean time from a message's post to its arrival: half a
	// round trip. MedianNS is the median of that.
	LatencyNS float64 `json:"latency_ns,omitempty"`
	MedianNS  float64 `json:"median_ns,omitempty"`

	// StartNS is how long a program lasts that only starts and ends.
	StartNS float64 `json:"start_ns,omitempty"`

	BytesPerQPSide float64  `json:"bytes_per_qp_side,omitempty"`
	AllocsPerOp    *float64 `json:"allocs_per_op,omitempty"`

	// Baseline is what urnic perf measured of raw TCP in the same run, and Ratio
	// what it makes of the two.
	Baseline *reading `json:"baseline,omitempty"`
	Ratio    float64  `json:"ratio,omitempty"`

	// Streams are what it measured of raw TCP if that is a stream, by its kind: with a
	// write for each message, and batched.
	Streams map[string]stream `json:"streams,omitempty"`

	// Seconds is how long the timed part took.
	Seconds float64 `json:"seconds,omitempty"`
}

// A stream is a stream of raw TCP beside urnic.
type stream struct {
	reading
	WriteSize int `json:"write_size"` // bytes of a call
	ReadSize  int `json:"read_size"`
	// Slowest and Fastest are the range of the tries that decided for these sizes, in
	// bytes a second; 0 of a stream whose sizes follow from the messages.
	Slowest float64 `json:"slowest_try,omitempty"`
	Fastest float64 `json:"fastest_try,omitempty"`
}

// The kinds of streams, as urnic perf calls them.
const (
	perMessage = "per-message"
	batched    = "batched"
)

// A metric is one of the figures of a reading.
type metric struct {
	name string
	of   func(reading) float64
	text func(float64) string
}

var (
	bandwidth   = metric{"bandwidth", func(r reading) float64 { return r.BytesPerSecond }, bytesText}
	messageRate = metric{"message rate", func(r reading) float64 { return r.MessagesPerSecond }, rateText}
	connectRate = metric{"connection rate", func(r reading) float64 { return r.ConnectionsPerSecond }, connectText}
	latency     = metric{"latency", func(r reading) float64 { return r.LatencyNS }, timeText}
	medianTime  = metric{"median latency", func(r reading) float64 { return r.MedianNS }, timeText}
	startTime   = metric{"time to start and end", func(r reading) float64 { return r.StartNS }, millisText}
	idleMemory  = metric{"memory of an idle QP and side", func(r reading) float64 { return r.BytesPerQPSide }, memoryText}
)
