package wire

import (
	"fmt"
	"testing"
)

// A tape shows how a long case began and how it ended, and how much is missing between.
func TestTapeKeepsTheBeginningAndTheEnd(t *testing.T) {
	for _, n := range []int{0, 1, maxEvents/2 + 1, maxEvents, maxEvents + 1, 5*maxEvents + 7} {
		tape := NewTape()
		for i := range n {
			tape.Add(Event{By: Tester, What: fmt.Sprint(i)})
		}
		events, lost := tape.Events()
		if want := max(0, n-maxEvents); lost != want {
			t.Errorf("of %d events, %d are lost, want %d", n, lost, want)
		}
		shown := len(events)
		if lost > 0 {
			shown--
			if note := events[maxEvents/2]; note.By != Control || note.What != fmt.Sprintf("%d events are not shown", lost) {
				t.Errorf("of %d events, number %d is %q by %s", n, maxEvents/2, note.What, note.By)
			}
		}
		if shown != n-lost {
			t.Errorf("of %d events, %d are shown and %d lost", n, shown, lost)
		}
		for i, e := range events {
			want := i
			switch {
			case lost > 0 && i == maxEvents/2:
				continue
			case lost > 0 && i > maxEvents/2:
				want = n - len(events) + i
			}
			if e.What != fmt.Sprint(want) {
				t.Fatalf("of %d events, number %d is %s, want %d", n, i, e.What, want)
			}
		}
	}
}
