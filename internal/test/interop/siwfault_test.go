package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/rdmap"
)

// A fault is one of siw's own that comes by chance. docs/interop-siw.md names each, and says
// how it is recognised. A test that fails in any other way has failed.
type fault uint8

const (
	splitCRC fault = iota
	wrongCRC
	failedRead
	lostListener
	overlookedTerminate
	failedGoodbye
	filledEmptyRead
	closedInstead
	numFaults
)

// faults has the names, as in the page, and what recognises each in what a run has left: it says
// what it has found, or nothing. The last two are of a case of the conformance suite, and are
// recognised by its reason.
var faults = [numFaults]struct {
	name   string
	found  func(*evidence) string
	reason *regexp.Regexp
}{
	splitCRC:            {name: "takes a CRC that comes in pieces for wrong", found: (*evidence).splitCRC},
	wrongCRC:            {name: "sends a wrong CRC", found: (*evidence).wrongCRC},
	failedRead:          {name: "fails a Read in the middle of its Response", found: (*evidence).failedRead},
	lostListener:        {name: "takes the end of a connection for that of its listener", found: (*evidence).lostListener},
	overlookedTerminate: {name: "overlooks a Terminate", found: (*evidence).overlookedTerminate},
	failedGoodbye:       {name: "fails a Send that has arrived", found: (*evidence).failedGoodbye},
	filledEmptyRead:     {name: "answers an empty Read with data", reason: regexp.MustCompile(`Response of 0 octets.*; got RDMA Read Response, .* 16 octets`)},
	closedInstead:       {name: "closes in place of a Terminate", reason: regexp.MustCompile(`Terminate.*; got the connection was closed by FIN`)},
}

func (f fault) String() string { return "siw " + faults[f].name }

// recognise returns which fault explains what a run has left, with what was found.
func recognise(e *evidence) (f fault, found string, ok bool) {
	for f := range numFaults {
		if faults[f].found == nil {
			continue
		}
		if found := faults[f].found(e); found != "" {
			return f, found, true
		}
	}
	return 0, "", false
}

// recogniseCase returns which fault explains that a case of the conformance suite has failed.
func recogniseCase(reason string) (f fault, ok bool) {
	for f := range numFaults {
		if r := faults[f].reason; r != nil && r.MatchString(reason) {
			return f, true
		}
	}
	return 0, false
}

// siw does some things in the conformance suite now and then. A failure that the page does not explain has to
// come again in each of some more tries; in more of them if it is of a fault. A case that the page names, and
// that passes, has as many tries to fail.
const (
	caseTriesElse     = 2
	caseTriesByChance = 5
)

func caseTries(byChance bool) int {
	if byChance {
		return caseTriesByChance
	}
	return caseTriesElse
}

// A side is the client or the server of a connection.
type side string

const (
	client  side = "client"
	server  side = "server"
	anySide side = "" // of some connections the one, of others the other, by the address
)

// evidence is what a run of a test has left.
type evidence struct {
	siw    side     // the side of the connections that siw is on
	hosts  []string // the addresses of siw, for anySide
	conns  []*recorded
	kernel string // what the guest's kernel has logged since the run began
	said   []said // by siw's programs
}

// said is what a program of the guest has printed, and how it has ended.
type said struct {
	output string
	err    error
}

// A recorded is a connection as our recording has it.
type recorded struct {
	*dissect.Connection
	broken     int             // rules that we have broken
	badCRC     string          // the first wrong CRC of siw's
	terminates [2]int          // by sender
	closes     []dissect.Side  // who has ended the connection, in this order
	left       time.Duration   // from our Request to our end of the connection, if no Reply came
	last       [2]rdmap.Opcode // the last message of each
	asked      int             // Reads of siw's
	split      []refused       // of the CRCs that siw has refused, those that are of ours in pieces
	trailer    trailer         // siw's
}

// read reads our recording. A test that has failed early has none.
func (e *evidence) read(file string) error {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	r, err := capture.NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	refused := refusedCRCs(e.kernel)
	conns := map[*dissect.Connection]*recorded{}
	_, err = dissect.Analyze(context.Background(), r, func(ev *dissect.Event) error {
		c := conns[ev.Conn]
		if c == nil {
			c = &recorded{Connection: ev.Conn}
			conns[ev.Conn] = c
			e.conns = append(e.conns, c)
		}
		switch ev.Kind {
		case dissect.KindSegment:
			if len(refused) > 0 && e.ours(ev.Conn, ev.From) && ev.Conn.MPA.CRC && !ev.Segment.BadCRC {
				c.split = append(c.split, c.trailer.receive(ev.Segment.FPDU, ev.Segment.Op, refused)...)
			}
		case dissect.KindViolation:
			switch {
			case e.ours(ev.Conn, ev.From):
				c.broken++
			case ev.Violation.ID == "crc" && c.badCRC == "":
				c.badCRC = ev.Violation.Detail
			}
		case dissect.KindMessage:
			c.last[ev.From] = ev.Message.Op
			switch {
			case ev.Message.Op == rdmap.OpTerminate:
				c.terminates[ev.From]++
			case ev.Message.Op == rdmap.OpReadRequest && !e.ours(ev.Conn, ev.From):
				c.asked++
			}
		case dissect.KindClose:
			c.closes = append(c.closes, ev.From)
			if len(c.closes) == 1 && ev.From == dissect.Client && e.ours(ev.Conn, ev.From) && !ev.Conn.MPA.Seen[dissect.Server] {
				c.left = ev.At.Time.Sub(ev.Conn.Start)
			}
		}
		return nil
	})
	return err
}

// us returns our side of a connection.
func (e *evidence) us(c *dissect.Connection) dissect.Side {
	siw := e.siw
	if siw == anySide {
		siw = server
		if host, _, err := net.SplitHostPort(c.Addr[dissect.Client]); err == nil && slices.Contains(e.hosts, host) {
			siw = client
		}
	}
	if siw == client {
		return dissect.Server
	}
	return dissect.Client
}

func (e *evidence) ours(c *dissect.Connection, s dissect.Side) bool { return s == e.us(c) }

// splitCRC: siw's kernel has logged a CRC that it takes for wrong, and the two values are those that
// siw gets of one of our FPDUs, which is right, if its end comes in pieces.
func (e *evidence) splitCRC() string {
	for _, c := range e.conns {
		if len(c.split) > 0 && c.broken == 0 {
			return fmt.Sprintf("connection %d: %v", c.Number, c.split[0])
		}
	}
	return ""
}

// wrongCRC: our recording has an FPDU of siw's whose CRC is wrong.
func (e *evidence) wrongCRC() string {
	for _, c := range e.conns {
		if c.badCRC != "" && c.broken == 0 {
			return fmt.Sprintf("connection %d: %s", c.Number, c.badCRC)
		}
	}
	return ""
}

// failedRead: a Read has failed with GENERAL_ERR, and our recording has a connection that siw has ended with
// a Read whose Response was not complete: with no Terminate, with nothing wrong in what we have sent, and the
// kernel says nothing of it.
func (e *evidence) failedRead() string {
	if !e.says("Failed status 21:") || siwComplains.MatchString(e.kernel) {
		return ""
	}
	for _, c := range e.conns {
		if c.terminates == [2]int{} && c.asked > c.Messages[rdmap.OpReadResponse] &&
			len(c.closes) > 0 && !e.ours(c.Connection, c.closes[0]) && c.broken == 0 {
			return fmt.Sprintf("connection %d: %d Reads, of which %d were answered", c.Number, c.asked, c.Messages[rdmap.OpReadResponse])
		}
	}
	return ""
}

// siwComplains matches what siw logs of what it gets.
var siwComplains = regexp.MustCompile(`(?m)siw: `)

// lostListener: siw has handled the end of a peer's connection as that of a listener: siw_cm_work_handler,
// whose debug messages the kernel logs, had work of type 4, SIW_CM_WORK_PEER_CLOSE, in state 2,
// SIW_EPSTATE_LISTENING. A socket that siw has not accepted has its listener's data. As urnic knows that, it
// stays: our recording has a connection that we have left without an answer, and not before time.
func (e *evidence) lostListener() string {
	line := listenerEnds.FindString(e.kernel)
	if line == "" {
		return ""
	}
	for _, c := range e.conns {
		if c.left >= timeToAnswer {
			return fmt.Sprintf("connection %d was not answered for %v; %s", c.Number, c.left.Round(time.Second), line)
		}
	}
	return ""
}

// timeToAnswer is how long ulp/rds waits for the answer to a Request (DialTimeout), which began before that
// was recorded.
const timeToAnswer = 9 * time.Second

var listenerEnds = regexp.MustCompile(`siw_cm_work_handler: \[QP \d+\]: work type: 4, state 2\b`)

// overlookedTerminate: our recording ends with our Terminate; siw's program has failed its request with
// LOC_QP_OP_ERR, as the connection ended while siw still sent it, and was not told of a Terminate.
func (e *evidence) overlookedTerminate() string {
	if !e.says("status=LOC_QP_OP_ERR") || e.says("terminate control=") {
		return ""
	}
	for _, c := range e.conns {
		if us := e.us(c.Connection); c.terminates[us] == 1 && c.last[us] == rdmap.OpTerminate && c.broken == 0 {
			return fmt.Sprintf("connection %d has our Terminate", c.Number)
		}
	}
	return ""
}

// failedGoodbye: perftest's last Send has failed with LOC_QP_OP_ERR (2), and our recording has it, with our own
// behind it, and the end of the connection on our side first. All results are out by then.
func (e *evidence) failedGoodbye() string {
	if !e.says("Bad wc status 2", "Failed to close connection between server and client") {
		return ""
	}
	for _, c := range e.conns {
		if c.terminates == [2]int{} && sends(c.last[0]) && sends(c.last[1]) && len(c.closes) > 0 && e.ours(c.Connection, c.closes[0]) && c.broken == 0 {
			return fmt.Sprintf("connection %d has the last Send of both", c.Number)
		}
	}
	return ""
}

func sends(op rdmap.Opcode) bool { return op == rdmap.OpSend || op == rdmap.OpSendSE }

// says reports whether a program of siw's has printed all of some texts.
func (e *evidence) says(texts ...string) bool {
	for _, s := range e.said {
		if containsAll(s.output, texts) {
			return true
		}
	}
	return false
}

func containsAll(line string, texts []string) bool {
	for _, s := range texts {
		if !strings.Contains(line, s) {
			return false
		}
	}
	return true
}
