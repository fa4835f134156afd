package perf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"urnic/internal/host/plural"
	"urnic/mpa"
	"urnic/rnic"
	"urnic/stag"
)

// Version is that of the control messages. Both sides must speak the same; the
// client says it when it connects.
const Version = 2

// maxControl is how many bytes a control message may have.
const maxControl = 4 << 10

// The control messages, by sender them. Each of the client's has one answer,
// which may be an error; a setup has a second one, when all is connected.
const (
	msgSetup  = "setup"  // client: make queue pairs and memory
	msgRound  = "round"  // client: get ready for a round of requests
	msgStop   = "stop"   // client: the round is over, what has become of it?
	msgRemove = "remove" // client: give the queue pairs up

	msgRaw      = "raw"       // client: take connections over bare TCP
	msgRawRound = "raw-round" // client: get ready for a round on some of those
	msgRawClose = "raw-close" // client: give all of those up

	msgReady     = "ready"     // server: to setup: connect now
	msgConnected = "connected" // server: and then: all are here
	msgRunning   = "running"   // server: to round and raw-round
	msgResult    = "result"    // server: to stop
	msgRemoved   = "removed"   // server: to remove and raw-close
	msgListening = "listening" // server: to raw: at this port
	msgError     = "error"     // server: what is wrong, human-readable; it hangs up
)

// A message is a control message: one JSON object in one Send.
type message struct {
	Type     string    `json:"type"`
	Setup    *setup    `json:"setup,omitempty"`
	Memory   *memories `json:"memory,omitempty"` // setup, ready: of the one that says it
	Round    *round    `json:"round,omitempty"`
	Made     uint64    `json:"made,omitempty"` // stop: how many connections the client has made
	Raw      *rawSetup `json:"raw,omitempty"`
	RawRound *rawRound `json:"raw_round,omitempty"`
	Port     int       `json:"port,omitempty"`
	Result   *result   `json:"result,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// A setup says what queue pairs a case has, and what they do.
type setup struct {
	Op          Op   `json:"op"`
	Test        Test `json:"test"`
	Poll        Poll `json:"poll"`
	Size        int  `json:"size"`
	QPs         int  `json:"qps"`
	Depth       int  `json:"depth"`
	SignalEvery int  `json:"signal_every"`
	Inline      bool `json:"inline,omitempty"`
	Bidir       bool `json:"bidir,omitempty"`
	Idle        bool `json:"idle,omitempty"`  // the queue pairs are never used
	Rated       bool `json:"rated,omitempty"` // latency: messages go by a schedule, several at a time
	NoCRC       bool `json:"no_crc,omitempty"`
	Markers     bool `json:"markers,omitempty"`
	MULPDU      int  `json:"mulpdu,omitempty"`
	Apart       bool `json:"apart,omitempty"` // messages do not overlap
}

// memories are the regions of one side, of which each queue pair has a part.
type memories struct {
	Source remote `json:"source"` // of RDMA Reads
	Sink   remote `json:"sink"`   // of RDMA Writes and atomics
}

// A remote is memory as it is described to the other side.
type remote struct {
	STag uint32 `json:"stag"`
	TO   uint64 `json:"to"`
}

func remoteOf(m *rnic.MR) remote {
	if m == nil {
		return remote{}
	}
	r := m.Remote(0)
	return remote{uint32(r.STag), r.TO}
}

func (r remote) at(off int) rnic.Remote {
	return rnic.Remote{STag: stag.STag(r.STag), TO: r.TO + uint64(off)}
}

// A round says how long the requests continue.
type round struct {
	Seed       uint64        `json:"seed"` // of the pattern of all that is sent
	Iterations uint64        `json:"iterations,omitempty"`
	Duration   time.Duration `json:"duration,omitempty"`
}

// A result is what the server has to say of a round.
type result struct {
	Messages uint64 `json:"messages"`         // that the server has seen to arrive, or the connections
	Octets   uint64 `json:"octets,omitempty"` // that have arrived over bare TCP
	Sent     uint64 `json:"sent,omitempty"`   // messages that the server has sent, or bytes over bare TCP
}

func (m *message) encode() ([]byte, error) { return json.Marshal(m) }

// decode parses a control message of the other side. It takes nothing that it
// does not know: the meaning of the rest might depend on it.
func decode(b []byte) (*message, error) {
	if len(b) > maxControl {
		return nil, fmt.Errorf("a control message of %s came; the most is %d", plural.Count(len(b), "byte"), maxControl)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	m := new(message)
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("a control message can't be understood; use the same urnic on both sides: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows a control message; use the same urnic on both sides")
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// check makes sure that a message has what its type promises.
func (m *message) check() error {
	var has bool
	switch m.Type {
	case msgSetup:
		has = m.Setup != nil && m.Memory != nil
	case msgReady:
		has = m.Memory != nil
	case msgRound:
		has = m.Round != nil
	case msgRaw:
		has = m.Raw != nil
	case msgRawRound:
		has = m.RawRound != nil
	case msgListening:
		has = m.Port > 0 && m.Port < 1<<16
	case msgResult:
		has = m.Result != nil
	case msgError:
		has = m.Error != ""
	case msgStop, msgRemove, msgRawClose, msgConnected, msgRunning, msgRemoved:
		has = true
	default:
		return fmt.Errorf("a control message of the unknown type %q came: use the same urnic on both sides", m.Type)
	}
	if !has {
		return fmt.Errorf("a %s message came that lacks something: use the same urnic on both sides", m.Type)
	}
	return nil
}

// check refuses what is out of bounds. memory is how many bytes a case may
// take on one side.
func (s *setup) check(memory uint64) error {
	switch {
	case !slices.Contains(ops, s.Op):
		return fmt.Errorf("operation %q: must be %s", s.Op, choice(ops))
	case !slices.Contains(tests, s.Test):
		return fmt.Errorf("test %q: must be %s", s.Test, choice(tests))
	case !slices.Contains(polls, s.Poll):
		return fmt.Errorf("polling %q: must be %s", s.Poll, choice(polls))
	case s.Size < 1 || s.Size > MaxSize:
		return fmt.Errorf("size %d: must be 1 to %s", s.Size, sizeText(MaxSize))
	case s.QPs < 1 || s.QPs > MaxQPs:
		return fmt.Errorf("%d queue pairs: must be 1 to %d", s.QPs, MaxQPs)
	case s.Test == TestConnect && s.QPs > MaxConnecting:
		return errConnecting(s.QPs)
	case s.Depth < 1 || s.Depth > MaxDepth:
		return fmt.Errorf("depth %d: must be 1 to %d", s.Depth, MaxDepth)
	case s.SignalEvery < 1 || s.SignalEvery > s.Depth && s.Test != TestLatency:
		return fmt.Errorf("a completion for every %s: must be 1 to the depth, which is %d", plural.Count(s.SignalEvery, "request"), s.Depth)
	case s.Inline && s.Size > rnic.MaxInline:
		return fmt.Errorf("%s inline: up to %d go", plural.Count(s.Size, "byte"), rnic.MaxInline)
	case s.MULPDU != 0 && (s.MULPDU < mpa.MinMULPDU || s.MULPDU > mpa.MaxMULPDU):
		return fmt.Errorf("MULPDU %d: must be %d to %d", s.MULPDU, mpa.MinMULPDU, mpa.MaxMULPDU)
	}
	if need := s.memory(); need > memory {
		return fmt.Errorf("%d queue pairs with messages of %s need %s of memory, of which there may be %d: ask for less, or raise --max-memory", s.QPs, sizeText(s.Size), plural.Count(need, "byte"), memory)
	}
	return nil
}

// sourceStride and sinkStride are how far the parts of a region are apart that queue
// pairs have.
func (s *setup) sourceStride() int { return round64(s.Size + variants*wordLen) }

func (s *setup) sinkStride() int {
	p := s.places()
	return round64(s.Size + (p.count-1)*p.step)
}

// perRequest is about how many bytes of queues a request takes.
const perRequest = 1 << 10

// memory returns about how many bytes a side takes.
func (s *setup) memory() uint64 {
	if s.Idle {
		return uint64(s.QPs) * 32 << 10
	}
	return uint64(s.QPs) * (uint64(s.sourceStride()) + uint64(s.sinkStride()) + uint64(s.Depth+64)*perRequest)
}

func (s *setup) mpa() mpa.Config {
	c := mpa.Config{Markers: s.Markers, MULPDU: s.MULPDU}
	if s.NoCRC {
		c.CRC = mpa.CRCOff
	}
	return c
}

// maxIterations is how many messages a round has at most: a note has room for
// their number.
const maxIterations = 1<<56 - 1

// check refuses rounds that have no end, or none that one would wait for.
func (r *round) check() error {
	if r.Iterations == 0 && r.Duration <= 0 || r.Iterations > maxIterations || r.Duration < 0 || r.Duration > MaxDuration {
		return fmt.Errorf("a round of %s or %v: must be up to %s, or up to %v", plural.Count(r.Iterations, "message"), r.Duration, plural.Count(uint64(maxIterations), "message"), MaxDuration)
	}
	return nil
}
