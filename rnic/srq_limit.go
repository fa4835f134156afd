package rnic

import "fmt"

// ArmLimit arms the limit event again. The event is reported once, when fewer
// than n receives are left; at once if that is already so.
func (s *SRQ) ArmLimit(n int) error {
	const op = "arm limit"
	if !s.made() {
		return notMade(op, "SRQ")
	}
	s.mu.Lock()
	if most := s.attr.MaxWR; n < 0 || n > most {
		s.mu.Unlock()
		return s.fail(op, fmt.Errorf("limit %d: say 0 to MaxWR, %d", n, most))
	}
	if s.closed {
		s.mu.Unlock()
		return s.fail(op, ErrClosed)
	}
	s.limit = n
	due := s.limitDue()
	s.mu.Unlock()
	s.tell(due)
	return nil
}

// tell reports the limit event if it is due.
func (s *SRQ) tell(due bool) {
	if due {
		s.pd.dev.report(Event{Type: EventSRQLimit, SRQ: s})
	}
}
