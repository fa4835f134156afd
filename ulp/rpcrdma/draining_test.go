package rpcrdma

// Draining reports whether all connections of a server take no further calls.
func Draining(s *Server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.conns {
		r := p.e.serve
		r.mu.Lock()
		draining := r.drained != nil
		r.mu.Unlock()
		if !draining {
			return false
		}
	}
	return s.shutdown
}
