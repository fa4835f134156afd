package conformance

import "strings"

// An LLP is a lower layer that DDP runs on.
type LLP string

// The lower layers.
const (
	// TCP is MPA over TCP (RFC 5044).
	TCP LLP = "tcp"
	// RDP is DDP over RDP, as docs/ddp-over-rdp.md specifies it.
	RDP LLP = "rdp"
)

// String returns a human-readable name of the layer.
func (l LLP) String() string {
	if l == RDP {
		return "DDP over RDP"
	}
	return "MPA over TCP"
}

// Name returns the layer as --llp names it.
func (l LLP) Name() string {
	if l == RDP {
		return "rdp"
	}
	return "tcp"
}

// lacks says why the case can't be tried over a lower layer, or "".
func (c Case) lacks(l LLP) string {
	switch {
	case l == RDP && c.ofMPA():
		return "it is about MPA over TCP, which the run is not over"
	case l == RDP && c.MPA != "":
		return "over RDP there is no " + c.MPA
	case l != RDP && c.Over == RDP:
		return "it needs a lower layer that changes the order of segments, which TCP is not: see --llp rdp"
	}
	return ""
}

// IsFor reports whether the case can be tried over a lower layer.
func (c Case) IsFor(l LLP) bool { return c.lacks(l) == "" && (l == TCP || c.Needs&NeedRPC == 0) }

// ofMPA reports whether the case is named by a clause of MPA.
func (c Case) ofMPA() bool {
	return strings.HasPrefix(c.Clause, "rfc5044-") || strings.HasPrefix(c.Clause, "rfc6581-")
}

// leftOut says why the runs of a case are none over a lower layer, so that there is no result; "" if there is one, even if
// the case is skipped.
func (c Case) leftOut(l LLP) string {
	if c.MPA != "" && !c.ofMPA() {
		return "" // a rule of DDP or RDMAP, tried in MPA's way
	}
	return c.lacks(l)
}

// ofMPA names what the Setup asks for that only MPA over TCP has, or "".
func (s Setup) ofMPA() string {
	st := s.Start
	switch {
	case s.Markers || st.Markers:
		return "markers"
	case s.NoCRC || st.CRC != "":
		return "choice of CRCs"
	case s.Revision == 1:
		return "start-up of revision 1"
	case st.RTR != nil:
		return "ready-to-receive indication"
	case s.MSS != 0:
		return "segment size of TCP"
	}
	return ""
}
