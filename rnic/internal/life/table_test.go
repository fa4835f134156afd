package life

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"urnic/rdmap"
)

// doc.go has a table of what each event does in each state. The test makes the same table
// from the machine. So neither can change without the other.

var update = flag.Bool("update", false, "write the table of doc.go anew, from what the machine does; cells that can't occur stay")

// never marks a cell of the table that can't occur.
const never = "–"

// A column is a state that the machine is in, which a queue pair has come to in the
// shortest way.
type column struct {
	name  string
	state State
	// enter brings a machine in state RTS there. It is nil for Idle and RTS.
	enter func(m *Machine)
	// idle says that the queue must have no work for that.
	idle bool
}

var columns = []column{
	{name: "Idle", state: Idle},
	{name: "RTS", state: RTS},
	{name: "Closing", state: Closing, idle: true, enter: func(m *Machine) { m.Disconnect(); m.Judge(Sent{All: true}) }},
	{name: "Terminate", state: Terminating, enter: func(m *Machine) { m.Fail(LocalFault(errTable), Protection) }},
	{name: "Error, live", state: Error, enter: func(m *Machine) { m.Abort(errTable, Lost) }},
	{name: "Error", state: Error, enter: func(m *Machine) { m.Abort(errTable, Lost); m.Over(false) }},
}

var errTable = errors.New("of the table")

// A cell is where an event is given to a machine.
type cell struct {
	m      *Machine
	r      *Request // outstanding, or nil
	params Params   // of the stream
}

// A row is an event, with what was before it.
type row struct {
	name   string           // the method, and what is the case
	params *Params          // else those of an Initiator
	work   []rdmap.Opcode   // of a request that is in the queue
	sent   progress         // how far it is
	about  bool             // the event is about it
	before func(m *Machine) // what has happened in RTS, before the column's state was entered
	event  func(c *cell) string
}

// in returns the machine in the column's state. It reports false if that can't be, or if
// there is nothing then that the event could be about.
func (ro *row) in(col *column) (*cell, bool) {
	c := &cell{m: New(4), params: Params{Initiator: true, ORD: 1}}
	if ro.params != nil {
		c.params = *ro.params
	}
	if ro.work != nil && !col.idle {
		c.r = &Request{}
		for _, op := range ro.work {
			c.r.Messages = append(c.r.Messages, rdmap.Operation{Op: op})
		}
		c.m.Post(c.r)
	}
	if col.name != "Idle" {
		c.m.Connected(c.params)
		if c.r != nil && ro.sent >= begun {
			c.m.Next(freely{})
		}
		if c.r != nil && ro.sent == posted {
			c.m.Posted(c.r, 9)
		}
		if ro.before != nil {
			ro.before(c.m)
		}
		if col.enter != nil {
			col.enter(c.m)
		}
	}
	c.m.Completed()
	c.m.Drained()
	return c, c.m.State() == col.state && (!ro.about || c.m.begun > 0)
}

// freely holds nothing back.
type freely struct{}

func (freely) MayRead() bool                  { return true }
func (freely) HoldsMemory() bool              { return false }
func (freely) Check(*Request) (Status, error) { return Success, nil }

var (
	eventWords  = [...]string{CloseComplete: "CloseComplete", TerminateReceived: "TerminateReceived", Lost: "Lost", BadClose: "BadClose", BadLLPClose: "BadLLPClose", Integrity: "Integrity", RemoteOperation: "RemoteOperation", Protection: "Protection", Catastrophic: "Catastrophic"}
	courseWords = [...]string{GoOn: "go on", Linger: "linger", Settle: "settle", Finish: "finish"}
	turnWords   = [...]string{Wait: "wait", Send: "send", CarryOut: "carry out", Flush: "flush", Failed: "failed"}
)

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// say writes effects as the table does.
func (fx Effects) say() string {
	s := ""
	if e := fx.Tell.Event; e != 0 {
		s = "!" + eventWords[e] + " "
	}
	for _, l := range []struct {
		is     bool
		letter string
	}{{fx.Terminate != nil, "T"}, {fx.Arm, "A"}, {fx.Abort, "R"}, {fx.Quiet, "Q"}, {fx.End, "E"}, {fx.Transmit, "X"}} {
		if l.is {
			s += l.letter
		}
	}
	return strings.TrimSpace(s)
}

// received gives the machine an arrival.
func received(a Arrival) func(c *cell) string {
	return func(c *cell) string {
		fx, course := c.m.Received(a)
		return strings.TrimSpace(fx.say() + " " + courseWords[course])
	}
}

// judged asks the machine what the end of sending means.
func judged(s Sent) func(c *cell) string { return func(c *cell) string { return c.m.Judge(s).say() } }

func disconnect(m *Machine) { m.Disconnect() }
func peerFIN(m *Machine)    { m.Received(Arrival{Ended: true}) }
func broken(m *Machine)     { m.Broken(errTable) }

func peerTerminate(m *Machine) { m.Received(Arrival{Terminate: &rdmap.Terminate{}}) }

func violation() *rdmap.Error { return &rdmap.Error{Code: rdmap.CodeStreamCatastrophic, Err: errTable} }

var (
	aWork     = []rdmap.Opcode{rdmap.OpSend}
	aRead     = []rdmap.Opcode{rdmap.OpReadRequest}
	responder = &Params{ORD: 1}
	rtrSender = &Params{Initiator: true, PeerToPeer: true, ReadRTR: true, ORD: 1}
)

// rows are in the order of the table.
var rows = []row{
	{name: "Connected", event: func(c *cell) string { c.m.Connected(c.params); return "" }},
	{name: "Post", event: func(c *cell) string {
		c.m.Post(&Request{Messages: []rdmap.Operation{{Op: rdmap.OpSend}}})
		switch {
		case c.m.late > 0:
			return "late"
		case c.m.queue.Len() > 0:
			return "waits"
		}
		return ""
	}},
	{name: "Stop", event: func(c *cell) string { return yes(c.m.Stop(true)) }},
	{name: "Next", work: aWork, event: func(c *cell) string { t, _, _ := c.m.Next(freely{}); return turnWords[t] }},
	{name: "Batch", work: aWork, event: func(c *cell) string {
		b, _ := c.m.Batch(make([]*Request, 0, 2))
		return fmt.Sprintf("%d begun", len(b))
	}},
	{name: "Posted", work: aWork, sent: begun, about: true, event: func(c *cell) string { c.m.Posted(c.r, 9); return "" }},
	{name: "Accepted", work: aWork, sent: posted, event: func(c *cell) string { c.m.Accepted(9); return "" }},
	{name: "Accepted, less", work: aWork, sent: posted, event: func(c *cell) string { c.m.Accepted(8); return "" }},
	{name: "Accepted, after the peer's Terminate", work: aWork, sent: posted, before: peerTerminate, event: func(c *cell) string { c.m.Accepted(9); return "" }},
	{name: "Answered", work: aRead, sent: begun, about: true, event: func(c *cell) string { c.m.Answered(c.r); return "" }},
	{name: "CarriedOut", work: []rdmap.Opcode{}, sent: begun, about: true, event: func(c *cell) string { c.m.CarriedOut(c.r); return "" }},

	{name: "Arrived", event: func(c *cell) string { return c.m.Arrived().say() }},
	{name: "Arrived, as the first", params: responder, event: func(c *cell) string { return c.m.Arrived().say() }},
	{name: "Heard, as the first", params: responder, event: func(c *cell) string { return c.m.Heard().say() }},
	{name: "Received nothing to tell", event: received(Arrival{})},
	{name: "Received anything, bad close", event: func(c *cell) string {
		c.m.Arrived()
		return received(Arrival{})(c)
	}},
	{name: "Received Terminate", event: received(Arrival{Terminate: &rdmap.Terminate{}})},
	{name: "Received Violation", event: received(Arrival{Violation: violation(), Event: Protection})},
	{name: "Received Violation, as the first", params: responder, event: received(Arrival{Violation: violation(), Event: Protection})},
	{name: "Received Ended", event: received(Arrival{Ended: true})},
	{name: "Received Ended, as the first, work left", params: responder, work: aWork, event: received(Arrival{Ended: true})},
	{name: "Received Lost", event: received(Arrival{Lost: errTable})},

	{name: "Disconnect", event: func(c *cell) string { return c.m.Disconnect().say() }},
	{name: "Judge, nobody closes", event: judged(Sent{All: true})},
	{name: "Judge, to close", before: disconnect, event: judged(Sent{All: true})},
	{name: "Judge, to close, not all out", before: disconnect, event: judged(Sent{})},
	{name: "Judge, to close, work left", before: disconnect, work: aWork, event: judged(Sent{All: true})},
	{name: "Judge, to close, not all answered", before: disconnect, event: judged(Sent{All: true, Answering: 1})},
	{name: "Judge, to close, RTR not in", params: &Params{PeerToPeer: true, ORD: 1}, before: disconnect, event: judged(Sent{All: true})},
	{name: "Judge, to close, RTR not answered", params: rtrSender, before: disconnect, event: judged(Sent{All: true, Outstanding: 1})},
	{name: "Judge, to close, after a Terminate", before: disconnect, event: judged(Sent{All: true, Terminated: true})},
	{name: "Judge, the peer has closed", before: peerFIN, event: judged(Sent{All: true})},
	{name: "Judge, the peer has closed, not all out", before: peerFIN, event: judged(Sent{})},
	{name: "Judge, the peer has closed, work left", before: peerFIN, work: aWork, event: judged(Sent{All: true})},
	{name: "Judge, the peer has closed, not all answered", before: peerFIN, event: judged(Sent{All: true, Answering: 1})},
	{name: "OwnEnded", event: func(c *cell) string { return c.m.OwnEnded().say() }},
	{name: "Settled", event: func(c *cell) string { fx, ok := c.m.Settled(); return strings.TrimSpace(fx.say() + " " + yes(ok)) }},
	{name: "Settled, after Broken", before: broken, event: func(c *cell) string {
		fx, ok := c.m.Settled()
		return strings.TrimSpace(fx.say() + " " + yes(ok))
	}},
	{name: "Lingered, its half has ended", event: func(c *cell) string { return yes(c.m.Lingered(nil)) }},
	{name: "Lingered, after Broken", before: broken, event: func(c *cell) string { return yes(c.m.Lingered(nil)) }},
	{name: "Lingered, with an error", event: func(c *cell) string { return yes(c.m.Lingered(errTable)) }},
	{name: "Over, orderly", work: aWork, event: func(c *cell) string { return c.m.Over(true).say() }},
	{name: "Over", work: aWork, event: func(c *cell) string { return c.m.Over(false).say() }},

	{name: "Fail", event: func(c *cell) string { return c.m.Fail(violation(), Protection).say() }},
	{name: "Abort", event: func(c *cell) string { return c.m.Abort(errTable, Catastrophic).say() }},
	{name: "Expired", event: func(c *cell) string { return c.m.Expired(errTable).say() }},
	{name: "Broken", event: func(c *cell) string { return c.m.Broken(errTable).say() }},
	{name: "MemoryLost", event: func(c *cell) string { return c.m.MemoryLost(errTable, errTable, 0).say() }},
	{name: "CQFailed", event: func(c *cell) string {
		fx, idle := c.m.CQFailed(violation())
		return strings.TrimSpace(fx.say() + " " + map[bool]string{true: "idle"}[idle])
	}},
	{name: "End", work: aWork, event: func(c *cell) string { return yes(c.m.End(errTable)) }},
	{name: "Reset", event: func(c *cell) string { return yes(c.m.Reset()) }},
}

// queries are the methods that are no events: they change only what is to be reported, or the
// policy.
var queries = []string{
	"Aborted", "Admits", "ChecksAtTurn", "CloseOwn", "Completed", "Disputed", "Drained", "Draining", "Ending", "Follow", "Free", "HoldsSlots", "Live", "Outstanding", "Params", "Room", "State", "Watches", "Why",
}

// what returns what the row's event does in the column's state, as the table says it.
func (ro *row) what(col *column) string {
	c, ok := ro.in(col)
	if !ok {
		return never
	}
	said := ro.event(c)
	var words []string
	if st := c.m.State(); st != col.state {
		words = append(words, st.String())
	}
	if said != "" {
		words = append(words, said)
	}
	for _, r := range c.m.Completed() {
		words = append(words, map[bool]string{true: "completes", false: "flushes"}[r.Status == Success])
	}
	if c.m.Drained() {
		words = append(words, "drained")
	}
	if len(words) == 0 {
		return "·"
	}
	return strings.Join(words, " ")
}

// changes returns what the row's event changes in a state in which it can't occur, if
// something: of a stream, or of the next one if there is none.
func (ro *row) changes(col *column) string {
	c, ok := ro.in(col)
	if !ok {
		return "" // it has nothing that it could be about
	}
	untouched, _ := ro.in(col)
	said := ro.event(c)
	if strings.Contains(said, "!") {
		return "it tells the program: " + said
	}
	if got := c.m.State(); got != col.state {
		return "the state: " + got.String()
	}
	if !reflect.DeepEqual(c.m.Why(), untouched.m.Why()) || len(c.m.Completed()) > 0 || c.m.Drained() {
		return "why the stream has ended, or what has completed"
	}
	if !c.m.Live() { // a stream that is no more may know anything
		for _, m := range []*Machine{c.m, untouched.m} {
			m.Reset()
			m.Connected(c.params)
		}
	}
	for _, m := range []*Machine{c.m, untouched.m} {
		m.Completed()
	}
	if !reflect.DeepEqual(c.m, untouched.m) {
		return fmt.Sprintf("the machine:\n%+v\n%+v", untouched.m, c.m)
	}
	return ""
}

const docFile = "doc.go"

// A table is the one of doc.go, its lines split into cells.
type table struct {
	text       string
	begin, end int // of the table in it
	cells      map[string][]string
	names      []string
}

func readTable(t *testing.T) *table {
	t.Helper()
	b, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	tab := &table{text: string(b), cells: map[string][]string{}}
	const head = "//\tevent "
	if tab.begin = strings.Index(tab.text, head); tab.begin < 0 {
		t.Fatalf("%s has no table", docFile)
	}
	tab.end = tab.begin + strings.Index(tab.text[tab.begin:], "\n//\n") + 1
	for line := range strings.Lines(tab.text[tab.begin:tab.end]) {
		cells := strings.Split(strings.TrimPrefix(line, "//\t"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != len(columns)+1 || tab.cells[cells[0]] != nil {
			t.Errorf("a line has %d cells, or is there twice:\n%s", len(cells), line)
			continue
		}
		tab.names = append(tab.names, cells[0])
		tab.cells[cells[0]] = cells[1:]
	}
	return tab
}

// write writes the table anew.
func (tab *table) write(t *testing.T) {
	t.Helper()
	lines := [][]string{{"event"}}
	for _, col := range columns {
		lines[0] = append(lines[0], col.name)
	}
	for i := range rows {
		line := []string{rows[i].name}
		for j := range columns {
			was := tab.cells[rows[i].name]
			if was != nil && was[j] == never {
				line = append(line, never)
			} else {
				line = append(line, rows[i].what(&columns[j]))
			}
		}
		lines = append(lines, line)
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("//\t")
		for j, c := range line {
			wide := 0
			for _, l := range lines {
				wide = max(wide, utf8.RuneCountInString(l[j]))
			}
			if j == len(line)-1 {
				fmt.Fprintf(&b, "%s\n", c)
			} else {
				fmt.Fprintf(&b, "%-*s | ", wide, c)
			}
		}
	}
	text := tab.text[:tab.begin] + b.String() + tab.text[tab.end:]
	if err := os.WriteFile(docFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTableOfStatesAndEvents(t *testing.T) {
	tab := readTable(t)
	if *update {
		tab.write(t)
		tab = readTable(t)
	}
	want := []string{"event"}
	for i := range rows {
		want = append(want, rows[i].name)
	}
	if !slices.Equal(tab.names, want) {
		t.Errorf("the table has the rows\n%q, want\n%q", tab.names, want)
	}
	for j := range columns {
		col := &columns[j]
		if head := tab.cells["event"]; head == nil || head[j] != col.name {
			t.Errorf("column %d is not %s", j, col.name)
		}
		for i := range rows {
			ro := &rows[i]
			cells := tab.cells[ro.name]
			if cells == nil {
				continue
			}
			switch got := ro.what(col); {
			case cells[j] != never && got != cells[j]:
				t.Errorf("%s in state %s: %s, the table says %s", ro.name, col.name, got, cells[j])
			case cells[j] == never:
				if changed := ro.changes(col); changed != "" {
					t.Errorf("%s in state %s, which can't occur, changes %s", ro.name, col.name, changed)
				}
			}
		}
	}
}

// Each method of the machine is in the table, or changes nothing.
func TestTableHasEachMethod(t *testing.T) {
	for m := range reflect.TypeFor[*Machine]().Methods() {
		inTable := slices.ContainsFunc(rows, func(ro row) bool {
			name, _, _ := strings.Cut(ro.name, ",")
			name, _, _ = strings.Cut(name, " ")
			return name == m.Name
		})
		if inTable == slices.Contains(queries, m.Name) {
			t.Errorf("%s is neither in the table nor a query, or both", m.Name)
		}
	}
}

func TestQueriesChangeNothing(t *testing.T) {
	ro := row{work: aWork, sent: posted}
	for j := range columns {
		c, _ := ro.in(&columns[j])
		same, _ := ro.in(&columns[j])
		m := c.m
		m.Admits()
		m.CloseOwn(Sent{All: true}, true, true)
		m.Room(1)
		for _, query := range []func(){
			func() { m.Aborted() }, func() { m.Draining() }, func() { m.Ending() }, func() { m.Live() }, func() { m.Outstanding() },
			func() { m.Params() }, func() { _ = m.State() }, func() { m.Watches() }, func() { _ = m.Why() },
			func() { m.Completed() }, func() { m.Drained() },
		} {
			query()
		}
		if !reflect.DeepEqual(m, same.m) {
			t.Errorf("in state %s, queries change\n%+v to\n%+v", columns[j].name, same.m, m)
		}
	}
}
