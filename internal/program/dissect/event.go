package dissect

import (
	"time"

	"urnic/ddp"
	"urnic/internal/capture"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/stag"
)

// A Side is one side of an iWARP connection.
type Side uint8

// The sides. The client is the MPA Initiator, which need not be who opened the
// TCP connection. Over RDP, it is who opened the connection.
const (
	Client Side = iota
	Server
)

// String returns "client" or "server".
func (s Side) String() string {
	if s == Client {
		return "client"
	}
	return "server"
}

// A Kind says what an Event reports.
type Kind uint8

// The kinds of events.
const (
	KindFrame     Kind = iota // an MPA start-up frame, or an Offer
	KindSegment               // a DDP segment: an FPDU, or a message of RDP
	KindMessage               // an RDMA message, at its last segment
	KindViolation             // a rule was broken
	KindNote                  // something a reader should know
	KindClose                 // a side closed its direction, or reset the connection
	KindUpper                 // something that the ULP did
)

var kindNames = [...]string{"startup", "segment", "message", "violation", "note", "close", "ulp"}

// String returns the kind's name in JSON.
func (k Kind) String() string { return kindNames[k] }

// An Event is something that was found in a connection. The pointer that fits
// its Kind is set. All that it points to is valid during the Handler's call
// only, but for Conn.
type Event struct {
	Kind Kind
	Conn *Connection
	At   capture.At
	From Side // who sent it, or broke the rule, or to whose direction the note belongs

	Frame     *mpa.Frame
	FrameRaw  []byte // the bytes of Frame
	Offer     *Offer // of KindFrame, in the place of Frame
	Segment   *Segment
	Message   *Message
	Violation *Violation
	Note      string
	Upper     UpperEvent
	Reset     bool // of KindClose: RST, not FIN
}

// A Handler is called with each event. An error ends the analysis.
type Handler func(*Event) error

// A Segment is a DDP segment: that of an FPDU, or of a message of RDP.
type Segment struct {
	Number int          // in its direction, from 1; over RDP the number that it carries, from 0
	Op     rdmap.Opcode // meaningless without HasOp
	HasOp  bool         // the ULPDU is long enough to hold an opcode
	Whole  bool         // the ULPDU holds a DDP header, so that DDP is valid
	BadCRC bool         // nothing in the segment is to be believed
	DDP    ddp.Segment
	ULPDU  []byte
	FPDU   []byte // as on the wire, with pad, CRC and markers; over RDP the whole message
}

// Control returns the RDMAP control field of a Whole segment.
func (s *Segment) Control() rdmap.Control {
	if s.DDP.Control.Tagged() {
		return rdmap.Control(s.DDP.Tagged.RsvdULP)
	}
	return rdmap.Control(s.DDP.Untagged.RsvdULP[0])
}

// maxHead is how much of a message is kept to read its RDMAP header from.
const maxHead = rdmap.MaxTerminateLen

// A Message is an RDMA message: the segments of one DDP message.
type Message struct {
	Op       rdmap.Opcode
	Tagged   bool
	Segments int
	Length   uint64 // bytes of DDP payload, an RDMAP header included
	Partial  bool   // its beginning was not captured
	Use      string // what the ULP has it for, if that is known

	STag stag.STag // of a tagged message
	TO   uint64    // of its first byte

	QN, MSN    uint32    // of an untagged message
	Invalidate stag.STag // of a Send with Invalidate

	// The RDMAP header, if the message has one and it is whole.
	ReadRequest    *rdmap.ReadRequest
	Terminate      *rdmap.Terminate
	Immediate      *rdmap.Immediate
	AtomicRequest  *rdmap.AtomicRequest
	AtomicResponse *rdmap.AtomicResponse

	first   capture.At
	rsvd    [5]byte // RsvdULP; tagged messages use the first byte
	next    uint64  // TO or MO of the next segment
	head    []byte
	answers *pending // the Read that a Read Response answers
	tooLong bool     // more data than the Read asked for
	unsure  bool     // it may answer another Read to the same place, which is not known
	sent    []byte   // of a Send, for the ULP
	torn    bool     // sent is not all of it
}

// First returns when the message's first segment was captured.
func (m *Message) First() capture.At { return m.first }

// A Violation is a rule that one side broke.
type Violation struct {
	Rule
	From   Side
	At     capture.At
	Detail string // what was found, human-readable
}

// Counts counts segments or messages by opcode.
type Counts [rdmap.OpAtomicResponse + 1]int

// Total returns the sum of all counts.
func (c *Counts) Total() int {
	n := 0
	for _, v := range c {
		n += v
	}
	return n
}

// Startup is what MPA's start-up frames said, or the offers of DDP over RDP. These have no revision, and are as enhanced
// frames with CRC and without markers.
type Startup struct {
	Seen     [2]bool // which of the two frames the capture holds, by sender
	Revision uint8   // the Reply's, or the Request's if there is no Reply
	CRC      bool    // either side asked for CRCs: both use them
	Markers  [2]bool // M: the side wants markers in what it receives
	Enhanced bool    // of the Reply, or of the Request if there is no Reply
	// IRD and ORD are the Responder's as its Reply says, or the Initiator's
	// as its Request says if there is no enhanced Reply.
	IRD, ORD uint16
	P2P      bool    // the peer-to-peer model, of the same frame
	RTR      mpa.RTR // the ready-to-receive indications, of the same frame
	Rejected bool
	Private  [2]int // bytes of private data of the ULP, by sender
}

// A Connection is the summary of an iWARP connection, or of one whose ULP needs no iWARP.
type Connection struct {
	Number    int // from 1, in the order of recognition
	Addr      [2]string
	Transport Transport
	Start     time.Time // of the first event
	MPA       Startup
	Segments  Counts
	Messages  Counts
	Other     int    // FPDUs whose opcode is reserved or missing
	Payload   uint64 // bytes of the ULP's data in Writes, Read Responses, Sends and Immediate Data
	BadCRC    int
	Undecoded uint64 // bytes that could not be decoded, or were not captured

	// Dropped counts the TCP segments that were left out, by capture.DropKind.
	Dropped   capture.Drops
	Differing uint64 // bytes that were sent again and differ from those sent first

	Violations     []Violation
	MoreViolations int // beyond those kept
	Notes          []string

	LLP   UpperSummary // of what carries DDP in place of MPA over TCP, or nil
	Upper UpperSummary // of its ULP, or nil
}
