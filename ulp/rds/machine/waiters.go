package machine

// waiters are sockets whose Send was refused, and which are notified when it is worth
// trying again. Each is there once. A socket that is closed is removed.
type waiters struct {
	sockets []*Socket
	at      map[*Socket]int // index into sockets
}

// add puts a socket among those that wait.
func (w *waiters) add(s *Socket) {
	if _, ok := w.at[s]; ok {
		return
	}
	if w.at == nil {
		w.at = map[*Socket]int{}
	}
	w.at[s] = len(w.sockets)
	w.sockets = append(w.sockets, s)
	s.waits = append(s.waits, w)
}

// drop removes a socket.
func (w *waiters) drop(s *Socket) {
	i, ok := w.at[s]
	if !ok {
		return
	}
	last := len(w.sockets) - 1
	moved := w.sockets[last]
	w.sockets[i], w.at[moved] = moved, i
	w.sockets[last] = nil
	w.sockets = w.sockets[:last]
	delete(w.at, s)
	for i, x := range s.waits {
		if x == w {
			s.waits = append(s.waits[:i], s.waits[i+1:]...)
			return
		}
	}
}

// wake notifies all that wait.
func (w *waiters) wake(m *Machine) {
	for len(w.sockets) > 0 {
		s := w.sockets[0]
		w.drop(s)
		m.emit(Effect{Kind: Writable, Socket: s})
	}
}
