package rxrdma

import (
	"urnic/rnic"
	"urnic/ulp/rx/rxrdma/machine"
)

// Read reads what the other side has written. One that has much room and finds nothing
// offers its slice to the peer, which can write there until Read returns.
func (s *stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	l := s.l
	l.mu.Lock()
	defer l.leave()
	for {
		n, err := s.mc.Read(l.now(), p)
		if n > 0 || err != nil {
			return n, err
		}
		if may := s.mc.MayOffer(len(p)); may > 0 && !l.dead {
			n, err = s.into(p[:may])
			if n > 0 || err != nil {
				return n, err
			}
			continue
		}
		s.mc.Wait(l.now(), len(p))
		s.wait(&s.readable)
	}
}

// into has the peer write to p, and returns how much it has written: nothing if it has
// sent something instead. The link is locked.
func (s *stream) into(p []byte) (int, error) {
	l := s.l
	l.mu.Unlock()
	mr, err := l.e.pd.RegisterMemory(rnic.Memory{Slice: p, ZeroBased: true}, rnic.LocalWrite|rnic.RemoteWrite, l.qp)
	l.mu.Lock()
	if err != nil {
		if l.dead || s.mc.Err() != nil {
			return 0, s.mc.Err()
		}
		return 0, err
	}
	to := mr.Remote(0)
	offered := s.mc.Offer(l.now(), uint32(to.STag), to.TO, len(p))
	for offered && s.mc.Offering().State == machine.Offered {
		s.wait(&s.readable)
	}
	l.mu.Unlock()
	err = mr.Close() // from here on the peer can't write to p
	l.mu.Lock()
	if !offered {
		return 0, err
	}
	o := s.mc.Offering()
	s.mc.Taken()
	if err != nil || s.mc.Err() != nil {
		return 0, firstErr(s.mc.Err(), err)
	}
	if o.State == machine.Filled {
		l.counts.placed++
		l.counts.placedBytes += uint64(o.Filled)
		return o.Filled, nil
	}
	return 0, nil
}

// Write writes to the other side. What is long is written to the memory of a Read of the
// peer, if that has offered it.
func (s *stream) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	l := s.l
	l.mu.Lock()
	defer l.leave()
	done := 0
	for {
		if may := s.mc.Offered(len(p) - done); may > 0 {
			n, err := s.place(p[done:][:may])
			done += n
			if err != nil {
				return done, err
			}
			if done == len(p) {
				return done, nil
			}
			continue
		}
		n, err := s.mc.Write(l.now(), p[done:])
		done += n
		if err != nil || done == len(p) {
			return done, err
		}
		if n == 0 {
			s.wait(&s.writable)
		}
	}
}

// place writes p to memory of the peer. When it returns, p is the caller's again. The link
// is locked.
func (s *stream) place(p []byte) (int, error) {
	l := s.l
	l.mu.Unlock()
	mr, err := l.e.pd.Register(p, 0)
	l.mu.Lock()
	if err != nil {
		return 0, firstErr(s.mc.Err(), err)
	}
	pl := &machine.Place{Len: len(p), Ref: mr}
	placed := !l.dead && s.mc.Place(l.now(), pl)
	for placed && !pl.Over {
		s.wait(&s.writable)
	}
	l.mu.Unlock()
	err = mr.Close()
	l.mu.Lock()
	switch {
	case s.mc.Err() != nil:
		return 0, s.mc.Err()
	case err != nil || !placed:
		return 0, err
	}
	return len(p), nil
}
