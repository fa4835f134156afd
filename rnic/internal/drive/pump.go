package drive

// A Pump is the connection's side of a [Driver]. It does the work; the driver decides
// which goroutine does it when. The goroutine with the transmitter's role calls
// Transmit. The one with the receiver's role calls Receive, TryReceive, Await and
// Received. In each role, one goroutine works at a time, and sees what the one before
// it has done. Interrupt and MayLeave are called from anywhere, also with locks held
// under which a program waits, see [Group]: they must not take these.
type Pump interface {
	// Transmit makes one pass: it sends some of what there is to send. With wait, it
	// may wait for room.
	Transmit(wait bool) Result
	// Receive waits for what comes, and takes it. Only the goroutine calls it. It
	// returns Some or Interrupted.
	Receive() Outcome
	// TryReceive takes what there is, and never waits.
	TryReceive() Outcome
	// Await waits until there is something for TryReceive, and takes nothing. It
	// returns Some, Interrupted, or ForGoroutine if what there is can't be taken
	// without waiting for something else.
	Await() Outcome
	// Interrupt makes the Receive or Await that waits now return Interrupted, or if
	// none does, the next one.
	Interrupt()
	// Received is called in the goroutine after Receive, and after the goroutine has
	// got the role back. It processes the result of the last Receive or TryReceive,
	// and reports whether the connection has ended. Before it does, it calls
	// [Driver.Stop].
	Received() (ended bool)
	// MayLeave reports whether the receiver's role may leave the goroutine. When that
	// is no longer so, [Driver.GiveBack] must be called.
	MayLeave() bool
}

// A Result says what a pass of the transmitter came to.
type Result uint8

// The results of a pass.
const (
	Idle    Result = iota // all is out
	More                  // there is more
	Blocked               // there is no room, or the next pass may have to wait
)

// An Outcome says what came of receiving.
type Outcome uint8

// The outcomes of receiving.
const (
	Nothing      Outcome = iota // nothing has come
	Some                        // something has come
	Interrupted                 // the wait was interrupted
	ForGoroutine                // what has come is the goroutine's to deal with
)
