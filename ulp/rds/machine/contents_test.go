package machine

import (
	"testing"

	"urnic/ulp/rds/wire"
)

func TestContents(t *testing.T) {
	var c contents
	of := func(source, dest uint16, sequence uint64) *wire.Header {
		return &wire.Header{SourcePort: source, DestPort: dest, Sequence: sequence}
	}
	if c.has(of(1, 2, 3), []byte("x")) {
		t.Error("nothing has come, and is known")
	}
	c.note(of(1, 2, 3), []byte("x"))
	c.note(of(1, 2, 3), []byte("x"))
	if !c.has(of(1, 2, 3), []byte("x")) {
		t.Error("what has come is not known")
	}
	for _, h := range []*wire.Header{of(2, 2, 3), of(1, 3, 3), of(1, 2, 4)} {
		if c.has(h, []byte("x")) {
			t.Errorf("%+v is another message", h)
		}
	}
	if c.has(of(1, 2, 3), []byte("y")) || c.has(of(1, 2, 3), nil) {
		t.Error("other data are another message")
	}
	again := of(1, 2, 3)
	again.Flags = wire.Retransmitted | wire.AckRequired
	if !c.has(again, []byte("x")) {
		t.Error("sent again, it is another message")
	}
}

func TestContentsAreBounded(t *testing.T) {
	var c contents
	for n := range uint64(3 * recentContents) {
		c.note(&wire.Header{Sequence: n + 1}, nil)
	}
	if len(c.seen) != recentContents || len(c.ring) != recentContents {
		t.Errorf("%d and %d messages are remembered", len(c.seen), len(c.ring))
	}
	known := 0
	for n := range uint64(3 * recentContents) {
		if has := c.has(&wire.Header{Sequence: n + 1}, nil); has != (n >= 2*recentContents) {
			t.Fatalf("message %d is known: %v", n+1, has)
		} else if has {
			known++
		}
	}
	if known != recentContents {
		t.Errorf("%d messages are known", known)
	}
}
