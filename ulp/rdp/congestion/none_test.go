package congestion

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// RDP as specified: nothing that the endpoint notices limits it.
func TestNoneHasNoLimit(t *testing.T) {
	n := None()
	n.Sent(0, 1)
	n.Acked(0, Ack{Segments: 1})
	n.Lost(0, 5)
	n.TimedOut(0, 5)
	n.Reported(0, Report{Drops: 3, Marks: 2})
	if n.Window() != math.MaxInt {
		t.Errorf("the window is %d", n.Window())
	}
}

// What the path has enforced is a limit, which grows by one segment a window.
func TestNoneTakesTheWindowOfAReport(t *testing.T) {
	n := None()
	d := drive(t, n)
	n.Reported(0, Report{Window: 8})
	n.Reported(0, Report{Window: 9})
	d.want(8, "reported")
	d.fill()
	for w := 8; w < 20; w++ {
		d.ack(w - 1)
		d.want(w, "all but one acknowledged")
		d.ack(1)
		d.want(w+1, "a window acknowledged")
	}
	d.ack(19)
	n.Reported(0, Report{Window: 20})
	d.ack(1)
	d.want(21, "the same one reported")
	n.Reported(0, Report{Window: 20})
	n.Acked(0, Ack{Segments: 10, InFlight: 9})
	n.Acked(0, Ack{Segments: 10, InFlight: 9})
	d.want(20, "not used")
	n.Reported(0, Report{Window: 65535})
	d.want(20, "a higher one reported")
}

// Above what a peer can announce there is no limit.
func TestNoneForgetsAReport(t *testing.T) {
	n := None()
	n.Reported(0, Report{Window: 65534})
	n.Acked(0, Ack{Segments: 65534})
	n.Acked(0, Ack{Segments: 65534, InFlight: 1})
	if n.Window() != 65535 {
		t.Errorf("the window is %d", n.Window())
	}
	n.Acked(0, Ack{Segments: 1, InFlight: 65534})
	if n.Window() != math.MaxInt {
		t.Errorf("the window is %d", n.Window())
	}
}

func TestByName(t *testing.T) {
	for _, name := range Names() {
		create, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		c, d := create(), create()
		if got := fmt.Sprint(c); got != name {
			t.Errorf("%s is called %s", name, got)
		}
		if c == d {
			t.Errorf("%s: two connections have one controller", name)
		}
	}
	_, err := ByName("vegas")
	var unknown *NameError
	if !errors.As(err, &unknown) || unknown.Name != "vegas" || !strings.Contains(err.Error(), "none, reno, cubic") {
		t.Errorf("vegas: %v", err)
	}
	if !slices.Equal(Names(), []string{"none", "reno", "cubic"}) {
		t.Errorf("the names are %v", Names())
	}
}
