package rnicinfo

import (
	"cmp"
	"slices"

	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
)

// Version is that of the format of reports. It changes when a key changes its meaning or goes.
const Version = 1

// MostListed is how many objects of each kind a report lists.
const MostListed = 500

// A Report is what a process tells of a device.
type Report struct {
	Version int     `json:"version"`
	PID     int     `json:"pid"`
	Command string  `json:"command"`
	Seconds float64 `json:"seconds"` // since the device has been served, by the clock of the process
	Device  Device  `json:"device"`
}

// A Device is what a device has. The lists may be shorter than what is held: see MostListed.
type Device struct {
	Name string `json:"name"`

	Connected uint64 `json:"connected"` // connections that this side has initiated
	Accepted  uint64 `json:"accepted"`
	Rejected  uint64 `json:"rejected"` // requests that this side has rejected
	Dropped   uint64 `json:"dropped"`  // requests that were not answered
	Failed    uint64 `json:"failed"`   // start-ups without a result
	Lost      uint64 `json:"lost"`     // streams that ended without a graceful close

	Messages []Messages `json:"messages"` // of all streams, also of those that have ended
	Held     Held       `json:"held"`

	QPs  []QP  `json:"qps"`
	CQs  []CQ  `json:"cqs"`
	SRQs []SRQ `json:"srqs"`
	MRs  []MR  `json:"mrs"`
}

// Messages counts the RDMA Messages of one opcode.
type Messages struct {
	Op       string `json:"op"`
	Sent     Count  `json:"sent"`
	Received Count  `json:"received"`
}

// A Count says how many messages there were, and how many bytes they carried above DDP.
type Count struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// Held is what a device holds at the moment.
type Held struct {
	QPs         uint64 `json:"qps"`
	CQs         uint64 `json:"cqs"`
	SRQs        uint64 `json:"srqs"`
	MRs         uint64 `json:"mrs"`
	Windows     uint64 `json:"windows"`
	MemoryBytes uint64 `json:"memory_bytes"` // registered
	StreamBytes uint64 `json:"stream_bytes"` // buffers that streams keep while they wait for their peers
	Listeners   uint64 `json:"listeners"`
	HalfOpen    uint64 `json:"half_open"` // connections of peers whose Request is not in yet
}

// A QP is a queue pair.
type QP struct {
	Num    uint32 `json:"num"`
	Type   string `json:"type"`  // "RC", "UD" or "UC"
	State  string `json:"state"` // as the program sees it: under urnic run, those of ibv_query_qp
	Local  string `json:"local"`
	Remote string `json:"remote"`

	Sent     *Count `json:"sent"` // null of queue pairs that are not connected by TCP
	Received *Count `json:"received"`

	// Under urnic run: requests in the send queue that have not completed, and messages
	// received whose completions nobody has polled. Null elsewhere.
	Outstanding *int `json:"outstanding"`
	Unpolled    *int `json:"unpolled"`

	MaxSendWR int    `json:"max_send_wr"`
	MaxRecvWR int    `json:"max_recv_wr"` // 0 with an SRQ
	SendCQ    uint32 `json:"send_cq"`
	RecvCQ    uint32 `json:"recv_cq"`
	Error     string `json:"error"` // why the stream has ended, or ""
}

// A CQ is a completion queue.
type CQ struct {
	Num     uint32 `json:"num"`
	Entries int    `json:"entries"` // how many completions it has room for
	QPs     int    `json:"qps"`     // of those listed, that use it
	// Under urnic run: completions that the program has polled, and receives that it has not.
	// Null elsewhere.
	Polled   *uint64 `json:"polled"`
	Unpolled *int    `json:"unpolled"`
}

// An SRQ is a shared receive queue.
type SRQ struct {
	Num    uint32 `json:"num"`
	MaxWR  int    `json:"max_wr"`
	Posted int    `json:"posted"` // receives in it
}

// An MR is a memory region that is valid.
type MR struct {
	STag     string `json:"stag"`
	Length   uint64 `json:"length"` // bytes
	Access   string `json:"access"`
	Accesses uint64 `json:"accesses"`  // that passed the checks
	BytesIn  uint64 `json:"bytes_in"`  // placed
	BytesOut uint64 `json:"bytes_out"` // opened for reading: what leaves in parts is counted more than once
}

// DescribeDevice returns what a device tells by itself: all but the lists of objects.
func DescribeDevice(d *rnic.Device) Device {
	c := d.Counters()
	return Device{
		Name: d.Name(), Connected: c.Connected, Accepted: c.Accepted, Rejected: c.Rejected, Dropped: c.Dropped, Failed: c.Failed, Lost: c.Lost,
		Messages: messages(&c.Messages),
		Held: Held{
			QPs: d.Held(pd.QueuePairs), CQs: d.Held(pd.CompletionQueues), SRQs: d.Held(pd.SharedQueues), MRs: d.Held(pd.Regions), Windows: d.Held(pd.Windows),
			MemoryBytes: d.Held(pd.MemoryOctets), StreamBytes: d.Held(pd.StreamOctets), Listeners: d.Held(pd.Listeners), HalfOpen: d.Held(pd.HalfOpen),
		},
		QPs: []QP{}, CQs: []CQ{}, SRQs: []SRQ{}, MRs: []MR{}, // not null in JSON
	}
}

// messages returns the opcodes that there were messages of.
func messages(s *rdmap.Stats) []Messages {
	list := []Messages{}
	for op := range s.Sent {
		m := Messages{Op: rdmap.Opcode(op).Name(), Sent: count(s.Sent[op]), Received: count(s.Received[op])}
		if m.Sent.Messages+m.Received.Messages > 0 {
			list = append(list, m)
		}
	}
	return list
}

func count(c rdmap.Count) Count { return Count{c.Messages, c.Octets} }

// DescribeQP returns what a queue pair tells by itself.
func DescribeQP(q *rnic.QP) QP {
	s, a := q.Counters(), q.Attr()
	var sent, received Count
	for op := range s.Sent {
		sent.Messages, sent.Bytes = sent.Messages+s.Sent[op].Messages, sent.Bytes+s.Sent[op].Octets
		received.Messages, received.Bytes = received.Messages+s.Received[op].Messages, received.Bytes+s.Received[op].Octets
	}
	out := QP{
		Num: q.Num(), Type: "RC", State: q.State().String(), Sent: &sent, Received: &received, MaxSendWR: a.MaxSendWR, MaxRecvWR: a.MaxRecvWR,
		SendCQ: a.SendCQ.Num(), RecvCQ: a.RecvCQ.Num(),
	}
	if addr := q.LocalAddr(); addr != nil {
		out.Local = addr.String()
	}
	if addr := q.RemoteAddr(); addr != nil {
		out.Remote = addr.String()
	}
	if err := q.Err(); err != nil {
		out.Error = cut(err.Error())
	}
	return out
}

// DescribeMR returns what a region tells, or false if it is not valid.
func DescribeMR(m *rnic.MR) (MR, bool) {
	s := m.Stats()
	return MR{STag: m.STag().String(), Length: m.Len(), Access: m.Access().String(), Accesses: s.Accesses, BytesIn: s.OctetsIn, BytesOut: s.OctetsOut}, m.Valid()
}

// mostText is how many bytes of a text a report has.
const mostText = 300

// cut bounds a text.
func cut(s string) string {
	if len(s) > mostText {
		return s[:mostText] + "…"
	}
	return s
}

// DescribeSRQ returns what a shared receive queue tells.
func DescribeSRQ(q *rnic.SRQ) SRQ { return SRQ{Num: q.Num(), MaxWR: q.Attr().MaxWR, Posted: q.Len()} }

// Sort orders the lists by number, and bounds them.
func (d *Device) Sort() {
	d.QPs = sorted(d.QPs, func(a, b QP) int { return cmp.Compare(a.Num, b.Num) })
	d.CQs = sorted(d.CQs, func(a, b CQ) int { return cmp.Compare(a.Num, b.Num) })
	d.SRQs = sorted(d.SRQs, func(a, b SRQ) int { return cmp.Compare(a.Num, b.Num) })
	d.MRs = sorted(d.MRs, func(a, b MR) int { return cmp.Compare(a.STag, b.STag) })
}

func sorted[E any](list []E, order func(a, b E) int) []E {
	slices.SortFunc(list, order)
	return list[:min(len(list), MostListed)]
}
