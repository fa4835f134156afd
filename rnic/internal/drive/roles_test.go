package drive

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The tables of the package's documentation are those that the code uses.
func TestDocumentationShowsTheTables(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	want := func(table string, first, width int, role fmt.Stringer, next []fmt.Stringer) {
		row := fmt.Sprintf("//\t%-*s", first, role)
		for _, n := range next {
			name := n.String()
			if n == role {
				name = "."
			}
			row += fmt.Sprintf("%-*s", width, name)
		}
		if row = strings.TrimRight(row, " "); !strings.Contains(string(doc), row+"\n") {
			t.Errorf("doc.go has no row of the %s\n%s", table, row)
		}
	}
	for r := range txRoles {
		var next []fmt.Stringer
		for _, n := range txNext[r] {
			next = append(next, n)
		}
		want("transmitter", 10, 9, r, next)
	}
	for r := range rxRoles {
		var next []fmt.Stringer
		for _, n := range rxNext[r] {
			next = append(next, n)
		}
		want("receiver", 11, 11, r, next)
	}
}

// Who has a role that nobody else may touch, keeps it until it gives it up: a program that
// receives continues until it drops the role, and the goroutine gets it for good at the
// end.
func TestRoleOfTheReceiverIsNeverTakenFromWhoUsesIt(t *testing.T) {
	for r := range rxRoles {
		for e := range rxEvents {
			now := rxNext[r][e]
			program := r == rxProgram || r == rxRecalled || r == rxEnding
			switch {
			case program && e != rxDrop && e != rxSettle && now != r && now != rxRecalled && now != rxEnding:
				t.Errorf("%v, event %d: a program loses the role to %v", r, e, now)
			case r.goroutines() && e != rxLetGo && !now.goroutines():
				t.Errorf("%v, event %d: the goroutine loses the role to %v", r, e, now)
			case (r == rxKept || r == rxEnding) && now != rxKept && now != rxEnding:
				t.Errorf("%v, event %d: after the end, %v has the role", r, e, now)
			}
		}
		if end := rxNext[r][rxEnd]; end != rxKept && end != rxEnding {
			t.Errorf("%v: at the end, %v has the role", r, end)
		}
	}
}

// A kick is never lost: somebody transmits after it, or looks again before leaving.
func TestKickIsNeverLost(t *testing.T) {
	for r := range txRoles {
		now := txNext[r][txKick]
		if r != txStopping && r != txStopped && now != txBusy && now != txAgain {
			t.Errorf("%v: after a kick, it is %v", r, now)
		}
		if now == txAgain && txNext[now][txRest] == txIdle {
			t.Errorf("%v: who is to look again may leave", r)
		}
	}
}
