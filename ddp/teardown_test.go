package ddp

import (
	"errors"
	"io"
	"slices"
	"testing"

	"urnic/ddp/ddptest"
)

// A watched is a lower layer that tells what teardown it was asked for.
type watched struct {
	*ddptest.LLP
	asked   []string
	pending int   // how many times Flush has more to do
	polled  bool  // Flush was called without wait
	flush   error // that Flush fails with
	receive error // that Receive fails with
	discard error // that Discard fails with
}

func (l *watched) Discard() error {
	l.asked = append(l.asked, "Discard")
	if l.discard != nil {
		return l.discard
	}
	return l.LLP.Discard()
}

func (l *watched) CloseWrite() error {
	l.asked = append(l.asked, "CloseWrite")
	return l.LLP.CloseWrite()
}

func (l *watched) Close() error {
	l.asked = append(l.asked, "Close")
	return l.LLP.Close()
}

func (l *watched) Abort() error {
	l.asked = append(l.asked, "Abort")
	return l.LLP.Abort()
}

func (l *watched) Flush(wait bool) (bool, error) {
	l.polled = l.polled || !wait
	if l.flush != nil {
		return false, l.flush
	}
	if l.pending > 0 {
		l.pending--
		return false, nil
	}
	return l.LLP.Flush(wait)
}

func (l *watched) Receive(place func([]byte, uint64) error) error {
	if l.receive != nil {
		return l.receive
	}
	return l.LLP.Receive(place)
}

// A watchedLink is a link whose receiver's lower layer is watched.
type watchedLink struct {
	*link
	llp *watched // under b
}

func newWatchedLink(t testing.TB) *watchedLink {
	l := newLink(t, ddptest.Options{}, newUpper([]int{4, 8, 4}))
	w := &watchedLink{link: l, llp: &watched{LLP: l.llpB}}
	l.b = NewStream(w.llp, l.ulpB, len(l.ulpB.queues))
	return w
}

// reply sends a message from b to a, and checks that it comes through.
func (w *watchedLink) reply() {
	w.Helper()
	m := sized(Message{}, 5)
	send(w, &w.b.Source, &m)
	if _, err := w.llp.Flush(true); err != nil {
		w.Fatal(err)
	}
	before := len(w.ulpA.got)
	if err := w.a.Receive(); err != nil || len(w.ulpA.got) != before+1 {
		w.Errorf("the message to the other side ended as %v; %d deliveries", err, len(w.ulpA.got)-before)
	}
}

// wantAsked checks what the lower layer was asked for.
func (w *watchedLink) wantAsked(want ...string) {
	w.Helper()
	if !slices.Equal(w.llp.asked, want) {
		w.Errorf("the lower layer was asked for %q; want %q", w.llp.asked, want)
	}
}

// wantEnd checks that a's peer has ended its half gracefully.
func (w *watchedLink) wantEnd(s *Stream) {
	w.Helper()
	if err := s.Receive(); !errors.Is(err, io.EOF) {
		w.Errorf("Receive = %v; want the end of the stream", err)
	}
}

var errLLP = errors.New("the digest does not match")

func TestDDPNeverTearsDownByItself(t *testing.T) {
	t.Run("peer has ended its half", func(t *testing.T) {
		w := newWatchedLink(t)
		if err := w.a.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		w.wantEnd(w.b)
		w.wantEnd(w.b)
		w.wantAsked()
	})
	t.Run("peer has broken a rule", func(t *testing.T) {
		for code, b := range faults() {
			w := newWatchedLink(t)
			w.llpA.Inject(b, 0)
			wantError(t, w.b.Receive(), code, b)
			w.llpA.Inject(b, 1)
			if err := w.b.Receive(); err != nil {
				t.Errorf("%v: then Receive = %v", code, err)
			}
			w.reply()
			w.wantAsked()
		}
	})
	t.Run("ULP has refused", func(t *testing.T) {
		w := newWatchedLink(t)
		w.ulpB.deliver = func(*delivery) error { return errors.New("refused") }
		w.llpA.Inject(untagged(0, 1, 0, true, "x"), 0)
		if err := w.b.Receive(); err == nil {
			t.Error("Receive says nothing")
		}
		w.wantAsked()
	})
	t.Run("LLP has failed", func(t *testing.T) {
		w := newWatchedLink(t)
		w.llp.receive = errLLP
		if err := w.b.Receive(); err == nil {
			t.Error("Receive says nothing")
		}
		w.wantAsked()
	})
	t.Run("message was refused", func(t *testing.T) {
		w := newWatchedLink(t)
		if _, err := w.b.Send(&Message{QN: 9}); err == nil {
			t.Error("Send says nothing")
		}
		w.wantAsked()
	})
}

func TestTransferAfterGracefulTeardownFails(t *testing.T) {
	w := newWatchedLink(t)
	if err := w.b.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	posted := w.llp.Posted()
	for _, m := range []Message{{}, {Tagged: true}, sized(Message{}, 5), sized(Message{Tagged: true}, 5)} {
		if done, err := w.b.Send(&m); done || !errors.Is(err, ErrClosed) {
			t.Errorf("Send = %v, %v; want %v", done, err, ErrClosed)
		}
	}
	if w.llp.Posted() != posted {
		t.Error("something was posted")
	}
	w.wantEnd(w.a)
}

func TestMessageThatWasBegunCanBeFinished(t *testing.T) {
	l := &tape{mulpdu: 128, room: 1}
	src := newSource(l, 1)
	m := sized(Message{}, 200)
	if done, err := src.Send(&m); done || err != nil {
		t.Fatalf("Send = %v, %v", done, err)
	}
	src.Close()
	l.used = 0
	if done, err := src.Send(&m); !done || err != nil {
		t.Errorf("Send = %v, %v; want the end of the message", done, err)
	}
	if _, err := src.Send(&Message{}); !errors.Is(err, ErrClosed) {
		t.Errorf("the next message ended as %v; want %v", err, ErrClosed)
	}
}

// "ensure that all ULP data would be transferred" (RFC 5041 §6.2.1).
func TestGracefulTeardownTransfersWhatWasPosted(t *testing.T) {
	w := newWatchedLink(t)
	for range 2 {
		send(t, &w.b.Source, &Message{Length: 5, Payload: octets("hello")})
	}
	w.llp.pending = 3
	if err := w.b.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if w.llp.polled {
		t.Error("CloseWrite asked again and again instead of waiting")
	}
	w.wantAsked("CloseWrite")
	for range 2 {
		if err := w.a.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.ulpA.messages(); !slices.Equal(got, []string{"hello", "hello"}) {
		t.Errorf("delivered %q", got)
	}
	w.wantEnd(w.a)

	w = newWatchedLink(t)
	w.llp.flush = errLLP
	if err := w.b.CloseWrite(); !errors.Is(err, errLLP) {
		t.Errorf("CloseWrite = %v; want what the lower layer says", err)
	}
	w.wantAsked()
}

func TestDiscardIsForTheLowerLayer(t *testing.T) {
	w := newWatchedLink(t)
	w.llp.discard = errLLP
	if err := w.b.Discard(); !errors.Is(err, errLLP) {
		t.Errorf("Discard = %v; want what the lower layer says", err)
	}
	w.wantAsked("Discard")
}

func TestDataAfterGracefulTeardownAborts(t *testing.T) {
	for name, b := range map[string][]byte{
		"a message": untagged(0, 1, 0, true, "x"),
		"nonsense":  {0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatchedLink(t)
			if err := w.a.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			w.wantEnd(w.b)
			w.llpA.Inject(b, 0)
			err := w.b.Receive()
			wantError(t, err, CodeLocalCatastrophic, b)
			if e := (*Error)(nil); errors.As(err, &e) && e.Clause != "RFC 5041 §6.2.1" {
				t.Errorf("%v names the wrong clause", e)
			}
			w.wantAsked("Abort")
			if w.ulpB.calls != 0 {
				t.Error("the ULP saw the segment")
			}
			if t.Failed() {
				return // there may be nothing that ends the calls below
			}
			for _, s := range []*Stream{w.a, w.b} {
				if err := s.Receive(); !errors.Is(err, ddptest.ErrAborted) {
					t.Errorf("Receive = %v; want %v", err, ddptest.ErrAborted)
				}
			}
		})
	}
}

func TestGracefulTeardownClosesTheOtherHalf(t *testing.T) {
	w := newWatchedLink(t)
	if err := w.a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	w.wantEnd(w.b) // which tells the ULP of the half-closed state
	w.reply()      // "continue to process outbound data transfer requests normally"
	w.wantAsked()
	if err := w.b.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	w.wantAsked("CloseWrite")
	w.wantEnd(w.a)
}

// "DDP SHOULD keep data reception enabled on the other half" (RFC 5041 §6.2.1).
func TestReceptionGoesOnAfterGracefulTeardown(t *testing.T) {
	w := newWatchedLink(t)
	if err := w.b.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	w.wantEnd(w.a)
	w.send(sized(Message{}, 4))
	if got := w.ulpB.messages(); !slices.Equal(got, []string{text(4)}) {
		t.Errorf("delivered %q", got)
	}
}

func TestFatalErrorIsToldToTheULP(t *testing.T) {
	t.Run("LLP lost", func(t *testing.T) {
		w := newWatchedLink(t)
		if err := w.a.Abort(); err != nil {
			t.Fatal(err)
		}
		if err := w.b.Receive(); !errors.Is(err, ddptest.ErrAborted) {
			t.Errorf("Receive = %v; want %v", err, ddptest.ErrAborted)
		}
		send(t, &w.b.Source, &Message{})
		if _, err := w.llp.Flush(true); !errors.Is(err, ddptest.ErrAborted) {
			t.Errorf("Flush = %v; want %v", err, ddptest.ErrAborted)
		}
	})
	t.Run("LLP error", func(t *testing.T) {
		w := newWatchedLink(t)
		w.llp.receive = errLLP
		if err := w.b.Receive(); !errors.Is(err, errLLP) {
			t.Errorf("Receive = %v; want %v", err, errLLP)
		}
		src := newSource(&tape{err: errLLP}, 1)
		if _, err := src.Send(&Message{}); !errors.Is(err, errLLP) {
			t.Errorf("Send = %v; want %v", err, errLLP)
		}
	})
	t.Run("invalid header", func(t *testing.T) {
		for code, b := range faults() {
			l := newLink(t, ddptest.Options{}, newUpper([]int{4, 8, 4}))
			l.llpA.Inject(b, 0)
			wantError(t, l.b.Receive(), code, b)
		}
	})
	t.Run("after segments that came with it", func(t *testing.T) {
		w := newWatchedLink(t)
		w.b = NewStream(&burst{watched: w.llp, segments: [][]byte{untagged(0, 1, 0, true, "ok"), untagged(9, 1, 0, true, "")}, err: errLLP}, w.ulpB, 1)
		if e := asError(w.b.Receive()); e == nil || e.Code != CodeInvalidQN {
			t.Errorf("Receive = %v; want what is wrong with the segment", e)
		}
		if err := w.b.Receive(); !errors.Is(err, errLLP) {
			t.Errorf("Receive = %v; want %v", err, errLLP)
		}
		if got := w.ulpB.messages(); !slices.Equal(got, []string{"ok"}) {
			t.Errorf("delivered %q", got)
		}
	})
}

// A burst passes several segments at once, and fails with the last of them.
type burst struct {
	*watched
	segments [][]byte
	order    uint64
	err      error
}

func (l *burst) Receive(place func([]byte, uint64) error) error {
	for len(l.segments) > 0 {
		if err := place(l.segments[0], l.order); err != nil {
			return err
		}
		l.segments = l.segments[1:]
		l.order++
	}
	return l.err
}

func asError(err error) (e *Error) {
	errors.As(err, &e)
	return e
}

// An error, one more message that tells the peer, and the teardown (RFC 5041
// §6.2.2, §7.1).
func TestStreamStaysUntilTheULPAborts(t *testing.T) {
	w := newWatchedLink(t)
	w.llpA.Inject(untagged(9, 1, 0, true, "x"), 0)
	if e := asError(w.b.Receive()); e == nil || e.Code != CodeInvalidQN {
		t.Fatalf("Receive = %v", e)
	}
	w.llpA.Inject(untagged(0, 1, 0, true, "x"), 1)
	if err := w.b.Receive(); err != nil {
		t.Fatalf("Receive = %v", err)
	}
	w.wantAsked()
	w.reply()
	w.wantAsked()
	if err := w.b.Abort(); err != nil {
		t.Fatal(err)
	}
	w.wantAsked("Abort")
	for _, s := range []*Stream{w.a, w.b} {
		if err := s.Receive(); !errors.Is(err, ddptest.ErrAborted) {
			t.Errorf("Receive = %v; want %v", err, ddptest.ErrAborted)
		}
	}
}

// The same, gracefully: the ULP discards what still comes, and closes.
func TestStreamEndsGracefullyAfterAnError(t *testing.T) {
	w := newWatchedLink(t)
	w.llpA.Inject(untagged(9, 1, 0, true, "x"), 0)
	if err := w.b.Receive(); err == nil {
		t.Fatal("Receive says nothing")
	}
	w.reply()
	if err := w.b.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	w.wantEnd(w.a)
	w.llpA.Inject(untagged(0, 1, 0, true, "late"), 1)
	if err := w.a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := w.b.Discard(); err != nil {
		t.Fatal(err)
	}
	if err := w.b.Close(); err != nil {
		t.Fatal(err)
	}
	w.wantAsked("CloseWrite", "Discard", "Close")
	if err := w.b.Receive(); err == nil || w.ulpB.calls != 0 {
		t.Errorf("after Close, Receive = %v; %d calls of the ULP", err, w.ulpB.calls)
	}
}
