package mpa

import (
	"fmt"
	"time"
)

// A CRCPolicy says whether an endpoint wants CRCs (RFC 5044 §4.4).
type CRCPolicy uint8

// The policies.
const (
	// CRCPrefer requests CRCs, so that they are used: the default.
	CRCPrefer CRCPolicy = iota
	// CRCRequire insists on CRCs. On the wire it is the same as CRCPrefer, as
	// both sides must use CRCs if either requests them (RFC 5044 §7.1.1). If
	// the peer does not, its first FPDU ends in a CRC error.
	CRCRequire
	// CRCOff requests none: they are used only if the peer requests them.
	// Choose it only where something else protects the data as well (RFC 5044
	// §4.4).
	CRCOff
)

// String returns the name of the policy.
func (p CRCPolicy) String() string {
	switch p {
	case CRCPrefer:
		return "prefer"
	case CRCRequire:
		return "require"
	case CRCOff:
		return "off"
	}
	return fmt.Sprintf("CRC policy %d", uint8(p))
}

// ParseCRCPolicy returns the policy of that name.
func ParseCRCPolicy(name string) (CRCPolicy, error) {
	for _, p := range []CRCPolicy{CRCPrefer, CRCRequire, CRCOff} {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("mpa: no CRC policy %q: say prefer, require or off", name)
}

// The default time limits of the start-up phases.
const (
	DefaultRequestTimeout   = 5 * time.Second
	DefaultReplyTimeout     = 10 * time.Second
	DefaultFirstFPDUTimeout = 10 * time.Second
)

// Config has the parameters with which an endpoint starts an MPA connection.
// The zero Config is ready for use: revision 2 with fallback to 1, CRCs, no
// markers, no Reads.
type Config struct {
	// Revision pins the revision, if it is Revision1 or Revision2. Zero leaves
	// it open: an Initiator requests 2 if it has something enhanced to request,
	// and a Responder accepts either.
	Revision uint8

	CRC     CRCPolicy
	Markers bool // ask the peer to send us markers

	// IRD and ORD are the depths wanted: how many RDMA Reads may be outstanding
	// from the peer and to the peer (RFC 6581 §9.1), 0 to MaxDepth. A Responder
	// with IRD 0 accepts a Read as RTR only if the two sides have no other kind in
	// common. Its IRD is then 1.
	IRD, ORD uint16
	// MaxIRD is how far an Initiator can raise IRD if the Responder's ORD needs
	// it. Less than IRD means not at all.
	MaxIRD uint16
	// MinORD makes a Responder reject Initiators whose IRD is smaller.
	MinORD uint16
	// ULPDepths makes an Initiator leave IRD and ORD to the ULP: they are used
	// as they are, without negotiation. A Responder does what the Request says.
	ULPDepths bool

	// PeerToPeer makes an Initiator request the peer-to-peer model, in which
	// either side may send first (RFC 6581 §9.2).
	PeerToPeer bool
	// RTR is the set of ready-to-receive indications that this side can send
	// as Initiator and accept as Responder. Zero stands for all.
	RTR RTR

	// PrivateData goes into the Request or the Reply, up to MaxPrivateData bytes,
	// EnhancedLen fewer in an enhanced one. A Reply is enhanced if the Request is.
	PrivateData []byte

	// MULPDU, if not zero, replaces the value that follows from the segment
	// size, for peers that are known to accept larger FPDUs; MinMULPDU to
	// MaxMULPDU.
	MULPDU int
	// EMSS is the segment size in bytes to use if the stream can't report one.
	// Zero stands for DefaultEMSS.
	EMSS int

	RequestTimeout   time.Duration // a Responder's wait for the Request; 0: the default
	ReplyTimeout     time.Duration // an Initiator's wait for the Reply; 0: the default
	FirstFPDUTimeout time.Duration // a Responder's wait for the RTR of the peer-to-peer model; 0: the default

	// Settle makes an Initiator wait that long after the Reply, or until the
	// Responder has sent something, before it sends its first FPDU. Zero stands
	// for no wait. Linux siw needs it: it does not notice an FPDU that arrives
	// before it has switched its socket from start-up to full operation, until
	// another one arrives.
	Settle time.Duration

	Recorder Recorder // records all that passes, if not nil
}

// DefaultEMSS is a segment size that fits any Ethernet path.
const DefaultEMSS = 1448

// enhanced reports whether an Initiator needs an enhanced frame (RFC 6581 §10:
// without that, "MUST NOT use the enhanced … formats").
func (c *Config) enhanced() bool {
	return c.Revision != Revision1 && (!c.ULPDepths || c.PeerToPeer)
}

// room returns how many bytes of private data go into a frame.
func room(enhanced bool) int {
	if enhanced {
		return MaxPrivateData - EnhancedLen
	}
	return MaxPrivateData
}

// Check returns a *ConfigError if the configuration is invalid in both roles.
// Functions that take a Config check it themselves; Check is for programs that
// keep one for later. How much private data fits depends on the role.
func (c *Config) Check() error {
	fail := func(format string, args ...any) error {
		return &ConfigError{fmt.Sprintf(format, args...)}
	}
	switch {
	case c.Revision > Revision2:
		return fail("revision %d: say 1, 2, or 0 for either", c.Revision)
	case c.CRC > CRCOff:
		return fail("%v is not known", c.CRC)
	case c.IRD > MaxDepth || c.ORD > MaxDepth || c.MaxIRD > MaxDepth || c.MinORD > MaxDepth:
		return fail("IRD %d, MaxIRD %d, ORD %d, MinORD %d: at most %d", c.IRD, c.MaxIRD, c.ORD, c.MinORD, MaxDepth)
	case c.RTR&^RTRAll != 0:
		return fail("unknown RTR kinds 0x%x", uint8(c.RTR&^RTRAll))
	case c.MULPDU != 0 && (c.MULPDU < MinMULPDU || c.MULPDU > MaxMULPDU):
		return fail("MULPDU %d: say %d to %d, or 0 to go by the segment size", c.MULPDU, MinMULPDU, MaxMULPDU)
	case c.EMSS < 0:
		return fail("EMSS %d: say octets, or 0 for %d", c.EMSS, DefaultEMSS)
	case c.PeerToPeer && c.Revision == Revision1:
		return fail("the peer-to-peer model wants revision 2, but revision 1 is pinned")
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{
		{"RequestTimeout", c.RequestTimeout},
		{"ReplyTimeout", c.ReplyTimeout},
		{"FirstFPDUTimeout", c.FirstFPDUTimeout},
		{"Settle", c.Settle},
	} {
		if d.v < 0 {
			return fail("%s %v is negative: say how long, or 0", d.name, d.v)
		}
	}
	return nil
}

// checkPrivateData refuses what does not fit into a frame.
func checkPrivateData(pd []byte, enhanced bool) error {
	if n := len(pd); n > room(enhanced) {
		return &ConfigError{fmt.Sprintf("%d octets of private data: at most %d fit", n, room(enhanced))}
	}
	return nil
}

func (c *Config) rtr() RTR {
	if c.RTR == 0 {
		return RTRAll
	}
	return c.RTR
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// A ConfigError reports what is wrong with a Config, or that a context or a stream
// is missing. No byte was sent.
type ConfigError struct{ Reason string }

// Error says what is wrong.
func (e *ConfigError) Error() string { return "mpa: configuration: " + e.Reason }
