package service

// HelloArgs are those of hello, which opens a session.
type HelloArgs struct {
	Version int `json:"version"`
}

// Hello is the result of hello: who serves, and what it can do.
type Hello struct {
	Version        int    `json:"version"`
	Implementation string `json:"implementation"`
	Release        string `json:"release"` // its version
	LLP            string `json:"llp"`     // what its connections run on: LLPTCP, as if it were empty, or LLPRDP

	Features Features `json:"features"`
	Limits   Limits   `json:"limits"`
}

// What an RNIC's connections run on.
const (
	LLPTCP = "tcp" // MPA over TCP
	LLPRDP = "rdp" // DDP over RDP
)

// Features say what the RNIC can do. A case that needs more does not apply.
type Features struct {
	Revisions        []int    `json:"revisions"` // of MPA
	CRC              []string `json:"crc"`       // policies that it has
	Markers          bool     `json:"markers"`   // it can ask for markers
	PeerToPeer       bool     `json:"peer_to_peer"`
	RTR              []string `json:"rtr"`        // ready-to-receive indications that it knows
	ULPDepths        bool     `json:"ulp_depths"` // it can leave IRD and ORD to the ULP
	MULPDU           bool     `json:"mulpdu"`     // it can be told the MULPDU
	Hold             bool     `json:"hold"`       // a listener can leave requests unanswered
	Atomics          bool     `json:"atomics"`
	ByteOrder        string   `json:"byte_order"` // of an atomic's memory: little or big
	Immediate        bool     `json:"immediate"`
	Invalidate       bool     `json:"invalidate"`        // Send with Invalidate, in either direction
	ReadInvalidate   bool     `json:"read_invalidate"`   // RDMA Read with local invalidation
	Windows          []int    `json:"windows"`           // types of memory windows
	FastRegistration bool     `json:"fast_registration"` // fast_register, and invalidate of regions
	ZeroBased        bool     `json:"zero_based"`
	Base             bool     `json:"base"`      // TOs of a region can begin anywhere
	StreamMR         bool     `json:"stream_mr"` // a region can belong to one stream
	SRQ              bool     `json:"srq"`
	SRQShare         bool     `json:"srq_share"` // per_qp of a shared receive queue
	Requests         bool     `json:"requests"`  // accepted shows the peer's requests, failed ones too
}

// Limits say what a session may hold, and what the RNIC can do at most. Zero
// stands for not at all.
type Limits struct {
	IRD         int    `json:"ird"`
	ORD         int    `json:"ord"`
	PrivateData int    `json:"private_data"` // bytes, with revision 2; 4 more with revision 1
	Message     Uint64 `json:"message"`      // bytes of one message
	SGE         int    `json:"sge"`          // pieces of one SGL
	Inline      int    `json:"inline"`       // bytes of inline data

	Line      int    `json:"line"`       // bytes of a line
	Data      int    `json:"data"`       // bytes of one memory_read, and of one receive without a region
	Timeout   int    `json:"timeout_ms"` // of an operation that waits
	Domains   int    `json:"domains"`
	QPs       int    `json:"qps"`
	SRQs      int    `json:"srqs"`
	Listeners int    `json:"listeners"`
	Depth     int    `json:"depth"`   // requests of one queue
	Entries   int    `json:"entries"` // completions of one queue
	Regions   int    `json:"regions"` // buffers of receives without a region among them
	Windows   int    `json:"windows"`
	Octets    Uint64 `json:"octets"` // of all memory
}

// ConfigureArgs are those of configure: what holds for all connections of the
// session. Zeros stand for the RNIC's defaults.
type ConfigureArgs struct {
	// Revision pins the revision of MPA that listeners accept.
	Revision int `json:"revision,omitempty"`
	// RequestTimeout is how long a listener waits for a Request,
	RequestTimeout int `json:"request_timeout_ms,omitempty"`
	// AnswerTimeout how long a request that is held waits for its answer, and
	AnswerTimeout int `json:"answer_timeout_ms,omitempty"`
	// CloseTimeout how long a stream may take to end.
	CloseTimeout int `json:"close_timeout_ms,omitempty"`
}

// PD is the number of a protection domain; 0 is the session's own.
type PD struct {
	PD int `json:"pd"`
}

// WaitArgs are those of an operation that waits for something of the session.
type WaitArgs struct {
	Timeout int `json:"timeout_ms"` // 0: don't wait
}

// An Event is an asynchronous event.
type Event struct {
	Type    string   `json:"type"`
	QP      int      `json:"qp,omitempty"`
	SRQ     int      `json:"srq,omitempty"`
	Queue   string   `json:"queue,omitempty"` // cq_overflow: send or recv, of the queue pair
	Text    string   `json:"text"`            // for people
	Failure *Failure `json:"failure,omitempty"`
	Lost    uint64   `json:"lost,omitempty"` // events before this one that nobody has fetched
}

// The types of an Event.
const (
	EventClosed          = "closed"           // the connection was closed gracefully
	EventTerminated      = "terminated"       // the peer has sent a Terminate
	EventLost            = "lost"             // the connection was lost or reset
	EventBadClose        = "bad_close"        // something arrived while it was closing
	EventBadLLPClose     = "bad_llp_close"    // the peer closed while work was outstanding
	EventIntegrity       = "integrity"        // CRC or marker error
	EventRemoteOperation = "remote_operation" // the peer broke a rule
	EventProtection      = "protection"       // the peer touched what it may not touch
	EventCatastrophic    = "catastrophic"     // the queue pair has failed for a reason of this side
	EventCQOverflow      = "cq_overflow"      // a completion found no place
	EventSRQLimit        = "srq_limit"        // fewer receives than the limit are left
	EventSRQShare        = "srq_share"        // the peer has taken its whole share of receives
)

// Counters count what the session's device has done.
type Counters struct {
	Connected uint64 `json:"connected"`
	Accepted  uint64 `json:"accepted"`
	Rejected  uint64 `json:"rejected"`
	Dropped   uint64 `json:"dropped"`
	Failed    uint64 `json:"failed"` // start-ups
	Lost      uint64 `json:"lost"`   // streams that ended without a graceful close

	Sent     map[string]Count `json:"sent"` // by message; those that never occurred are left out
	Received map[string]Count `json:"received"`
}

// A Count says how many messages there were, and their bytes above DDP.
type Count struct {
	Messages uint64 `json:"messages"`
	Octets   uint64 `json:"octets"`
}
