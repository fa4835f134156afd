package rdsstress

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// couple returns both ends of a pair, of which the first has sent three requests.
func couple(t *testing.T) (a, b *pair, requests [][]byte) {
	t.Helper()
	p := valid()
	p.Depth, p.RequestSize, p.AckSize = 3, 400, 100
	contents := pattern(400 - HeaderLen)
	a = newPair(&p, p.Receive, p.Send, 0, 1, contents)
	b = newPair(&p, p.Send, p.Receive, 1, 0, contents)
	for range 3 {
		h := a.compose(time.Time{}, true, free)
		if h.Op != Request {
			t.Fatalf("a %v is sent", h.Op)
		}
		requests = append(requests, append([]byte(nil), a.encode(&h)...))
	}
	if h := a.compose(time.Time{}, true, free); h.Op != 0 {
		t.Fatalf("a %v exceeds the depth", h.Op)
	}
	return a, b, requests
}

// What is lost, doubled, reordered or changed on the way is noticed.
func TestPairNoticesWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(m [][]byte) [][]byte
		want  string
	}{
		"lost":                      {func(m [][]byte) [][]byte { return [][]byte{m[0], m[2]} }, "1 are missing"},
		"doubled":                   {func(m [][]byte) [][]byte { return [][]byte{m[0], m[0]} }, "this one came before"},
		"reordered":                 {func(m [][]byte) [][]byte { return [][]byte{m[1], m[0]} }, "1 are missing"},
		"first byte":                {func(m [][]byte) [][]byte { m[0][HeaderLen]++; return m }, "byte 63 is 0x0c, and not 0x0b"},
		"last byte":                 {func(m [][]byte) [][]byte { m[0][399] ^= 1; return m }, "byte 399 is"},
		"cut short":                 {func(m [][]byte) [][]byte { m[0] = m[0][:399]; return m }, "it has 399 bytes"},
		"only a header's beginning": {func(m [][]byte) [][]byte { m[0] = m[0][:10]; return m }, "its header alone"},
		"other port":                {func(m [][]byte) [][]byte { m[0][13]++; return m }, "it says that it is from"},
		"other slot":                {func(m [][]byte) [][]byte { m[0][17] = 2; return m }, "slot 2"},
		"ack of nothing":            {func(m [][]byte) [][]byte { m[0][18] = byte(Ack); return [][]byte{m[0][:100]} }, "no request is outstanding"},
		"beyond the depth": {func(m [][]byte) [][]byte {
			more := append([]byte(nil), m[0]...)
			more[3] = 3
			return append(m, more)
		}, "more than 3 requests"},
	} {
		_, b, requests := couple(t)
		var err error
		for _, msg := range test.spoil(requests) {
			if _, _, err = b.arrived(msg, 0); err != nil {
				break
			}
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %q", name, err, test.want)
		}
		if _, is := errors.AsType[*Mismatch](err); !is && name != "only a header's beginning" {
			t.Errorf("%s: the error is a %T", name, err)
		}
	}
}

func TestPairAcknowledgesInOrderBeforeItRequests(t *testing.T) {
	a, b, requests := couple(t)
	for _, msg := range requests {
		if _, _, err := b.arrived(msg, 0); err != nil {
			t.Fatal(err)
		}
	}
	for slot := range 3 {
		sent := b.compose(time.Time{}, true, free)
		if sent.Op != Ack || len(b.encode(&sent)) != 100 {
			t.Fatalf("a %v of %d bytes is sent", sent.Op, len(b.encode(&sent)))
		}
		h, _, err := a.arrived(b.encode(&sent), 0)
		if err != nil || int(h.Index) != slot {
			t.Fatalf("%+v, %v", h, err)
		}
	}
	if h := b.compose(time.Time{}, false, free); h.Op != 0 {
		t.Errorf("a %v is sent, though no requests are wanted", h.Op)
	}
	if h := b.compose(time.Time{}, true, free); h.Op != Request {
		t.Errorf("a %v is sent", h.Op)
	}
}
