package mutants

// atomicity has others come between the load and the store of an atomic, or carries it out
// at another time than it should: RFC 7306 §5.
var atomicity = []Mutant{
	{
		Name:    "atomics-not-atomic",
		Fault:   "An atomic loads, computes and stores, and other streams' atomics may come between.",
		Clauses: []string{"rfc7306-5.3-1", "rfc7306-5-1", "rfc7306-5.4-2"},
		Case:    "rfc7306-5.3-1/fetchadds-of-two-streams",
		Edits: []Edit{
			{"rdmap/stream_send.go", `	orig, err := memfault.Update((*uint64)(target), r.Apply)
	if err != nil {
		return b, err
	}
`, `	orig := *(*uint64)(target)
	time.Sleep(20 * time.Microsecond)
	*(*uint64)(target) = r.Apply(orig)
`},
			{"rdmap/stream_send.go", `	"fmt"
	"unsafe"

	"urnic/ddp"
	"urnic/internal/host/memfault"
	"urnic/mpa"
`, `	"fmt"
	"time"
	"unsafe"

	"urnic/ddp"
	"urnic/mpa"
`},
		},
	},
	{
		Name:    "cmpswap-not-atomic",
		Fault:   "A CmpSwap compares, and swaps a little later, though another stream may have swapped meanwhile. FetchAdds are atomic.",
		Clauses: []string{"rfc7306-5-1", "rfc7306-5.3-1"},
		Case:    "rfc7306-5-1/cmpswaps-of-two-streams",
		Edits: []Edit{
			{"rdmap/stream_send.go", `	orig, err := memfault.Update((*uint64)(target), r.Apply)
`, `	if r.Op == AtomicCmpSwap {
		orig := *(*uint64)(target)
		time.Sleep(20 * time.Microsecond)
		*(*uint64)(target) = r.Apply(orig)
		return AtomicResponse{RequestID: r.RequestID, Original: orig}.AppendBinary(b)
	}
	orig, err := memfault.Update((*uint64)(target), r.Apply)
`},
			{"rdmap/stream_send.go", `	"fmt"
	"unsafe"

	"urnic/ddp"
	"urnic/internal/host/memfault"
	"urnic/mpa"
`, `	"fmt"
	"time"
	"unsafe"

	"urnic/ddp"
	"urnic/internal/host/memfault"
	"urnic/mpa"
`},
		},
	},
	{
		Name:    "atomics-locked-by-stag",
		Fault:   "An atomic is atomic among those with the same STag, and not among all on the same memory.",
		Clauses: []string{"rfc7306-5.4-2", "rfc7306-5-1"},
		Case:    "rfc7306-5.4-2/through-two-stags",
		Edits: []Edit{
			{"rdmap/stream_send.go", `	orig, err := memfault.Update((*uint64)(target), r.Apply)
	if err != nil {
		return b, err
	}
`, `	lock, _ := locks.LoadOrStore(r.STag, new(sync.Mutex))
	lock.(*sync.Mutex).Lock()
	orig := *(*uint64)(target)
	time.Sleep(20 * time.Microsecond)
	*(*uint64)(target) = r.Apply(orig)
	lock.(*sync.Mutex).Unlock()
`},
			{"rdmap/stream_send.go", `	"fmt"
	"unsafe"

	"urnic/ddp"
	"urnic/internal/host/memfault"
	"urnic/mpa"
	"urnic/stag"
)
`, `	"fmt"
	"sync"
	"time"
	"unsafe"

	"urnic/ddp"
	"urnic/mpa"
	"urnic/stag"
)

var locks sync.Map
`},
		},
	},
	{
		Name:    "atomic-twice",
		Fault:   "An atomic is carried out when its Request is checked, and once more for the Response.",
		Clauses: []string{"rfc7306-5.2.1-11", "rfc7306-5-2", "rfc7306-5.2.1-5", "rfc7306-5.1.2-1"},
		Edits: one("rdmap/stream_recv.go", `	r.answer(h, length, inbound{op: OpAtomicRequest, atomic: req})
`, `	_, _ = (*Stream)(r).carryOut(&req, nil)
	r.answer(h, length, inbound{op: OpAtomicRequest, atomic: req})
`),
	},
	{
		Name:    "atomic-without-store",
		Fault:   "An atomic is answered with the original value, and changes nothing.",
		Clauses: []string{"rfc7306-5-2", "rfc7306-5.2.1-5", "rfc7306-5.1.2-1"},
		Edits: one("rdmap/stream_send.go",
			`memfault.Update((*uint64)(target), r.Apply)`,
			`memfault.Update((*uint64)(target), func(v uint64) uint64 { return v })`),
	},
	{
		Name:    "atomic-of-32-bits",
		Fault:   "An atomic stores the lower half of its result only.",
		Clauses: []string{"rfc7306-5-2", "rfc7306-5.1.2-1"},
		Edits: one("rdmap/stream_send.go",
			`memfault.Update((*uint64)(target), r.Apply)`,
			`memfault.Update((*uint64)(target), func(v uint64) uint64 { return v>>32<<32 | r.Apply(v)&0xFFFFFFFF })`),
	},
}
