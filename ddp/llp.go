package ddp

// An LLP is the lower layer that a DDP stream runs on: it moves DDP segments
// reliably, keeps their boundaries, and covers them with a strong digest
// (RFC 5041 §3). Package mpa has one over TCP.
//
// One goroutine at a time may send (Post, Flush, Posted, Accepted, CloseWrite)
// while another one receives (Receive, TryReceive, Discard). MULPDU, Close and
// Abort may be called from anywhere; the last two end what is waiting.
//
// The interface uses only built-in types, so that an implementation need not
// import this package.
type LLP interface {
	// MULPDU returns the longest segment, header included, that the layer takes
	// now, in octets; at least 128. It may change at any time; what was posted
	// before stays as it is (rules 1 and 2).
	MULPDU() int

	// Post hands over one segment. It returns false, and takes nothing, while
	// there is no room: Flush makes some. The header is copied. Payload that is
	// stable stays as it is until the next Flush returns, and may be sent from
	// where it lies; other payload is copied. After an error that wraps a
	// *memfault.Error, payload that can't be read, nothing was taken and the
	// stream can go on.
	Post(header []byte, payload [][]byte, stable bool) (bool, error)

	// Flush moves on what was posted and reports whether all of it is out.
	// Without wait it does what can be done at once; with wait, it waits until
	// it can do at least something.
	Flush(wait bool) (done bool, err error)

	// Posted counts what Post has taken since the beginning, Accepted what of
	// it will be transferred reliably, unless the layer reports an error
	// (rule 3). The unit is the layer's own.
	Posted() uint64
	Accepted() uint64

	// Receive waits until segments have arrived and passes each to place, with
	// its number in the sender's order, counted from 0. It may pass them in
	// another order (rule 5), but no segment twice (rule 11). It returns after
	// at least one, or with an error; one that wraps io.EOF says that the peer
	// has torn the stream down gracefully (rule 9).
	Receive(place func(segment []byte, order uint64)) error

	// TryReceive is Receive that does not wait. It reports whether it has passed
	// a segment.
	TryReceive(place func(segment []byte, order uint64)) (bool, error)

	// Discard drops what the peer still sends, until it ends the stream.
	Discard() error

	// CloseWrite ends this end's half of the stream gracefully.
	CloseWrite() error
	// Close ends the stream; Abort does so at once, without regard to what is
	// on its way.
	Close() error
	Abort() error
}
