package wire

import "fmt"

// String describes the segment in a line.
func (s Segment) String() string {
	what := s.Opcode.String()
	if !s.Last {
		what += ", more to follow"
	}
	if s.Tagged {
		what += fmt.Sprintf(", STag 0x%08x TO 0x%x", s.STag, s.TO)
	} else {
		what += fmt.Sprintf(", QN %d MSN %d MO %d", s.QN, s.MSN, s.MO)
		if s.Invalidate != 0 {
			what += fmt.Sprintf(", Invalidate STag 0x%08x", s.Invalidate)
		}
	}
	if s.Opcode == Terminate && !s.Tagged {
		if h, err := ParseTerminate(s.Payload); err == nil {
			return what + ", " + h.Code.String()
		}
	}
	return fmt.Sprintf("%s, %d octets", what, len(s.Payload))
}

// Fields returns the segment's headers, a line a field.
func (s Segment) Fields() []string {
	var out []string
	add := func(layer, name, format string, args ...any) {
		out = append(out, fmt.Sprintf("%-5s %-12s %s", layer, name, fmt.Sprintf(format, args...)))
	}
	add("DDP", "control", "T=%d L=%d reserved=%d DV=%d", digit(s.Tagged), digit(s.Last), s.Reserved, s.Version)
	add("RDMAP", "control", "RV=%d reserved=%d opcode=%d (%s)", s.RV, s.RDMAPReserved, uint8(s.Opcode), s.Opcode)
	if s.Tagged {
		add("DDP", "STag", "0x%08x", s.STag)
		add("DDP", "TO", "0x%016x", s.TO)
		return out
	}
	add("RDMAP", "Inv. STag", "0x%08x", s.Invalidate)
	add("DDP", "QN MSN MO", "%d %d %d", s.QN, s.MSN, s.MO)
	return append(out, s.payloadFields()...)
}

// payloadFields describes the headers that some messages have as payload.
func (s Segment) payloadFields() []string {
	line := func(name, format string, args ...any) string {
		return fmt.Sprintf("%-5s %-12s %s", "RDMAP", name, fmt.Sprintf(format, args...))
	}
	switch s.Opcode {
	case ReadRequest:
		if h, err := ParseReadHeader(s.Payload); err == nil {
			return []string{
				line("sink", "STag 0x%08x TO 0x%x", h.SinkSTag, h.SinkTO),
				line("source", "STag 0x%08x TO 0x%x, %d octets", h.SourceSTag, h.SourceTO, h.Length),
			}
		}
	case AtomicRequest:
		if h, err := ParseAtomicHeader(s.Payload); err == nil {
			return []string{
				line("operation", "%d, request %d, STag 0x%08x TO 0x%x", h.Operation, h.RequestID, h.STag, h.TO),
				line("data", "0x%016x mask 0x%016x", h.Data, h.Mask),
				line("compare", "0x%016x mask 0x%016x", h.Compare, h.CompareMask),
			}
		}
	case AtomicResponse:
		if h, err := ParseAtomicResult(s.Payload); err == nil {
			return []string{line("original", "request %d, 0x%016x", h.RequestID, h.Original)}
		}
	case Terminate:
		return s.terminateFields(line)
	default:
	}
	return nil
}

func (s Segment) terminateFields(line func(name, format string, args ...any) string) []string {
	h, err := ParseTerminate(s.Payload)
	if err != nil {
		return nil
	}
	out := []string{
		line("Terminate", "layer %d, error type %d, code 0x%02x", h.Code>>12, h.Code>>8&0xF, uint8(h.Code)),
		line("headers", "M=%d D=%d R=%d", digit(h.Control&TermM != 0), digit(h.Control&TermD != 0), digit(h.Control&TermR != 0)),
	}
	length, ddp, rdmap, err := h.Headers()
	if err != nil {
		return append(out, line("headers", "not all there: %x", h.Tail))
	}
	if h.Control&TermM != 0 {
		out = append(out, line("length", "%d", length))
	}
	if ddp != nil {
		out = append(out, line("DDP header", "%x", ddp))
	}
	if rdmap != nil {
		out = append(out, line("RDMAP header", "%x", rdmap))
	}
	return out
}

func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}
