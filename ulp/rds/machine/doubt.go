package machine

import "time"

// Linux sends a change of its congested ports on only one path, whichever runs first. If two changes
// follow each other on two paths, the older may be received last: then a port stays congested here that
// has long been free, and Linux sends nothing more about it, as nothing is sent to the port. So when a
// socket has waited for a port of such a peer, and the peer has sent no map for a while, some messages
// are sent to it nevertheless: Linux accepts them, and reports any change that they cause.

const (
	// doubtAfter is how long a peer may send no map before it is in doubt whether its ports are congested.
	doubtAfter = Time(time.Second)
	// maxTried bounds the messages that are sent to ports that are in doubt, each time.
	maxTried = 64
)

// A doubt is what a connection does about ports that stay congested.
type doubt struct {
	from    Time // of the current wait
	waits   bool // it is among Machine.doubts
	told    bool // the peer has sent a map meanwhile
	tried   int  // messages that might be sent the last time
	allowed int  // of them, those that still may
}

// overtakes reports whether one of the peer's maps may overtake another one: it has several paths, or has not
// named them yet, and sends a map on one of them only.
func (c *Conn) overtakes() bool { return c.agreed != 1 && c.generation == 0 }

// permits reports whether a message may be sent to a congested port, to try it.
func (c *Conn) permits() bool {
	if c.doubt.allowed > 0 {
		c.doubt.allowed--
		return true
	}
	if c.overtakes() && !c.doubt.waits {
		c.begin()
	}
	return false
}

// begin begins to wait for a map of the peer's ports.
func (c *Conn) begin() {
	c.doubt.waits, c.doubt.told, c.doubt.from = true, false, c.m.now
	c.m.doubts.push(c)
}

// news notes that the peer has sent a map of its ports.
func (d *doubt) news() { d.told, d.tried, d.allowed = true, 0, 0 }

// dispel lets the sockets of connections try congested ports whose peers have sent no map for
// long enough: one message at first, then twice as many each time.
func (m *Machine) dispel() {
	for m.doubts.len() > 0 && m.doubts.first().doubt.from+doubtAfter <= m.now {
		c := m.doubts.pop()
		c.doubt.waits = false
		switch d := &c.doubt; {
		case len(c.congested.sockets) == 0 || !c.overtakes():
			d.news()
		case d.told:
			c.begin()
		default:
			d.tried = min(max(1, 2*d.tried), maxTried)
			d.allowed = d.tried
			c.free()
		}
	}
}
