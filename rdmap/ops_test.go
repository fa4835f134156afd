package rdmap

import "urnic/stag"

// The operations as tests submit them.

func sendOf(op Opcode, data []byte) *Operation {
	return &Operation{Op: op, Length: uint64(len(data)), Payload: payload(data)}
}

func invalidateOf(op Opcode, data []byte, tag stag.STag) *Operation {
	o := sendOf(op, data)
	o.Invalidate = tag
	return o
}

func writeOf(tag stag.STag, to uint64, data []byte) *Operation {
	return &Operation{Op: OpWrite, STag: tag, TO: to, Length: uint64(len(data)), Payload: payload(data)}
}

func readOf(from stag.STag, fromTO uint64, to stag.STag, toTO, n uint64) *Operation {
	return &Operation{Op: OpReadRequest, STag: from, TO: fromTO, SinkSTag: to, SinkTO: toTO, Length: n}
}

func immediateOf(op Opcode, data Immediate) *Operation {
	return &Operation{Op: op, Immediate: data}
}

func addOf(tag stag.STag, to, n uint64) *Operation {
	return &Operation{Op: OpAtomicRequest, STag: tag, TO: to, Atomic: AtomicRequest{Op: AtomicFetchAdd, AddSwap: n}}
}

func swapOf(tag stag.STag, to, compare, swap uint64) *Operation {
	return &Operation{Op: OpAtomicRequest, STag: tag, TO: to, Atomic: AtomicRequest{
		Op: AtomicCmpSwap, Compare: compare, CompareMask: ^uint64(0), AddSwap: swap, AddSwapMask: ^uint64(0),
	}}
}
