package drive

import (
	"testing"
	"time"
)

func TestPatience(t *testing.T) {
	const long = 40 * away
	for name, c := range map[string]struct {
		before patience
		sight  sight
		after  patience
		v      verdict
		time   time.Duration // until the next look
	}{
		"a program has the role":         {patience{3, long}, sight{free: false, uses: 5}, patience{3, long}, rest, long},
		"nobody has come back":           {patience{5, long}, sight{free: true, uses: 5}, patience{5, long / 4}, takeBack, long / 4},
		"again":                          {patience{5, 2 * away}, sight{free: true, uses: 5}, patience{5, away / 2}, takeBack, away},
		"again, without patience":        {patience{5, 0}, sight{free: true, uses: 5}, patience{5, 0}, takeBack, away},
		"somebody has come back":         {patience{5, 0}, sight{free: true, uses: 6}, patience{6, 2 * away}, goOn, 2 * away},
		"time and again":                 {patience{5, 4 * away}, sight{free: true, uses: 900}, patience{900, 8 * away}, goOn, 8 * away},
		"after having been away":         {patience{5, away / 3}, sight{free: true, uses: 6}, patience{6, 2 * away}, goOn, 2 * away},
		"for very long":                  {patience{5, 80 * away}, sight{free: true, uses: 6}, patience{6, longestAway}, goOn, longestAway},
		"longest":                        {patience{5, longestAway}, sight{free: true, uses: 6}, patience{6, longestAway}, goOn, longestAway},
		"a program transmits":            {patience{5, long}, sight{free: true, posts: true, uses: 5}, patience{5, long}, goOn, long},
		"a program transmits, and polls": {patience{5, 0}, sight{free: true, posts: true, uses: 6}, patience{5, 0}, goOn, away},
		"one transmits, another has it":  {patience{5, 0}, sight{free: false, posts: true, uses: 6}, patience{5, 0}, rest, away},
	} {
		after, v := c.before.look(c.sight)
		if after != c.after || v != c.v || after.time() != c.time {
			t.Errorf("%s: %+v, verdict %d, next look after %v; want %+v, %d, %v", name, after, v, after.time(), c.after, c.v, c.time)
		}
	}
}

func TestSpinning(t *testing.T) {
	for d, want := range map[time.Duration]bool{0: true, away - 1: true, away: false, time.Hour: false} {
		if got := isSpinning(1000, 1000+int64(d)); got != want {
			t.Errorf("%d polls in vain within %v: spinning %v; want %v", spinPolls, d, got, want)
		}
	}
}
