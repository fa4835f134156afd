package rxkad

import (
	"fmt"
	"time"
)

// The versions of a [Ticket] that are no key versions.
const (
	VersionKerberos      = 256 // a whole Kerberos 5 ticket
	VersionEncryptedPart = 213 // only what is encrypted of a Kerberos 5 ticket
)

// A ticket's length, in bytes.
const (
	minTicket = 32
	maxTicket = 12000
)

// A Ticket is what a client needs to prove who it is: the ticket of a service, which only
// the service can read, and the session key that is in it too.
type Ticket struct {
	// Version is [VersionKerberos], [VersionEncryptedPart], or, for an old ticket, the
	// version of the service's key.
	Version    uint32
	SessionKey Key
	Data       []byte
}

// old reports whether the ticket is of the kind that came before Kerberos 5.
func (t *Ticket) old() bool {
	return t.Version != VersionKerberos && t.Version != VersionEncryptedPart
}

// Contents are what a ticket says.
type Contents struct {
	Name     string
	Instance string // empty for most users
	Realm    string // or cell; empty in tickets that servers make for themselves

	SessionKey Key

	// From Start to End the ticket is valid. A zero time is no limit.
	Start, End time.Time

	// These stand in old tickets only.
	Host            uint32 // the client's IPv4 address; 0 for any
	Service         string // who the ticket is for
	ServiceInstance string
}

const (
	maxName     = 63 // bytes of a name, an instance, a realm
	clockSkew   = 15 * time.Minute
	maxLifetime = 30 * 24 * time.Hour
)

// principal is the client as AFS writes it.
func (c *Contents) principal() string {
	if c.Instance == "" {
		return c.Name
	}
	return c.Name + "." + c.Instance
}

// check judges the times of a ticket. Clocks may differ by 15 minutes, so it may begin
// later than now. An old one may also have ended; data is refused all the same.
func (c *Contents) check(now time.Time, old bool) error {
	grace := time.Duration(0)
	if old {
		grace = clockSkew
	}
	switch {
	case !c.End.IsZero() && !c.Start.Before(c.End):
		return fail(CodeBadTicket, "it begins %s and ends %s", stamp(c.Start), stamp(c.End))
	case !c.End.IsZero() && c.End.Add(grace).Before(now):
		return fail(CodeExpired, "it ended %s: get a new one", stamp(c.End))
	case !c.Start.IsZero() && !c.End.IsZero() && c.End.Sub(c.Start) > maxLifetime:
		return fail(CodeBadTicket, "it is valid for more than 30 days, from %s to %s", stamp(c.Start), stamp(c.End))
	case c.Start.After(now.Add(clockSkew + maxLifetime)):
		return fail(CodeBadTicket, "it begins only %s", stamp(c.Start))
	case c.Start.After(now.Add(clockSkew)):
		return fail(CodeNoAuth, "it begins %s; are the clocks right?", stamp(c.Start))
	}
	return nil
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "at any time"
	}
	return t.UTC().Format(time.RFC3339)
}

// The times of tickets are seconds since 1970 in 32 bits.
const never = 1<<32 - 1

func fromSeconds(s uint32) time.Time { return time.Unix(int64(s), 0).UTC() }

// startSeconds gives the beginning of a ticket. 0 is no limit.
func startSeconds(t time.Time) (uint32, error) {
	if t.IsZero() {
		return 0, nil
	}
	if s := t.Unix(); s > 0 && s < never {
		return uint32(s), nil
	}
	return 0, fmt.Errorf("rxkad: tickets can't have the time %s: use one from 1970 to 2105", stamp(t))
}
