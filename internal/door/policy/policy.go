// Package policy says in what the queues of an RNIC depart from the strict rules of the
// verbs (draft-hilland-rddp-verbs) and of RFC 5041, because programs that were written for other
// RNICs count on it.
//
// The package rnic and the core of it, rnic/internal/life, ask a Policy once, when an object
// is created, and keep the answers. What nobody has set is Strict.
package policy

import "time"

// A Policy answers in what an object departs from the strict rules. Its answers don't
// change.
type Policy interface {
	// RNR returns how long a message waits for a receive if there is none: the stream
	// stands still meanwhile, as InfiniBand's does by its RNR NAKs. 0 ends the stream at
	// once (RFC 5041 §7.1).
	RNR() time.Duration
	// Allows reports whether the object departs from the rules so.
	Allows(d Departure) bool
}

// A Departure from the strict rules, or a set of them.
type Departure uint8

// The departures.
const (
	// CheckAtTurn takes requests without a look at the memory that their SGLs name, as
	// hardware does. An SGL is checked when the turn of its request comes, which completes
	// with a local protection error if it is bad. Strictly, it is checked when it is
	// posted, and a bad one refused.
	CheckAtTurn Departure = 1 << iota
	// TakeLate takes requests that are posted while the stream is being closed or has
	// ended: they complete as flushed. Strictly, they are refused.
	TakeLate
	// HoldSends keeps the slot of a request in the send queue until its completion is
	// polled, as hardware does: who posts until the queue is full and has a completion
	// queue of that size does not overflow it. Strictly, the slot is free as soon as the
	// request has completed.
	HoldSends
	// HoldReceives is the same for the receive queue. A slot of an SRQ is free as soon as
	// its receive has completed.
	HoldReceives
	// PairImmediate takes Immediate Data that end with PairMark as what belongs to the Send
	// behind them: both complete one receive. Strictly, Immediate Data are a message with
	// a receive of its own (RFC 7306 §6).
	PairImmediate
	// SplitReads takes a Read with several sinks, and makes a Read Request for each.
	// Strictly, a Read has one sink, as its Request has (RFC 5040 §4.4).
	SplitReads
	// FireForQueued fires a completion queue when it is armed if a completion of that
	// kind is in it already, as some hardware does: programs that count on it arm, poll
	// less than there is, and wait. It does not fire for the same ones twice: to arm is
	// silent if, since the queue has fired, nothing was added and nothing polled. Programs that
	// arm again before they poll, and then take an event for a completion, count on
	// that. Strictly, only what comes after the arming fires the queue.
	FireForQueued
	// NotifyEach puts a completion queue that fires several times before its channel is asked
	// into the channel as often: programs that count take one notification for each arming.
	// Strictly, it is there once.
	NotifyEach
)

// PairMark is what the last four octets of Immediate Data say that belong to the Send
// behind them, see PairImmediate. As a number it is higher than any length of a message
// that programs use.
const PairMark = "\xffSnd"

// Strict departs from no rule.
type Strict struct{}

// RNR implements Policy.
func (Strict) RNR() time.Duration { return 0 }

// Allows implements Policy.
func (Strict) Allows(Departure) bool { return false }

// Lenient departs from the rules in what it says. The zero Lenient is strict.
type Lenient struct {
	Wait       time.Duration // for a receive
	Departures Departure
}

// RNR implements Policy.
func (l Lenient) RNR() time.Duration { return l.Wait }

// Allows implements Policy.
func (l Lenient) Allows(d Departure) bool { return l.Departures&d == d }
