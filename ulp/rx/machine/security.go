package machine

import (
	"time"

	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// A handshake is the state between challenge and response.
type handshake struct {
	challenges   int  // that were sent
	challengeAt  Time // when the next is due; 0: none
	challengeDue bool
	response     []byte // must be sent
	responses    int    // that were built lately
	since        Time
}

// wall returns the time of day.
func (m *Machine) wall() time.Time { return m.cfg.Start.Add(m.now) }

// challenge asks the client for its identity.
func (c *Conn) challenge() {
	if c.auth.challengeAt != 0 {
		return
	}
	c.auth.challengeDue = true
	c.auth.challengeAt = c.m.now + challengeWait
	c.m.timers.set(&c.timer, c.auth.challengeAt)
	c.wake()
}

// ring repeats the challenge while a call waits for the response.
func (a *handshake) ring(c *Conn, now Time) Time {
	if a.challengeAt == 0 {
		return never
	}
	if now < a.challengeAt {
		return a.challengeAt
	}
	a.challengeAt = 0
	wanted := false
	for _, k := range c.calls {
		wanted = wanted || k != nil && k.err == nil && k.in.started()
	}
	switch {
	case c.secured != nil || c.err != nil || !wanted:
		return never
	case a.challenges >= challenges:
		c.fail(&AbortError{Code: wire.CallDead, Cause: errChallenge}, false)
		return never
	}
	a.challengeAt = now + challengeWait
	a.challengeDue = true
	c.wake()
	return a.challengeAt
}

// challenged answers a challenge.
func (c *Conn) challenged(body []byte) {
	m := c.m
	const most = 4 // responses for each challengeWait: they are larger than challenges
	running := false
	for _, k := range c.calls {
		running = running || k != nil && !k.over()
	}
	a := &c.auth
	if m.now-a.since >= challengeWait {
		a.since, a.responses = m.now, 0
	}
	if !c.key.client || !running || a.responses >= most {
		m.stats.Drops.Challenge++
		return
	}
	a.responses++
	if c.clientSec == nil {
		c.fail(&AbortError{Code: codeNoClass, Cause: errNoClass}, true)
		return
	}
	response, err := c.clientSec.Respond(body, c.current())
	if err != nil {
		c.fail(&AbortError{Code: codeOf(err), Cause: err}, true)
		return
	}
	a.response = response
	for _, k := range c.calls {
		if k != nil && k.err == nil {
			k.heard = m.now
		}
	}
	c.wake()
}

// current returns for each channel the number of the outstanding call, or else of the next
// one. A channel that has had none has 0.
func (c *Conn) current() secure.Calls {
	numbers := c.numbers
	for i, k := range c.calls {
		if k != nil && k.over() {
			numbers[i]++
		}
	}
	return numbers
}

// codeNoClass is for a challenge that this side can't answer.
const codeNoClass = wire.RxkadNoAuth

// dropResponse forgets what would have been sent.
func (c *Conn) dropResponse() { c.auth.response, c.auth.challengeDue = nil, false }

// responded checks a client's response.
func (c *Conn) responded(body []byte) {
	m := c.m
	if c.serverSec == nil || c.secured != nil || c.auth.challenges == 0 {
		m.stats.Drops.Challenge++ // it was not requested
		return
	}
	calls, err := c.serverSec.Verify(body, m.wall())
	if err != nil {
		m.stats.Refused++
		c.fail(&AbortError{Code: codeOf(err), Cause: err}, true)
		return
	}
	// The numbers in the response keep calls of an earlier time from being replayed. They
	// are those of the calls outstanding: one may not have come here yet, and another one
	// that has begun since may have overtaken the response.
	for i, n := range calls {
		if n == 0 {
			continue
		}
		if k := c.calls[i]; k != nil && k.number < n {
			k.fail(&AbortError{Code: wire.CallDead, Cause: errReplaced})
		}
		c.numbers[i] = max(c.numbers[i], n-1)
	}
	c.secured = secure.Protection(c.serverSec)
	c.auth.challengeAt, c.auth.challengeDue = 0, false
	for _, k := range c.calls {
		if k != nil && k.err == nil {
			k.unseal()
			k.rearm()
		}
		if c.err != nil {
			return
		}
	}
}
