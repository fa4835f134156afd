package rdmap

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/pd"
	"urnic/stag"
)

// A side is one end of a connection under test: a stream, its ULP, and the
// memory they share. A test moves it step by step, in one goroutine, or lets it
// run in two of its own.
type side struct {
	t      testing.TB
	stream *Stream
	llp    *tap
	table  *stag.Table
	domain *pd.Domain
	scope  stag.Scope

	mu    sync.Mutex
	queue []*Operation // to be sent

	onNext       func() // called by each Next, if not nil
	refuse       error  // what Deliver and Completed return
	unplaceable  error  // what receive buffers return
	decline      error  // what ReceiveBuffer returns, or nil
	arrived      int    // segments
	unready      bool   // do not heed MayRead
	submitted    []*Operation
	failed       []*Operation
	transmitting error // what Transmit or Flush ended with

	buffers   [][]byte // posted receives
	delivered []Delivery
	contents  [][]byte // of each delivery, when it came
	immediate []Immediate
	completed []*Operation
	onDeliver func(Delivery)
	onDone    func(*Operation)
	term      *Terminate
	terms     int   // Terminates that were delivered
	tries     bool  // the last call was TryReceive
	err       error // what Receive failed with first
	lost      bool  // it was the LLP

	wake chan struct{} // nil unless the side runs by itself
	done chan struct{}
}

// base is the TO of the first byte of regions.
const base = 0x1000

func newSide(t testing.TB, llp *ddptest.LLP, cfg Config) *side {
	t.Helper()
	d, err := pd.NewManager(pd.Limits{}, pd.Limits{}).NewDomain()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Memory, cfg.Scope = new(stag.Table), stag.Scope{Domain: d, Stream: 1}
	return newSideWith(t, llp, cfg)
}

// newSideWith returns a side with the memory that cfg names.
func newSideWith(t testing.TB, llp *ddptest.LLP, cfg Config) *side {
	s := &side{t: t, llp: &tap{LLP: llp}, table: cfg.Memory, domain: cfg.Scope.Domain, scope: cfg.Scope}
	s.stream = NewStream(s.llp, s, cfg)
	return s
}

// A tap is an LLP that shows what is posted, and can fail.
type tap struct {
	*ddptest.LLP
	see         func(segment []byte)
	stable      int // segments with payload that was posted as stable
	cantPost    error
	cantReceive error
	cantClose   error
}

func (l *tap) Close() error {
	if l.cantClose != nil {
		return l.cantClose
	}
	return l.LLP.Close()
}

func (l *tap) Receive(place func(segment []byte, order uint64) error) error {
	if l.cantReceive != nil {
		return l.cantReceive
	}
	return l.LLP.Receive(place)
}

func (l *tap) TryReceive(place func(segment []byte, order uint64) error) (bool, error) {
	if l.cantReceive != nil {
		return false, l.cantReceive
	}
	return l.LLP.TryReceive(place)
}

func (l *tap) Post(header []byte, payload [][]byte, stable bool) (bool, error) {
	if l.cantPost != nil {
		return false, l.cantPost
	}
	ok, err := l.LLP.Post(header, payload, stable)
	if ok && stable {
		l.stable++
	}
	if ok && l.see != nil {
		l.see(append(slices.Clone(header), slices.Concat(payload...)...))
	}
	return ok, err
}

// A region is registered memory of a side.
type region struct {
	mem   []byte
	tag   stag.STag
	entry *stag.Entry
}

// memory registers n bytes at base. They are aligned to 8.
func (s *side) memory(n int, access stag.Access) region {
	s.t.Helper()
	return s.register(stag.Memory{Mem: make([]byte, n), Base: base, Access: access})
}

func (s *side) register(m stag.Memory) region {
	s.t.Helper()
	e, err := s.table.Register(s.domain, m)
	if err != nil {
		s.t.Fatal(err)
	}
	return region{m.Mem, e.STag(), e}
}

// post posts receive buffers of these sizes.
func (s *side) post(sizes ...int) {
	for _, n := range sizes {
		s.buffers = append(s.buffers, make([]byte, n))
	}
}

// submit queues operations.
func (s *side) submit(ops ...*Operation) {
	s.mu.Lock()
	s.queue = append(s.queue, ops...)
	s.mu.Unlock()
	s.Wake()
}

// receive takes what one call of Receive brings, or of TryReceive by turns: what
// comes of it must be the same.
func (s *side) receive() {
	var err error
	if s.tries = !s.tries && s.wake == nil; !s.tries {
		err = s.stream.Receive()
	} else if some, e := s.stream.TryReceive(); some || e != nil {
		err = e
	} else {
		s.t.Error("TryReceive found nothing where something was waiting")
	}
	if err == nil {
		return
	}
	if s.err == nil {
		s.err = err
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		s.stream.Fail(e)
	} else {
		s.lost = true
	}
}

// waiting reports whether there is something to receive.
func (s *side) waiting() bool { return !s.lost && s.llp.Waiting() > 0 }

// receiveAll takes all that has arrived.
func (s *side) receiveAll() {
	for s.waiting() {
		s.receive()
	}
}

// transmit sends all that there is to send.
func (s *side) transmit() {
	for {
		idle, err := s.stream.Transmit(s)
		if err == nil {
			_, err = s.llp.Flush(true)
		}
		if err != nil && s.transmitting == nil {
			s.transmitting = err
		}
		if idle || err != nil {
			return
		}
	}
}

// settle receives and transmits until there is nothing more to do.
func (s *side) settle() {
	for {
		s.receiveAll()
		s.transmit()
		if !s.waiting() {
			return
		}
	}
}

// run lets the side work by itself until Receive fails.
func (s *side) run() {
	s.wake, s.done = make(chan struct{}, 1), make(chan struct{})
	var wg sync.WaitGroup
	received := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-s.wake:
				s.transmit()
			case <-received:
				s.transmit() // the Terminate
				return
			}
		}
	})
	wg.Go(func() {
		defer close(received)
		for s.err == nil {
			s.receive()
		}
	})
	go func() {
		wg.Wait()
		close(s.done)
	}()
}

func (s *side) Next() *Operation {
	if s.onNext != nil {
		s.onNext()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 || s.queue[0].isRead() && !s.unready && !s.stream.MayRead() {
		return nil
	}
	o := s.queue[0]
	s.queue = s.queue[1:]
	return o
}

func (s *side) Submitted(o *Operation, _ uint64) { s.submitted = append(s.submitted, o) }
func (s *side) Failed(o *Operation, _ error)     { s.failed = append(s.failed, o) }
func (s *side) Terminated(t Terminate)           { s.term, s.terms = &t, s.terms+1 }

func (s *side) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *side) Arrived() { s.arrived++ }

func (s *side) ReceiveBuffer(ahead uint32, immediate bool) (ddp.Buffer, error) {
	if s.decline != nil {
		return nil, s.decline
	}
	i := len(s.delivered) + int(ahead)
	if i >= len(s.buffers) {
		return nil, nil
	}
	if s.unplaceable != nil {
		return brokenBuffer{sliceBuffer(s.buffers[i]), s.unplaceable}, nil
	}
	if immediate {
		for len(s.immediate) <= i {
			s.immediate = append(s.immediate, Immediate{})
		}
		return sliceBuffer(s.immediate[i][:]), nil
	}
	return sliceBuffer(s.buffers[i]), nil
}

func (s *side) Deliver(d Delivery) error {
	i := len(s.delivered)
	content := s.buffers[i]
	if d.Op == OpImmediate || d.Op == OpImmediateSE {
		content = s.immediate[i][:]
	}
	s.contents = append(s.contents, bytes.Clone(content[:d.Length]))
	s.delivered = append(s.delivered, d)
	if s.onDeliver != nil {
		s.onDeliver(d)
	}
	return s.refuse
}

func (s *side) Completed(o *Operation) error {
	s.completed = append(s.completed, o)
	if s.onDone != nil {
		s.onDone(o)
	}
	return s.refuse
}

type sliceBuffer []byte

func (b sliceBuffer) Len() uint64 { return uint64(len(b)) }

// Place panics if the range is not inside the buffer.
func (b sliceBuffer) Place(off uint32, p []byte) error {
	copy(b[off:][:len(p):len(b)-int(off)], p)
	return nil
}

// A brokenBuffer takes nothing.
type brokenBuffer struct {
	sliceBuffer
	err error
}

func (b brokenBuffer) Place(uint32, []byte) error { return b.err }

// payload is payload in one stable piece.
type payload []byte

func (p payload) Gather(pieces [][]byte, off, n uint32) ([][]byte, error) {
	return append(pieces, p[off:off+n]), nil
}
func (payload) Release()     {}
func (payload) Stable() bool { return true }

// errLost is what brokenPayload fails with.
var errLost = errors.New("the memory is gone")

// A brokenPayload fails from an offset on.
type brokenPayload struct{ from uint32 }

func (p brokenPayload) Gather(pieces [][]byte, off, n uint32) ([][]byte, error) {
	if off >= p.from {
		return pieces, errLost
	}
	return append(pieces, make([]byte, n)), nil
}
func (brokenPayload) Release()     {}
func (brokenPayload) Stable() bool { return false }

// pattern returns n bytes that differ from place to place.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) + byte(i>>8)*7 + seed
	}
	return b
}
