package ack

import "urnic/internal/ring"

// A Kind says how the peer answers a request.
type Kind uint8

// The kinds of requests.
const (
	Plain Kind = iota // not at all: Sends and Writes
	Local             // it is this side's affair, but completes behind what is before it
	Read              // by a message: Reads and atomics
)

// A Request is one of the program's.
type Request struct {
	ID       uint64 // the program's
	Opcode   uint32 // of its completion
	Length   uint32 // of its completion
	Kind     Kind
	Signaled bool

	// The memory of the peer that it names, if it names any. A peer that refuses a Write
	// says where it was.
	STag uint32
	TO   uint64
	Size uint64

	// Messages is how many messages it makes on DDP's queue 0.
	Messages uint8
}

// An Outcome says how a request has ended.
type Outcome uint8

// The outcomes.
const (
	Success Outcome = iota
	Own             // with the status that the RNIC has given it
	Blamed          // it is the one because of which the stream has ended
	Flushed
)

// A Completion is a request that is over.
type Completion struct {
	Request
	Seq     uint64
	Outcome Outcome
}

type entry struct {
	Request
	seq     uint64
	msn     uint32 // of its first message on queue 0, counted from 0
	outcome Outcome
	failed  bool // outcome is known, and is not success
}

// A Machine is the send queue of one queue pair as the program sees it. The zero Machine
// is ready for use.
type Machine struct {
	queue ring.Ring[entry]
	seq   uint64 // of what was posted last
	msn   uint32 // messages on queue 0 so far

	acked   uint64 // all requests up to this one have been acknowledged
	asked   uint64 // the Read of no bytes that was asked for last, if it is outstanding, or 0
	before  uint64 // the one before that, likewise
	since   int    // how many signaled requests have been posted that it does not acknowledge
	stagger int    // how many are enough for a second one, or 0
	wanting uint64 // the last request that only such a Read acknowledges
	plain   uint64 // the last Send or Write
	covered uint64 // the last request that acknowledges all before it, the program's own

	unsent  uint64 // the first request that the RNIC has completed with an error, or 0
	failing bool   // there is such a one, and End has not been called since
	over    bool   // End has been called

	used used
}

// Len returns how many requests hold a slot: those that are not over, and those whose
// completion the program has not got.
func (m *Machine) Len() int { return m.queue.Len() }

// Post adds a request, and returns its number. The RNIC is to report its success, by
// Answered, if Tells says so.
func (m *Machine) Post(r Request) uint64 {
	m.seq++
	switch {
	case r.Kind == Plain:
		m.plain = m.seq
	case r.Kind == Local && m.plain <= m.acked:
		r.Kind = Read // it acknowledges itself
	}
	m.queue.Push(entry{Request: r, seq: m.seq, msn: m.msn})
	m.msn += uint32(r.Messages)
	switch {
	case !r.Signaled:
	case r.Kind == Read:
		m.covered = m.seq
	default:
		m.wanting = m.seq
		m.since++
	}
	return m.seq
}

// Stagger allows a second Read of no bytes while one is outstanding, once so many signaled
// requests have been posted since: with half of the queue, the other half is outstanding when
// the first half is acknowledged.
func (m *Machine) Stagger(n int) { m.stagger = n }

// Tells reports whether the RNIC is to report the success of the request that was posted
// last: it is signaled, and acknowledges itself with all before it.
func (m *Machine) Tells() bool { return m.covered == m.seq }

// A Mark is a state to which Withdraw returns.
type Mark struct {
	seq, asked, before, wanting, plain, covered uint64
	since                                       int
	msn                                         uint32
}

// Mark returns the present state, for Withdraw.
func (m *Machine) Mark() Mark {
	return Mark{m.seq, m.asked, m.before, m.wanting, m.plain, m.covered, m.since, m.msn}
}

// Withdraw takes back what was posted and asked since a mark, because the RNIC has refused
// it. Nothing else may have happened since then.
func (m *Machine) Withdraw(to Mark) {
	for range m.queue.Len() {
		if e := m.queue.Pop(); e.seq <= to.seq {
			m.queue.Push(e)
		}
	}
	m.seq, m.asked, m.before, m.wanting, m.plain, m.covered = to.seq, to.asked, to.before, to.wanting, to.plain, to.covered
	m.since, m.msn = to.since, to.msn
}

// Wants reports whether a Read of no bytes is to be posted: there is a signaled request
// that nothing acknowledges that was posted already, and no such Read is outstanding, or
// one and Stagger allows another.
func (m *Machine) Wants() bool {
	return m.Waits() && (m.asked == 0 || m.before == 0 && m.stagger > 0 && m.since >= m.stagger)
}

// Waits reports whether there is a signaled request that nothing acknowledges that was
// posted already.
func (m *Machine) Waits() bool {
	return !m.over && !m.failing && m.wanting > max(m.acked, m.covered, m.asked)
}

// Ask numbers a Read of no bytes.
func (m *Machine) Ask() uint64 {
	m.seq++
	if m.asked != 0 && m.before == 0 {
		m.before = m.asked
	}
	m.asked, m.since = m.seq, 0
	return m.seq
}

// Skip numbers a request that is nobody's, and of which nothing is to be told.
func (m *Machine) Skip() uint64 {
	m.seq++
	return m.seq
}

// Answered is notified that a Read has completed: one that was asked for, or a Read or an
// atomic of the program.
func (m *Machine) Answered(seq uint64) {
	m.acked = max(m.acked, min(seq, m.seq))
	if m.before <= seq {
		m.before = 0
	}
	if m.asked <= seq {
		m.asked = 0
	}
}

// Failed is notified that the RNIC has completed a request with an error: own reports whether
// the request has a status of its own, and was not only flushed. It returns the request,
// or false if it is not the program's.
func (m *Machine) Failed(seq uint64, own bool) (Request, bool) {
	m.failing = true
	if m.unsent == 0 || seq < m.unsent {
		m.unsent = seq
	}
	e := m.find(seq)
	if e == nil {
		return Request{}, false
	}
	if own {
		e.failed, e.outcome = true, Own
	}
	return e.Request, true
}

// Failing reports whether a request has failed and End is to be called.
func (m *Machine) Failing() bool { return m.failing }

// find returns the request of a number, or nil.
func (m *Machine) find(seq uint64) *entry {
	// Numbers ascend, and only those that were asked for are left out.
	lo, hi := 0, m.queue.Len()
	for lo < hi {
		if mid := (lo + hi) / 2; m.queue.At(mid).seq < seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < m.queue.Len() && m.queue.At(lo).seq == seq {
		return m.queue.At(lo)
	}
	return nil
}

// Next returns the next completion for the program. Requests that have succeeded without
// being signaled have none.
func (m *Machine) Next() (c Completion, some bool) {
	for m.queue.Len() > 0 {
		e := m.queue.At(0)
		if !e.failed && e.seq > m.acked {
			break
		}
		c = Completion{Request: e.Request, Seq: e.seq, Outcome: e.outcome}
		m.queue.Pop()
		if c.Outcome == Success && c.Size > 0 {
			m.used.note(c.STag)
		}
		if c.Outcome != Success || c.Signaled {
			return c, true
		}
	}
	return Completion{}, false
}

// Trim gives up the slots of the oldest requests that are unsignaled and that the lower
// layer has taken, which are those before number accepted. It is for programs that never
// ask for a completion.
func (m *Machine) Trim(accepted uint64) {
	for m.queue.Len() > 0 {
		if e := m.queue.At(0); e.failed || e.Signaled || e.seq >= accepted {
			return
		}
		m.queue.Pop()
	}
}

// Oldest returns the number of the oldest of the last n posts: with n those that the RNIC
// has not completed, all before it have been taken by the lower layer.
func (m *Machine) Oldest(n int) uint64 { return m.seq - uint64(n) + 1 }

// Used reports whether a request has succeeded that named this STag of the peer's, as far
// as is remembered.
func (m *Machine) Used(stag uint32) bool { return m.used.has(stag) }

// Reset forgets all.
func (m *Machine) Reset() {
	seq := m.seq // completions of before must not be taken for others
	m.queue.Free()
	*m = Machine{queue: m.queue, seq: seq, acked: seq}
}

// used are the STags that were used last.
type used struct {
	stags [16]uint32
	at    uint8
	last  uint32
}

func (u *used) note(stag uint32) {
	if stag == u.last || u.has(stag) {
		u.last = stag
		return
	}
	const n = uint8(len(u.stags))
	u.stags[u.at%n] = stag
	if u.at++; u.at == 2*n {
		u.at = n
	}
	u.last = stag
}

func (u *used) has(stag uint32) bool {
	for i := range min(int(u.at), len(u.stags)) {
		if u.stags[i] == stag {
			return true
		}
	}
	return false
}
