package wire

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// A Side says who did something.
type Side string

// The sides of a [Tape].
const (
	Tester  Side = "tester"
	Target  Side = "target"
	Control Side = "control" // the tester and the target's test service, beside the connection
)

// An Event is something that happened in a case.
type Event struct {
	At   time.Duration `json:"at_ns"` // since the case began
	By   Side          `json:"by"`
	Conn int           `json:"conn"` // which of the case's connections, from 1; 0 is none of them
	// What it was, in a line: "RDMA Write, last, STag 0x00000100 TO 0x10, 64 octets".
	What string `json:"what"`
	// Wrong says what is wrong with it, if that is so: by intent if the tester has
	// sent it, else against a rule.
	Wrong  string   `json:"wrong,omitempty"`
	Fields []string `json:"fields,omitempty"` // the headers, a field each: "DDP  STag  0x00000100"
	Octets Octets   `json:"octets,omitempty"` // as they stood on the wire, perhaps cut short
	Length int      `json:"length,omitempty"` // how many there were
}

// Octets are bytes that JSON shows in hexadecimal.
type Octets []byte

// MarshalJSON returns the bytes as a text of hexadecimal digits.
func (o Octets) MarshalJSON() ([]byte, error) { return json.Marshal(hex.EncodeToString(o)) }

// UnmarshalJSON reads what MarshalJSON has written.
func (o *Octets) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	p, err := hex.DecodeString(s)
	*o = p
	return err
}

// Bounds of a Tape. Of more events, the first and the last are kept, half of maxEvents
// each, and the others are counted.
const (
	maxEvents = 400
	maxOctets = 256
)

// A Tape keeps the events of one case. Its methods are safe for concurrent use.
type Tape struct {
	mu     sync.Mutex
	began  time.Time
	first  []Event
	last   []Event // a ring, once it is full
	oldest int     // in last
	lost   int
	conns  int

	looked, heard time.Time // when something was awaited last, and when it came
	missed        bool      // what was awaited last did not come
}

// NewTape returns an empty tape whose time begins now.
func NewTape() *Tape { return &Tape{began: time.Now()} }

// Add adds an event, at this moment. The bytes are copied.
func (t *Tape) Add(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.At = time.Since(t.began)
	if e.Length == 0 {
		e.Length = len(e.Octets)
	}
	e.Octets = append(Octets(nil), e.Octets[:min(len(e.Octets), maxOctets)]...)
	switch {
	case len(t.first) < maxEvents/2:
		t.first = append(t.first, e)
	case len(t.last) < maxEvents/2:
		t.last = append(t.last, e)
	default:
		t.last[t.oldest] = e
		t.oldest = (t.oldest + 1) % len(t.last)
		t.lost++
	}
}

// Note adds an event without bytes.
func (t *Tape) Note(by Side, what string) { t.Add(Event{By: by, What: what}) }

// Events returns the events so far, and how many found no place. If some did not, an
// event between the first and the last ones says so.
func (t *Tape) Events() (events []Event, lost int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	events = append([]Event(nil), t.first...)
	if t.lost > 0 {
		note := fmt.Sprintf("%d events are not shown", t.lost)
		events = append(events, Event{At: t.last[t.oldest].At, By: Control, What: note})
	}
	events = append(events, t.last[t.oldest:]...)
	return append(events, t.last[:t.oldest]...), t.lost
}

// Look notes that something was awaited of the target, and whether it came.
func (t *Tape) Look(came bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked, t.missed = time.Now(), !came
	if came {
		t.heard = t.looked
	}
}

// Heard returns when something came last of the target, and reports whether what was awaited
// last has come: also if nothing was.
func (t *Tape) Heard() (at time.Time, last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heard, !t.missed
}

// Looked returns when something was awaited last.
func (t *Tape) Looked() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.looked
}

func (t *Tape) newConn() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns++
	return t.conns
}
