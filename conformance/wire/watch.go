package wire

import "fmt"

// A watch checks what every segment of a target has to keep, whatever the case is
// about. It assumes an LLP that keeps the order, which MPA on TCP is.
type watch struct {
	msn   [4]uint32 // the next message of each queue
	begun bool
	open  Segment // the segment before, of a message that has begun
	size  int     // its payload's length
}

// newWatch returns a watch for a target whose queues begin with this MSN.
func newWatch(first uint32) watch { return watch{msn: [4]uint32{first, first, first, first}} }

// check returns what is wrong with a segment.
func (w *watch) check(s Segment) []Fault {
	var faults []Fault
	fault := func(rule Rule, format string, args ...any) {
		faults = append(faults, Fault{Rule: rule, What: fmt.Sprintf(format, args...)})
	}
	if s.Version != defaultDDPVersion {
		fault(FaultVersion, "DV is %d", s.Version)
	}
	if s.Reserved != 0 {
		fault(FaultReserved, "DDP's reserved bits are %04b", s.Reserved)
	}
	if s.RV != defaultRDMAPVersion {
		fault(FaultRV, "RV is %d", s.RV)
	}
	if s.RDMAPReserved != 0 {
		fault(FaultRDMAPReserved, "RDMAP's reserved bits are %02b", s.RDMAPReserved)
	}
	if s.Opcode >= opcodes {
		fault(FaultOpcode, "the opcode is %d", s.Opcode)
	}
	if s.Tagged != s.Opcode.Tagged() {
		fault(FaultTagged, "T is %t in %s", s.Tagged, s.Opcode)
	}
	if !s.Tagged {
		if s.QN != s.Opcode.Queue() {
			fault(FaultQueue, "%s on queue %d", s.Opcode, s.QN)
		}
		if s.Invalidate != 0 && s.Opcode != SendInvalidate && s.Opcode != SendSEInvalidate {
			fault(FaultInvalidate, "the Invalidate STag of %s is 0x%08x", s.Opcode, s.Invalidate)
		}
		if s.QN < uint32(len(w.msn)) {
			if s.MSN != w.msn[s.QN] {
				fault(FaultMSN, "the MSN on queue %d is %d, not %d", s.QN, s.MSN, w.msn[s.QN])
			}
			if s.Last {
				w.msn[s.QN] = s.MSN + 1
			}
		}
	}
	faults = append(faults, w.message(s)...)
	w.begun = !s.Last
	w.open, w.size = s, len(s.Payload)
	w.open.Payload = nil
	return faults
}

// message checks the segment against the one before, of the same message.
func (w *watch) message(s Segment) []Fault {
	var faults []Fault
	fault := func(rule Rule, format string, args ...any) {
		faults = append(faults, Fault{Rule: rule, What: fmt.Sprintf(format, args...)})
	}
	if !w.begun {
		if !s.Tagged && s.MO != 0 {
			fault(FaultMO, "a message begins with MO %d", s.MO)
		}
		return faults
	}
	p := w.open
	if s.Tagged != p.Tagged || s.Opcode != p.Opcode {
		fault(FaultMessage, "%s in the midst of %s", s.Opcode, p.Opcode)
		return faults
	}
	if s.Tagged {
		if s.STag != p.STag {
			fault(FaultMessage, "the STag changes from 0x%08x to 0x%08x within a message", p.STag, s.STag)
		}
		if want := p.TO + uint64(w.size); s.TO != want {
			fault(FaultTO, "TO 0x%x follows upon %d octets at 0x%x", s.TO, w.size, p.TO)
		}
		return faults
	}
	if s.QN != p.QN || s.MSN != p.MSN || s.Invalidate != p.Invalidate {
		fault(FaultMessage, "QN, MSN or Invalidate STag change within a message")
	}
	if want := p.MO + uint32(w.size); s.MO != want {
		fault(FaultMO, "MO %d follows upon %d octets at %d", s.MO, w.size, p.MO)
	}
	return faults
}
