package service

// Start is what either side says about the start-up of a connection. What is
// left out takes the RNIC's default.
type Start struct {
	CRC     string   `json:"crc,omitempty"`     // prefer, require or off
	Markers bool     `json:"markers,omitempty"` // ask the peer for markers
	IRD     *int     `json:"ird,omitempty"`     // Reads of the peer, and of this side, outstanding;
	ORD     *int     `json:"ord,omitempty"`     // 0 stands for none
	RTR     []string `json:"rtr,omitempty"`     // send, write, read: that it accepts or can send; none stands for all
	MULPDU  int      `json:"mulpdu,omitempty"`  // in place of what the segment size gives

	PrivateData Hex `json:"private_data,omitempty"`
}

// QPAttr says what a queue pair is like. Zeros stand for the RNIC's defaults.
type QPAttr struct {
	PD          int `json:"pd,omitempty"`
	SRQ         int `json:"srq,omitempty"` // where receives come from; 0: its own queue
	SendDepth   int `json:"send_depth,omitempty"`
	RecvDepth   int `json:"recv_depth,omitempty"`
	SendEntries int `json:"send_entries,omitempty"` // of its completion queues; zero: enough
	RecvEntries int `json:"recv_entries,omitempty"`
}

// What a listener does with requests.
const (
	AnswerAccept = "accept"
	AnswerReject = "reject"
	AnswerHold   = "hold" // leave them to the operation answer
)

// ListenArgs are those of listen.
type ListenArgs struct {
	Start
	Answer           string `json:"answer,omitempty"`  // accept if left out
	MinORD           int    `json:"min_ord,omitempty"` // reject peers that take fewer Reads
	FirstFPDUTimeout int    `json:"first_fpdu_timeout_ms,omitempty"`

	QP    QPAttr `json:"qp,omitzero"`     // of each connection's queue pair
	Recvs []Recv `json:"recvs,omitempty"` // posted to it before it is accepted
}

// Listener is the result of listen.
type Listener struct {
	Listener int    `json:"listener"`
	Address  string `json:"address"`
}

// ListenerArgs are those of close_listener.
type ListenerArgs struct {
	Listener int `json:"listener"`
}

// AcceptedArgs are those of accepted.
type AcceptedArgs struct {
	Listener int `json:"listener"`
	Timeout  int `json:"timeout_ms"`
}

// Accepted is the result of accepted: what has become of a request. A listener
// that rejects has neither QP nor Held.
type Accepted struct {
	QP      int          `json:"qp,omitempty"`
	Held    int          `json:"held,omitempty"` // the number of a request to be answered
	Peer    string       `json:"peer"`
	Request StartRequest `json:"request"`
	Params  *Params      `json:"params,omitempty"`
	IDs     []uint64     `json:"ids,omitempty"` // of the receives that were posted
}

// A StartRequest is the peer's MPA Request.
type StartRequest struct {
	Revision    uint8    `json:"revision"`
	CRC         bool     `json:"crc"`
	Markers     bool     `json:"markers"`
	Enhanced    bool     `json:"enhanced"`
	IRD         uint16   `json:"ird,omitempty"` // the rest of the enhanced block as sent, if it is there
	ORD         uint16   `json:"ord,omitempty"`
	PeerToPeer  bool     `json:"peer_to_peer,omitempty"`
	RTR         []string `json:"rtr,omitempty"`
	PrivateData Hex      `json:"private_data,omitempty"` // the ULP's
}

// Params are what start-up has settled.
type Params struct {
	Role            string   `json:"role"` // initiator or responder
	Revision        uint8    `json:"revision"`
	CRC             bool     `json:"crc"`
	MarkersSent     bool     `json:"markers_sent"` // this side inserts them
	MarkersReceived bool     `json:"markers_received"`
	Enhanced        bool     `json:"enhanced"` // IRD and ORD were exchanged
	IRD             uint16   `json:"ird"`      // of this side
	ORD             uint16   `json:"ord"`
	PeerIRD         uint16   `json:"peer_ird"` // as the peer has sent them
	PeerORD         uint16   `json:"peer_ord"`
	PeerToPeer      bool     `json:"peer_to_peer"`
	RTR             []string `json:"rtr,omitempty"`          // that is sent, or those that are accepted
	PrivateData     Hex      `json:"private_data,omitempty"` // of the peer
}

// AnswerArgs are those of answer.
type AnswerArgs struct {
	Held   int    `json:"held"`
	Answer string `json:"answer"` // accept, reject, or drop: close the connection
	// QP is an idle queue pair for it; 0: one as the listener's arguments say.
	QP int `json:"qp,omitempty"`
	// PrivateData takes the place of the listener's, if it is there.
	PrivateData Hex `json:"private_data,omitempty"`
}

// AnswerDrop closes the connection without a Reply.
const AnswerDrop = "drop"

// ConnectArgs are those of connect.
type ConnectArgs struct {
	Start
	Address      string `json:"address"`            // IP address and port
	Revision     int    `json:"revision,omitempty"` // 0: negotiate
	PeerToPeer   bool   `json:"peer_to_peer,omitempty"`
	ULPDepths    bool   `json:"ulp_depths,omitempty"` // IRD and ORD are the ULP's affair
	ReplyTimeout int    `json:"reply_timeout_ms,omitempty"`
	Settle       int    `json:"settle_ms,omitempty"` // wait so long before the first FPDU

	Use   int    `json:"use,omitempty"` // an idle queue pair in place of a new one
	QP    QPAttr `json:"qp,omitzero"`
	Recvs []Recv `json:"recvs,omitempty"`
}

// Connect is the result of connect, which does not wait.
type Connect struct {
	QP  int      `json:"qp"`
	IDs []uint64 `json:"ids,omitempty"` // of the receives
}

// QPArgs are those of an operation on a queue pair; Timeout is of those that
// wait.
type QPArgs struct {
	QP      int `json:"qp"`
	Timeout int `json:"timeout_ms,omitempty"`
}

// EndArgs are those of disconnect and terminate.
type EndArgs struct {
	QP      int  `json:"qp"`
	Timeout int  `json:"timeout_ms,omitempty"`
	Begin   bool `json:"begin,omitempty"` // don't wait: state and event tell what comes of it
}

// QP is the number of a queue pair.
type QP struct {
	QP int `json:"qp"`
}

// Connected is the result of connected.
type Connected struct {
	Params Params `json:"params"`
}

// StateArgs are those of state.
type StateArgs struct {
	QP      int    `json:"qp"`
	Until   string `json:"until,omitempty"` // wait for this state
	Timeout int    `json:"timeout_ms,omitempty"`
}

// State is the result of state.
type State struct {
	State   string   `json:"state"` // idle, rts, closing, terminating or error
	Failure *Failure `json:"failure,omitempty"`
	Params  *Params  `json:"params,omitempty"` // of the connection that there is or was

	Sent     map[string]Count `json:"sent"` // by message; those that never occurred are left out
	Received map[string]Count `json:"received"`
}

// The states.
const (
	StateIdle        = "idle"
	StateRTS         = "rts"
	StateClosing     = "closing"
	StateTerminating = "terminating"
	StateError       = "error"
)
