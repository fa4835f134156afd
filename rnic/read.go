package rnic

import "urnic/rdmap"

// A splitRead is what a Read with several sinks is made of: see QPAttr.SplitReads. It
// is one request all the same: it has one place in the send queue, is judged and begun
// as a whole, and is done when all of its parts are.
type splitRead struct {
	parts []rdmap.Operation // one for each sink that has room; none if there is only one sink
	begun int               // parts that were given to the stream
	done  int               // parts whose responses are in: the first ones, as responses come in order
}

// fill makes the parts of a Read. whole is the operation for the first sink and all
// data. Sinks without room have no part.
func (r *splitRead) fill(whole *rdmap.Operation, sinks []SGE) {
	if len(sinks) < 2 {
		return
	}
	source := whole.TO
	for i := range sinks {
		if sinks[i].Length == 0 {
			continue
		}
		part := *whole
		part.SinkSTag, part.SinkTO = sinks[i].LKey, sinks[i].Addr
		part.TO, part.Length = source, uint64(sinks[i].Length)
		source += part.Length
		r.parts = append(r.parts, part)
	}
}

// next returns the message of w that is to be sent next, and whether it is the last.
func (w *sendWQE) next() (o *rdmap.Operation, last bool) {
	r := &w.split
	if len(r.parts) == 0 {
		return &w.operation, !w.inFirstHalf()
	}
	o = &r.parts[r.begun]
	r.begun++
	return o, r.begun == len(r.parts)
}

// answered notes that a response is in, and reports whether it is the last that w waits
// for.
func (w *sendWQE) answered() bool {
	w.split.done++
	return w.split.done >= len(w.split.parts)
}

// awaited returns the messages of w whose responses are not in.
func (w *sendWQE) awaited() []*rdmap.Operation {
	r := &w.split
	switch {
	case !w.op.isRead() || w.state == done:
		return nil
	case len(r.parts) == 0:
		return []*rdmap.Operation{&w.operation}
	}
	var all []*rdmap.Operation
	for i := r.done; i < r.begun; i++ {
		all = append(all, &r.parts[i])
	}
	return all
}

// maxSinks returns how many sinks a Read or atomic can have.
func (q *QP) maxSinks(op Opcode) int {
	if op == OpRead && q.attr.SplitReads {
		return q.attr.MaxSGE
	}
	return MaxReadSGE
}
