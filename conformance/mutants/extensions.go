package mutants

// extensions breaks atomics and Immediate Data: RFC 7306.
var extensions = []Mutant{
	{
		Name:    "opcode-of-three-bits",
		Fault:   "Only the low three bits of an opcode are sent and looked at, as those of RFC 5040 need.",
		Clauses: []string{"rfc7306-4.1-1", "rfc7306-8.2-2"},
		Edits: one("rdmap/opcode.go",
			`opcodeMask            byte   = 0x0F`,
			`opcodeMask            byte   = 0x07`),
	},
	{
		Name:    "fetchadd-mask-ignored",
		Fault:   "FetchAdd adds 64 bits: carries cross the fields of the mask.",
		Clauses: []string{"rfc7306-5-2", "rfc7306-5.2.1-1"},
		Edits: one("rdmap/atomic.go",
			`return fetchAdd(orig, r.AddSwap, r.AddSwapMask)`,
			`return orig + r.AddSwap`),
	},
	{
		Name:    "fetchadd-mask-of-bits",
		Fault:   "FetchAdd takes its mask for the bits to be added instead of the ends of fields.",
		Clauses: []string{"rfc7306-5-2", "rfc7306-5.2.1-1"},
		Edits: one("rdmap/atomic.go",
			`return fetchAdd(orig, r.AddSwap, r.AddSwapMask)`,
			`return orig&^r.AddSwapMask | (orig+r.AddSwap)&r.AddSwapMask`),
	},
	{
		Name:    "cmpswap-always-swaps",
		Fault:   "CmpSwap swaps whatever the comparison says.",
		Clauses: []string{"rfc7306-5.1.2-1"},
		Edits: one("rdmap/atomic.go", `		if (r.Compare^orig)&r.CompareMask == 0 {
			return orig&^r.AddSwapMask | r.AddSwap&r.AddSwapMask
		}
`, `		return orig&^r.AddSwapMask | r.AddSwap&r.AddSwapMask
`),
	},
	{
		Name:    "cmpswap-compare-mask-ignored",
		Fault:   "CmpSwap compares all 64 bits.",
		Clauses: []string{"rfc7306-5.1.2-1"},
		Edits: one("rdmap/atomic.go",
			`if (r.Compare^orig)&r.CompareMask == 0 {`,
			`if r.Compare == orig {`),
	},
	{
		Name:    "cmpswap-swap-mask-ignored",
		Fault:   "CmpSwap stores all 64 bits of the Swap Data.",
		Clauses: []string{"rfc7306-5.1.2-1"},
		Edits: one("rdmap/atomic.go",
			`return orig&^r.AddSwapMask | r.AddSwap&r.AddSwapMask`,
			`return r.AddSwap`),
	},
	{
		Name:    "reserved-atomic-taken",
		Fault:   "An Atomic Operation Code that is reserved is answered with the value, as if it were a read.",
		Clauses: []string{"rfc7306-5.2.1-7"},
		Edits: one("rdmap/stream_recv.go", `	if !req.Op.Valid() {
		return &Error{Code: CodeUnexpectedOpcode, Clause: "RFC 7306 §5.2.1", Reason: fmt.Sprintf("%v is not supported", req.Op)}
	}
`, ``),
	},
	{
		Name:    "unaligned-atomic-taken",
		Fault:   "An atomic at an address that is not aligned to 64 bits is carried out.",
		Clauses: []string{"rfc7306-8.2-4", "rfc7306-5.1.1-2", "rfc7306-5.1.1-3", "rfc7306-5.1.2-3", "rfc7306-5.1.2-4", "rfc7306-5.2.1-2"},
		Edits: []Edit{
			{"rdmap/stream_recv.go", `	aligned := uintptr(unsafe.Pointer(unsafe.SliceData(pin.Bytes())))%AtomicLen == 0
`, `	aligned := unsafe.SliceData(pin.Bytes()) != nil
`},
			{"rdmap/stream_send.go", `	if uintptr(target)%AtomicLen != 0 {
		return b, misaligned(*r)
	}
`, ``},
		},
	},
	{
		Name:    "unaligned-atomic-dropped",
		Fault:   "An atomic at an address that is not aligned to 64 bits is silently dropped.",
		Clauses: []string{"rfc7306-5.1.1-4", "rfc7306-5.1.2-5", "rfc7306-5.1.2-6", "rfc7306-8.2-5"},
		Edits: one("rdmap/stream_recv.go", `	if !aligned {
		return misaligned(req)
	}
`, `	if !aligned {
		return nil
	}
`),
	},
	{
		Name:    "code-of-unaligned-atomic",
		Fault:   "An unaligned atomic is reported as a base or bounds violation.",
		Clauses: []string{"rfc7306-8.2-5"},
		Edits: one("rdmap/stream_send.go",
			`Code: CodeStreamCatastrophic, Clause: "RFC 7306 §8.2",`,
			`Code: CodeBaseBounds, Clause: "RFC 7306 §8.2",`),
	},
	{
		Name:    "atomic-request-on-queue-0",
		Fault:   "Atomic Requests are sent to the queue of Sends.",
		Clauses: []string{"rfc7306-5.2-1", "rfc7306-5.2.1-8"},
		Edits: one("rdmap/stream_send.go", `		b, _ := o.atomicRequest(t.id).AppendBinary(t.own[:0])
		s.beginOwn(o.Op, b)
`, `		b, _ := o.atomicRequest(t.id).AppendBinary(t.own[:0])
		s.beginOwn(o.Op, b)
		t.msg.QN = QueueSend
`),
	},
	{
		Name:    "atomic-response-on-queue-1",
		Fault:   "Atomic Responses are sent to the queue of their requests.",
		Clauses: []string{"rfc7306-5.2-2", "rfc7306-5-3", "rfc7306-5.2.2-2"},
		Edits: one("rdmap/stream_send.go", `		s.beginOwn(OpAtomicResponse, b)
`, `		s.beginOwn(OpAtomicResponse, b)
		t.msg.QN = QueueReadRequest
`),
	},
	{
		Name:    "atomic-response-new-value",
		Fault:   "An Atomic Response tells what the target holds after the operation, instead of before.",
		Clauses: []string{"rfc7306-5.2.1-11"},
		Edits: one("rdmap/stream_send.go",
			`return AtomicResponse{RequestID: r.RequestID, Original: orig}`,
			`return AtomicResponse{RequestID: r.RequestID, Original: r.Apply(orig)}`),
	},
	{
		Name:    "atomic-response-without-id",
		Fault:   "An Atomic Response has zero where the identifier of the request belongs.",
		Clauses: []string{"rfc7306-5.2.1-11"},
		Edits: one("rdmap/stream_send.go",
			`return AtomicResponse{RequestID: r.RequestID, Original: orig}`,
			`return AtomicResponse{Original: orig}`),
	},
	{
		Name:    "no-buffers-for-atomics-behind-reads",
		Fault:   "Queue 1 has a buffer for an Atomic Request only while no other request waits there.",
		Clauses: []string{"rfc7306-5.2.2-3"},
		Edits: one("rdmap/stream_recv.go", `	case QueueReadRequest:
		if free`, `	case QueueReadRequest:
		if _, waiting := r.depths.firstInbound(); op == OpAtomicRequest && waiting {
			return nil, nil
		}
		if free`),
	},
	{
		Name:    "immediate-of-four-octets",
		Fault:   "Immediate Data is sent with four octets, as other RDMA has it.",
		Clauses: []string{"rfc7306-6.3-5"},
		Edits: one("rdmap/stream_send.go",
			`append(t.own[:0], o.Immediate[:]...)`,
			`append(t.own[:0], o.Immediate[:4]...)`),
	},
	{
		Name:    "immediate-on-queue-1",
		Fault:   "Immediate Data is sent to the queue of Read Requests.",
		Clauses: []string{"rfc7306-6.3-4"},
		Edits: one("rdmap/stream_send.go", `		s.beginOwn(o.Op, append(t.own[:0], o.Immediate[:]...))
`, `		s.beginOwn(o.Op, append(t.own[:0], o.Immediate[:]...))
		t.msg.QN = QueueReadRequest
`),
	},
	{
		Name:    "immediate-length-not-checked",
		Fault:   "Immediate Data of less than 8 octets is taken.",
		Clauses: []string{"rfc7306-6.3-7"},
		Edits: one("rdmap/stream_recv.go", `	case (op == OpImmediate || op == OpImmediateSE) && length != ImmediateLen:
		return wrongLength(op, int(length))
`, ``),
	},
	{
		Name:    "immediate-consumes-nothing",
		Fault:   "Immediate Data is dropped, and consumes no buffer.",
		Clauses: []string{"rfc7306-6.3-2", "rfc7306-6.3-3"},
		Edits: one("rdmap/stream_recv.go", `	r.traceUntagged(h, length) // before what it causes
`, `	if op == OpImmediate || op == OpImmediateSE {
		return nil
	}
	r.traceUntagged(h, length) // before what it causes
`),
	},
	{
		Name:    "immediate-lost",
		Fault:   "The ULP is told that Immediate Data has come, and gets zeros.",
		Clauses: []string{"rfc7306-6.3-3"},
		Edits: one("rnic/recvqueue.go", `	if wc.Op == OpRecvImmediate {
		wc.Immediate = w.immediate
	}
`, ``),
	},
}
