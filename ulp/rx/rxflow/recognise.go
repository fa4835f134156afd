package rxflow

import (
	"urnic/internal/capture"
	"urnic/ulp/rx/wire"
)

// What the packets of real peers stay below.
const (
	soonSerial  = 1 << 24
	soonCall    = 1 << 24
	soonSeq     = 1 << 20
	fewIndexes  = 8  // security indexes
	fewPackets  = 64 // in a jumbogram
	largestSize = 1 << 16
)

// looksLike reports whether a datagram of endpoints that are not known is one of Rx.
func (a *Analyzer) looksLike(d *capture.Datagram, h *wire.Header, body []byte) bool {
	switch {
	case a.All:
		return true
	case h.Flags&reservedFlags != 0 || d.Missing > 0 || at0(h):
		return false
	case a.port(d):
		return sound(h, body)
	}
	return sound(h, body) && certain(h, body)
}

// at0 reports whether a header is one of zeros, as many datagrams begin.
func at0(h *wire.Header) bool {
	return h.Epoch == 0 && h.CID == 0 && h.Serial == 0 && h.Type != wire.TypeVersion
}

// sound reports whether header and body fit together.
func sound(h *wire.Header, body []byte) bool {
	if h.Serial >= soonSerial || h.Call >= soonCall || h.Security >= fewIndexes {
		return false
	}
	switch h.Type {
	case wire.TypeData:
		return h.Call > 0 && h.Seq > 0 && h.Seq < soonSeq && h.Serial > 0
	case wire.TypeAck:
		a, err := wire.ParseAck(body)
		return err == nil && h.Call > 0 && h.Seq == 0 && int(a.Count) == len(a.Acks) && knownReason(a.Reason)
	case wire.TypeBusy, wire.TypeAckAll:
		return h.Call > 0 && len(body) == 0
	case wire.TypeAbort:
		return h.Seq < soonSeq && len(body) == wire.AbortLen
	case wire.TypeChallenge, wire.TypeResponse:
		return h.Call == 0 && h.Seq == 0 && len(body) > 0
	case wire.TypeDebug:
		if h.FromClient() {
			r, err := wire.ParseDebugRequest(body)
			return err == nil && r.Type >= 0 && r.Type < 32 && r.Index >= 0
		}
		return len(body) >= wire.DebugBadTypeLen
	case wire.TypeVersion:
		return h.FromClient() || len(body) == wire.VersionLen || wire.VersionKeepalive(h, body)
	default:
		return false
	}
}

// certain reports whether a packet that is sound is nothing else, on whatever port: too many
// bits fit.
func certain(h *wire.Header, body []byte) bool {
	switch h.Type {
	case wire.TypeData:
		return h.Seq == 1 && h.FromClient() && h.UserStatus <= 1 && (h.Security > 0 || h.Checksum == 0)
	case wire.TypeAck:
		a, err := wire.ParseAck(body)
		t := &a.Trailer
		return err == nil && t.Words == 4 && t.Window <= wire.MaxAcks && t.MaxPackets <= fewPackets &&
			t.MaxMTU < largestSize && t.IfMTU < largestSize && a.First > 0 && a.First < soonSeq
	case wire.TypeDebug:
		return h.FromClient() && len(body) == wire.DebugRequestLen && h.Call == 0 && h.Seq == 0
	default:
		return false
	}
}

func knownReason(r wire.Reason) bool { return wire.ReasonRequested <= r && r <= wire.ReasonIdle }
