package perf

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"urnic/rnic"
)

// An Op is what the requests of a test are.
type Op string

// The operations.
const (
	OpSend     Op = "send"
	OpWrite    Op = "write"
	OpWriteImm Op = "write-imm"
	OpRead     Op = "read"
	OpAtomic   Op = "atomic"
)

// A Test is what is measured.
type Test string

// The tests.
const (
	TestBandwidth Test = "bw"
	TestLatency   Test = "lat"
	TestRate      Test = "rate"
	TestConnect   Test = "connect"
	TestScale     Test = "scale"
	TestIdle      Test = "idle"
)

// A Poll says how a side finds out about completions.
type Poll string

// The ways to poll.
const (
	PollEvent Poll = "event" // it sleeps until there are some
	PollBusy  Poll = "busy"  // it looks all the time
)

var (
	ops   = []Op{OpSend, OpWrite, OpWriteImm, OpRead, OpAtomic}
	tests = []Test{TestBandwidth, TestLatency, TestRate, TestConnect, TestScale, TestIdle}
	polls = []Poll{PollEvent, PollBusy}
)

// Bounds of what can be asked for.
const (
	MaxSize     = 1 << 30 // bytes of a message
	MaxQPs      = 1 << 14
	MaxDepth    = 1 << 13
	MaxRounds   = 1000
	MaxDuration = time.Hour
	AtomicSize  = 8 // bytes that an atomic changes

	MaxConnecting = 64 // connections that are made at a time, to be closed
)

// Options says what a run measures. Zeros stand for the defaults of the test,
// which Check fills in.
type Options struct {
	Op   Op
	Test Test
	Poll Poll

	Sizes []int // bytes of a message
	QPs   []int // queue pairs at once, or that are being connected; several only to see how they scale
	Depth int   // requests outstanding on each queue pair
	// Rate is how many messages a second are sent, of latency: each at its time, whatever
	// became of those before, and up to Depth at once. 0: each when the one before is
	// answered.
	Rate float64

	// Duration or Iterations bound the timed part of a round; Iterations counts
	// the messages of each queue pair, or the connections.
	Duration   time.Duration
	Iterations uint64
	Rounds     int // of each case; they alternate with those of the baseline

	Inline      bool // payloads that fit are copied when they are posted
	Bidir       bool // both sides send
	SignalEvery int  // every how many requests one asks for a completion
	NoCRC       bool
	Markers     bool
	MULPDU      int // bytes; 0: what the segment size gives

	// Apart has messages not overlap: for a lower layer that places segments out of order.
	Apart bool

	Baseline     bool // bare TCP is measured in between
	BaselineBest bool // the ratio is to the batched one, whatever the size of messages
	// BaselineTry is how long each of the last tries of call sizes takes, which decide
	// how the batched baseline moves its stream; 0 stands for 250 ms.
	BaselineTry time.Duration

	// BothSides says that the server is in this process, so that what the process
	// grows by is divided by two.
	BothSides bool

	// MaxMemory bounds the bytes of memory of a run; 0 stands for
	// DefaultMaxMemory.
	MaxMemory uint64

	// Timeout bounds how long the first connection may take; 0 stands for no
	// bound.
	Timeout time.Duration

	Hooks Hooks

	opened func(*bareSet) // if not nil, is notified of the connections of baselines
}

// Hooks are notified of the progress of a run. Each may be nil.
type Hooks struct {
	Begin  func(*Report)    // what is known before the first result
	Case   func(rounds int) // so many rounds begin
	Round  func()           // one is over
	Result func(Result)     // there is a result
}

// Check finds what can't be meant, and fills in the defaults.
func (o *Options) Check() error {
	if err := o.checkNames(); err != nil {
		return err
	}
	o.fill()
	switch {
	case o.Duration < 0 || o.Duration > MaxDuration:
		return fmt.Errorf("--duration %v: must be up to %v", o.Duration, MaxDuration)
	case o.Rounds < 1 || o.Rounds > MaxRounds:
		return fmt.Errorf("--rounds %d: must be 1 to %d", o.Rounds, MaxRounds)
	case len(o.QPs) > 1 && o.Test != TestScale && o.Test != TestIdle:
		return fmt.Errorf("several numbers of queue pairs are for --test scale and idle: give one with --test %s", o.Test)
	case o.Baseline && o.Test == TestIdle:
		return fmt.Errorf("--test idle has no baseline over TCP: leave --baseline out")
	case o.QPs[0] != 1 && o.Test == TestLatency:
		return fmt.Errorf("--test %s works on one queue pair at a time: leave --qps out", o.Test)
	case o.Bidir && (o.Test == TestLatency || o.Test == TestConnect):
		return fmt.Errorf("--bidir is for --test bw, rate and scale: leave it out with --test %s", o.Test)
	case !(o.Rate >= 0 && o.Rate <= MaxRate):
		return fmt.Errorf("--rate %v: must be up to %.0f messages a second", o.Rate, float64(MaxRate))
	case o.Rate > 0 && o.Test != TestLatency:
		return fmt.Errorf("--rate is for --test lat: leave it out with --test %s", o.Test)
	case o.Rate > 0 && o.Baseline:
		return fmt.Errorf("--rate has no baseline over TCP: leave --baseline out")
	case o.Rate > 0 && o.Iterations == 0 && o.Rate*o.Duration.Seconds() < 1:
		return fmt.Errorf("--rate %v: not one message is due in %v: give a longer --duration, or --iters", o.Rate, o.Duration)
	case o.Depth != 1 && (o.Test == TestLatency && o.Rate == 0 || o.Test == TestConnect):
		return fmt.Errorf("--test %s has one message outstanding at a time: leave --depth out", o.Test)
	case o.SignalEvery != 1 && (o.Test == TestLatency || o.Test == TestConnect):
		return fmt.Errorf("--test %s has one message outstanding at a time: leave --signal-every out", o.Test)
	case o.Inline && (o.Op == OpRead || o.Op == OpAtomic):
		return fmt.Errorf("--op %s sends no data: leave --inline out", o.Op)
	case o.BaselineTry < 0 || o.BaselineTry > MaxDuration:
		return fmt.Errorf("--baseline-try %v: must be up to %v", o.BaselineTry, MaxDuration)
	case o.BaselineBest && !o.Baseline:
		return fmt.Errorf("--baseline-best chooses a baseline: give --baseline as well")
	case len(o.Sizes) > 1 && (o.Test == TestScale || o.Test == TestConnect):
		return fmt.Errorf("--test %s takes one --size", o.Test)
	}
	for _, n := range o.QPs {
		if o.Test == TestIdle && n < leastIdle {
			return fmt.Errorf("--qps %d: must be %d or more, to show what one queue pair costs", n, leastIdle)
		}
	}
	for _, size := range o.Sizes {
		if o.Op == OpAtomic && size != AtomicSize {
			return fmt.Errorf("--size %d: an atomic changes %d bytes: leave --size out", size, AtomicSize)
		}
		for _, n := range o.QPs {
			s := o.setup(size, n)
			if err := s.check(o.MaxMemory); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *Options) checkNames() error {
	switch {
	case o.Op != "" && !slices.Contains(ops, o.Op):
		return fmt.Errorf("--op %s: must be %s", o.Op, choice(ops))
	case o.Test != "" && !slices.Contains(tests, o.Test):
		return fmt.Errorf("--test %s: must be %s", o.Test, choice(tests))
	case o.Poll != "" && !slices.Contains(polls, o.Poll):
		return fmt.Errorf("--poll %s: must be %s", o.Poll, choice(polls))
	}
	return nil
}

// choice says what there is to choose from.
func choice[T ~string](of []T) string {
	words := make([]string, len(of))
	for i, w := range of {
		words[i] = string(w)
	}
	if len(words) == 2 {
		return words[0] + " or " + words[1]
	}
	return "one of " + strings.Join(words, ", ")
}

// fill fills in the defaults.
func (o *Options) fill() {
	def(&o.Op, OpWrite)
	def(&o.Test, TestBandwidth)
	def(&o.Poll, PollEvent)
	size, depth := 64<<10, 64
	switch o.Test {
	case TestLatency:
		size, depth = 64, 1
		if o.Rate > 0 {
			depth = 64
		}
	case TestRate:
		size, depth = 64, 256
	case TestScale:
		depth = 16
	case TestIdle:
		size, depth = 1, idleDepth
	case TestConnect:
		size, depth = 1, 1
		if o.Duration == 0 {
			def(&o.Iterations, 1000)
		}
	default:
	}
	if o.Op == OpAtomic {
		size = AtomicSize
	}
	if len(o.Sizes) == 0 {
		o.Sizes = []int{size}
	}
	if len(o.QPs) == 0 {
		o.QPs = []int{1}
		switch o.Test {
		case TestScale:
			o.QPs = []int{1, 64}
		case TestConnect:
			o.QPs = []int{4}
		case TestIdle:
			o.QPs = []int{256}
		default:
		}
	}
	def(&o.Depth, depth)
	def(&o.SignalEvery, 1)
	if o.Iterations == 0 && o.Test != TestIdle {
		def(&o.Duration, time.Second)
	}
	rounds := 1
	if o.Baseline {
		rounds = 3
	}
	def(&o.Rounds, rounds)
	def(&o.MaxMemory, DefaultMaxMemory)
	def(&o.BaselineTry, defaultTry)
}

func def[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// setup returns what the server needs to know of one case.
func (o *Options) setup(size, qps int) setup {
	return setup{
		Op: o.Op, Test: o.Test, Poll: o.Poll, Size: size, QPs: qps, Depth: o.Depth, SignalEvery: o.SignalEvery,
		Inline: o.Inline && size <= rnic.MaxInline && o.Op != OpRead && o.Op != OpAtomic,
		Bidir:  o.Bidir, Idle: o.Test == TestIdle, Rated: o.Rate > 0, NoCRC: o.NoCRC, Markers: o.Markers, MULPDU: o.MULPDU,
		Apart: o.Apart,
	}
}
