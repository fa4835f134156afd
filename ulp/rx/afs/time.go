package afs

import (
	"time"

	"urnic/ulp/rx/rpc"
)

// A Time is a time in seconds since the beginning of 1970, UTC. Zero means never.
type Time uint32

// TimeOf returns the protocol's time. The zero time is 0.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.Unix())
}

// Time returns the time in UTC, the zero time for 0.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(int64(t), 0).UTC()
}

// String returns the time in UTC, or "never".
func (t Time) String() string {
	if t == 0 {
		return "never"
	}
	return t.Time().Format(time.DateTime)
}

// XDR encodes or decodes t.
func (t *Time) XDR(x *rpc.XDR) { x.Uint32((*uint32)(t)) }
