package rxkad

import (
	"math"
	"time"
)

// An old ticket has one byte for its lifetime. Up to 127 it counts units of 5 minutes.
// From 128 to 191 the lifetimes grow evenly, by some 7 % each, from 128 units to 30 days.
// 255 is forever.
const (
	lifetimeUnit    = 5 * 60
	firstGrowing    = 128
	lastGrowing     = 191
	lifetimeForever = 255
)

// lifetimes are the growing ones, in seconds.
var lifetimes = func() (l [lastGrowing - firstGrowing + 1]uint32) {
	const shortest, longest = firstGrowing * lifetimeUnit, 30 * 24 * 60 * 60
	for i := range l {
		l[i] = uint32(math.Round(shortest * math.Pow(float64(longest)/shortest, float64(i)/float64(len(l)-1))))
	}
	return l
}()

// endOf returns the end of a ticket. It is zero for one that does not end.
func endOf(start uint32, lifetime byte) time.Time {
	seconds := lifetimes[len(lifetimes)-1]
	switch {
	case lifetime == lifetimeForever:
		return time.Time{}
	case lifetime < firstGrowing:
		seconds = uint32(lifetime) * lifetimeUnit
	case lifetime <= lastGrowing:
		seconds = lifetimes[lifetime-firstGrowing]
	}
	return fromSeconds(start).Add(time.Duration(seconds) * time.Second)
}

// lifetimeOf returns the shortest lifetime that lasts d.
func lifetimeOf(d time.Duration) (byte, bool) {
	seconds := int64((d + time.Second - 1) / time.Second)
	if seconds <= 0 {
		return 0, false
	}
	if units := (seconds + lifetimeUnit - 1) / lifetimeUnit; units < firstGrowing {
		return byte(units), true
	}
	for i, l := range lifetimes {
		if int64(l) >= seconds {
			return byte(firstGrowing + i), true
		}
	}
	return 0, false
}
