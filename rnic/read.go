package rnic

// split makes one message for each sink of a Read with several of them, see
// QPAttr.SplitReads: they are still one request. A Read of no data has one message,
// for its first sink. Empty sinks have no messages of their own.
func (w *sendWQE) split() {
	if len(w.sgl) < 2 {
		return
	}
	whole := w.Messages[0]
	source := whole.TO
	parts := w.Messages[:0]
	for i := range w.sgl {
		if w.sgl[i].Length == 0 {
			continue
		}
		part := whole
		part.SinkSTag, part.SinkTO = w.sgl[i].LKey, w.sgl[i].Addr
		part.TO, part.Length = source, uint64(w.sgl[i].Length)
		source += part.Length
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		w.Messages = parts
	}
}
