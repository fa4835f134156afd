package ddp

// An LLP is the lower layer that a DDP stream runs on: it moves DDP segments
// reliably, preserves their boundaries, and covers them with a strong digest
// (RFC 5041 §3). Package mpa has one over TCP.
//
// One goroutine at a time may send (Post, Flush, Posted, Accepted, CloseWrite)
// while another one receives (Receive, TryReceive, Discard). MULPDU, Close and
// Abort may be called from any goroutine. Close and Abort end calls that wait.
//
// The interface uses only built-in types, so that an implementation need not
// import this package.
type LLP interface {
	// MULPDU returns the length of the longest segment that the layer accepts
	// now, header included, in bytes; at least 128. It may change at any time;
	// what was posted before stays as it is (rules 1 and 2).
	MULPDU() int

	// Post adds one segment to what Flush sends. It returns false, and accepts
	// nothing, while there is no space: Flush frees some. Post copies the
	// header. Payload that is stable does not change until the next Flush
	// returns, and may be sent without a copy. Other payload is copied. An
	// error that wraps a *memfault.Error says that payload can't be read:
	// nothing was accepted and the stream can continue.
	Post(header []byte, payload [][]byte, stable bool) (bool, error)

	// Flush sends what was posted and reports whether all of it is sent.
	// Without wait, it sends what it can send at once; with wait, it waits
	// until it can send at least something.
	Flush(wait bool) (done bool, err error)

	// Posted counts what Post has accepted since the beginning. Accepted counts
	// the part of it that will be transferred reliably, unless the layer
	// reports an error (rule 3). The layer defines the unit.
	Posted() uint64
	Accepted() uint64

	// Receive waits until segments have arrived and passes each to place, with its
	// number in the sender's order, counted from 0. It may pass them in another
	// order (rule 5), but must not pass a segment again that place has accepted
	// (rule 11). place must not use the segment after it has returned.
	//
	// If place returns an error, it has not accepted the segment. Receive then
	// stops, leaves that segment and what follows where they are, and returns the
	// error as it is. The next call of Receive or TryReceive passes the same
	// segment first.
	//
	// Otherwise Receive returns after at least one segment, or with an error of its
	// own; one that wraps io.EOF says that the peer has torn the stream down
	// gracefully (rule 9).
	Receive(place func(segment []byte, order uint64) error) error

	// TryReceive is like Receive, but does not wait. It reports whether place has
	// accepted a segment.
	TryReceive(place func(segment []byte, order uint64) error) (bool, error)

	// Discard drops what the peer still sends, until it ends the stream.
	Discard() error

	// CloseWrite ends this end's half of the stream gracefully.
	CloseWrite() error
	// Close ends the stream. Abort does so at once, without regard to data in
	// transit.
	Close() error
	Abort() error
}
