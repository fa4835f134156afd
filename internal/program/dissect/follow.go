package dissect

import (
	"urnic/internal/capture"
	"urnic/internal/host/plural"
	"urnic/mpa"
	"urnic/rdmap"
)

// A follower follows one TCP connection: capture.Consumer.
type follower struct {
	a       *analysis
	tcp     *capture.Conn
	con     *Connection // nil until the connection is known to be iWARP
	listed  bool        // con is in the Result
	streams [2]stream   // by capture.Side
	client  capture.Side

	request, reply *mpa.Frame
	tentative      bool // a Request in mid-stream: it is one if a Reply follows
	unknown        bool // what start-up settled can't be known
	rejected       bool
	rtr            mpa.RTR // what the Initiator may send first; 0 if not peer-to-peer
	p2p            bool
	// limit is how many Reads and Atomics each side may have outstanding, by
	// capture.Side; negative if that was not settled by MPA.
	limit [2]int

	direct  StreamUpper // not nil if TCP carries the ULP without iWARP
	upper   Upper       // nil if no ULP is to be followed
	decided bool        // upper was asked whether it follows the connection

	carries bool // something else than MPA carries DDP; see DDP
	late    bool // the segment that is looked at was captured before, at of
	of      capture.At

	busy  bool
	queue []Violation
}

func newFollower(a *analysis, c *capture.Conn) *follower {
	f := &follower{a: a, tcp: c, limit: [2]int{-1, -1}}
	for i := range f.streams {
		f.streams[i].f, f.streams[i].id = f, capture.Side(i)
	}
	return f
}

func (f *follower) side(s capture.Side) Side {
	if s == f.client {
		return Client
	}
	return Server
}

// recognise makes a connection of the analysis of what is followed.
func (f *follower) recognise(at capture.At, t Transport) {
	if f.con != nil {
		return
	}
	r := f.a.result
	r.Total.Connections++
	if t != IWARP {
		r.Total.Direct++
	}
	f.con = &Connection{Number: r.Total.Connections, Start: at.Time, Transport: t}
	f.con.Addr[f.side(capture.Opener)] = f.tcp.Ends[capture.Opener].String()
	f.con.Addr[f.side(capture.Acceptor)] = f.tcp.Ends[capture.Acceptor].String()
	switch {
	case f.a.unlisted:
	case len(r.Connections) < maxListed:
		r.Connections = append(r.Connections, f.con)
		f.listed = true
	default:
		r.Unlisted++
	}
	if f.a.ulp != nil && t == IWARP {
		f.upper = f.a.ulp.New(&Reporter{f})
	}
}

// Data takes bytes of a stream.
func (f *follower) Data(from capture.Side, at capture.At, b []byte) {
	if f.a.result.Start.IsZero() {
		f.a.result.Start = at.Time
	}
	f.streams[from].feed(at, b)
	f.abandon()
}

// Hole takes notice of bytes that were not captured.
func (f *follower) Hole(from capture.Side, at capture.At, n int) {
	if f.direct != nil {
		f.holeDirect(from, at, n)
		return
	}
	f.streams[from].hole(at, n)
	f.abandon()
}

// Close takes notice of a FIN or RST. What was in transit at a reset may still come.
func (f *follower) Close(from capture.Side, at capture.At, reset bool) {
	switch {
	case f.direct != nil:
		f.direct.Close(f.side(from), at, reset)
	case !reset:
		f.streams[from].finish(at, true)
	}
	if f.con != nil {
		f.a.emit(&Event{Kind: KindClose, Conn: f.con, At: at, From: f.side(from), Reset: reset})
	}
}

// Drop takes notice of a segment that a TCP ignores.
func (f *follower) Drop(from capture.Side, at capture.At, d capture.Drop) {
	if f.con == nil {
		return
	}
	f.con.Dropped[d.Kind]++
	if d.Kind == capture.DropData && !f.rejected {
		f.con.Undecoded += uint64(d.Bytes)
	}
	f.note(from, at, "%v", d)
}

// Differs takes notice of bytes that were sent again and read differently.
func (f *follower) Differs(from capture.Side, at capture.At, back int, b []byte) {
	if f.con != nil {
		f.con.Differing += uint64(len(b))
		f.note(from, at, "the %v sent %s again with other contents than at first", f.side(from), plural.Count(len(b), "byte"))
	}
	if f.direct == nil {
		f.streams[from].differs(at, back, b)
	}
}

// Acked takes notice of what the other side has acknowledged.
func (f *follower) Acked(from capture.Side, at capture.At, left int) {
	if f.direct == nil {
		f.streams[from].acknowledged(left)
	}
}

// End takes leave of the connection.
func (f *follower) End() {
	if f.direct != nil {
		f.direct.End(f.streams[f.client].at)
		f.sum()
		return
	}
	for i := range f.streams { // what one has held back may be for the other
		f.streams[i].finish(f.streams[i].at, false)
	}
	for i := range f.streams {
		s := &f.streams[i]
		s.keep(nil)
		s.setVersions(nil)
		f.a.outstanding -= s.asked.len()
		if m := s.queues[rdmap.OpSend.Queue()].open; m != nil {
			s.release(m)
		}
	}
	if u := f.above(); u != nil {
		u.End(f.streams[f.client].at)
	}
	switch {
	case f.con != nil:
		f.sum()
	case f.streams[0].midway || f.streams[1].midway:
		f.a.result.MidStream++
	}
}

// sum adds the connection, of which nothing more will come, to the Result.
func (f *follower) sum() {
	f.a.result.Total.add(f.con)
	if f.con.clip(); !f.listed {
		f.a.kept -= len(f.con.Violations) + len(f.con.Notes)
	}
}

// abandon ignores a connection of which nothing can come to light any more.
func (f *follower) abandon() {
	if f.con == nil && f.streams[0].phase == phaseOff && f.streams[1].phase == phaseOff {
		f.End()
		f.tcp.Ignore()
	}
}
