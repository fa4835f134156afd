package rnic

import "testing"

// A turn of more links than that would come too late for each of them.
func TestPollLeavesVeryManyLinksToTheirGoroutines(t *testing.T) {
	links := make([]*link, driveAll+1)
	for i := range links {
		links[i] = new(link)
		links[i].rx.role.Store(rxFree)
	}
	c := new(CQ)
	c.drive.links.Store(&links)
	for range 2 * spinPolls {
		if c.progress() {
			t.Error("a poll has looked after a link")
		}
	}
	for i, l := range links {
		if r := l.rx.role.Load(); r != rxFree {
			t.Errorf("link %d: the role is %d; want %d", i, r, rxFree)
		}
	}
}
