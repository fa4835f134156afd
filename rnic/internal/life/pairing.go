package life

import (
	"urnic/internal/door/policy"
	"urnic/rdmap"
)

// A Pairing makes Immediate Data and the Send behind them one message, if a policy allows
// that. It is the receiver's.
type Pairing struct {
	allowed bool
	data    rdmap.Immediate
	waits   bool // data belong to the message that comes next
}

// Follow asks a policy whether messages are paired.
func (p *Pairing) Follow(by policy.Policy) { p.allowed = by.Allows(policy.PairImmediate) }

// Allowed reports whether messages are paired.
func (p *Pairing) Allowed() bool { return p.allowed }

// Hold takes Immediate Data that belong to the Send behind them, and reports whether they
// do: the receive is for that.
func (p *Pairing) Hold(data *rdmap.Immediate) bool {
	const at = rdmap.ImmediateLen - len(policy.PairMark)
	if !p.allowed || string(data[at:]) != policy.PairMark {
		return false
	}
	p.data, p.waits = *data, true
	clear(p.data[at:])
	return true
}

// Take returns what Hold has taken for the message that has come now; if that is no Send,
// it belongs to nothing.
func (p *Pairing) Take() (data rdmap.Immediate, some bool) {
	some, p.waits = p.waits, false
	return p.data, some
}

// Drop forgets what Hold has taken: the stream has ended.
func (p *Pairing) Drop() { p.waits = false }
