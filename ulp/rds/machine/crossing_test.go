package machine

import (
	"net/netip"
	"testing"
	"time"
)

// When requests have crossed, and the peer has rejected this node's, the node with the
// lower address goes on soon. The other one gives the lower's own request the time to arrive.
func TestRetryAfterARejection(t *testing.T) {
	for name, tt := range map[string]struct {
		peer      string
		min, most Time
	}{
		"lower":  {"10.0.0.2", 0, time.Millisecond},
		"higher": {"10.0.0.0", crossing / 2, crossing * 3 / 2},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(Config{Addr: here, Generation: 1, Carriers: []Carrier{carriers["iwarp"]}, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			s, err := m.Bind(0, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Send(0, Endpoint{netip.MustParseAddr(tt.peer), 5000}, nil, Options{}); err != nil {
				t.Fatal(err)
			}
			todo := m.Effects()
			if len(todo) != 1 || todo[0].Kind != Dial {
				t.Fatal(todo)
			}
			todo[0].Path.Down(0, todo[0].Link, ErrRejected)
			if at, ok := m.Deadline(); !ok || at < tt.min || at > tt.most {
				t.Errorf("it tries again after %v; want %v to %v", at, tt.min, tt.most)
			}
		})
	}
}
