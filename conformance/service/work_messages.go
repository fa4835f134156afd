package service

// RegisterArgs are those of register.
type RegisterArgs struct {
	Length uint64   `json:"length"`
	Access []string `json:"access,omitempty"`
	PD     int      `json:"pd,omitempty"`
	// TOs count from 0 if ZeroBased is set, or from Base if that is not 0; else
	// the RNIC chooses. The memory begins at an address that is aligned to 64 bits
	// whatever they are.
	ZeroBased bool   `json:"zero_based,omitempty"`
	Base      Uint64 `json:"base,omitempty"`
	// QP, if not 0, is the only one whose stream may use the STag.
	QP int `json:"qp,omitempty"`
	// Fast makes a region that is not valid until fast_register.
	Fast bool `json:"fast,omitempty"`

	Fill    uint8  `json:"fill,omitempty"`    // each byte
	Pattern *uint8 `json:"pattern,omitempty"` // or the seed of a Pattern
}

// The rights to memory.
const (
	LocalWrite       = "local_write"
	RemoteRead       = "remote_read"
	RemoteWrite      = "remote_write"  // wants local_write too
	RemoteAtomic     = "remote_atomic" // wants local_write too
	BindWindow       = "bind_window"
	RemoteInvalidate = "remote_invalidate"
)

// Region is the result of register and fast_register.
type Region struct {
	MR     int    `json:"mr"`
	STag   STag   `json:"stag"`
	TO     Uint64 `json:"to"`
	Length uint64 `json:"length"`
}

// Remote names byte off of the region, for the other side.
func (r *Region) Remote(off uint64) Remote { return Remote{STag: r.STag, TO: r.TO + Uint64(off)} }

// Piece names n bytes of the region from byte off on.
func (r *Region) Piece(off uint64, n uint32) Piece { return Piece{MR: r.MR, Offset: off, Length: n} }

// MR is the number of a region.
type MR struct {
	MR int `json:"mr"`
}

// MW is the number of a window.
type MW struct {
	MW int `json:"mw"`
}

// WindowArgs are those of window.
type WindowArgs struct {
	Type int `json:"type"` // 1 or 2
	PD   int `json:"pd,omitempty"`
}

// NewWindow is the result of window. Its STag is not valid yet: the key of the
// first one that bind makes must differ from its key.
type NewWindow struct {
	MW   int  `json:"mw"`
	STag STag `json:"stag"`
}

// TagArgs are those of tag: a region or a window.
type TagArgs struct {
	MR int `json:"mr,omitempty"`
	MW int `json:"mw,omitempty"`
}

// Tag says how an STag stands.
type Tag struct {
	STag      STag     `json:"stag"` // that is valid now, or was so last
	Valid     bool     `json:"valid"`
	Access    []string `json:"access"`
	TO        Uint64   `json:"to"` // of a region
	Length    uint64   `json:"length"`
	Accesses  uint64   `json:"accesses"` // that passed the checks
	OctetsIn  uint64   `json:"octets_in"`
	OctetsOut uint64   `json:"octets_out"`
}

// ReadArgs are those of memory_read.
type ReadArgs struct {
	MR     int    `json:"mr"`
	Offset uint64 `json:"offset,omitempty"`
	Length int    `json:"length"`
}

// WriteArgs are those of memory_write.
type WriteArgs struct {
	MR     int    `json:"mr"`
	Offset uint64 `json:"offset,omitempty"`
	Data   Hex    `json:"data"`
}

// Data is the result of memory_read.
type Data struct {
	Data Hex `json:"data"`
}

// FastRegisterArgs are those of fast_register. It is a request of the queue
// pair's send queue, and so are bind and invalidate.
type FastRegisterArgs struct {
	QP        int      `json:"qp"`
	MR        int      `json:"mr"`
	Length    uint64   `json:"length,omitempty"` // 0: all of it
	Access    []string `json:"access,omitempty"`
	Key       uint8    `json:"key"` // must differ from the last one
	ZeroBased bool     `json:"zero_based,omitempty"`
	Base      Uint64   `json:"base,omitempty"`
	Timeout   int      `json:"timeout_ms"`
}

// BindArgs are those of bind.
type BindArgs struct {
	QP      int      `json:"qp"`
	MW      int      `json:"mw"`
	MR      int      `json:"mr,omitempty"`
	Offset  uint64   `json:"offset,omitempty"` // from the beginning of the region
	Length  uint64   `json:"length,omitempty"` // 0 unbinds a window of type 1
	Access  []string `json:"access,omitempty"`
	Key     uint8    `json:"key,omitempty"` // of a window of type 2; must differ from the last one
	Timeout int      `json:"timeout_ms"`
}

// Window is the result of bind.
type Window struct {
	STag STag   `json:"stag"`
	TO   Uint64 `json:"to"`
}

// Remote names byte off of the window, for the other side.
func (w *Window) Remote(off uint64) Remote { return Remote{STag: w.STag, TO: w.TO + Uint64(off)} }

// InvalidateArgs are those of invalidate.
type InvalidateArgs struct {
	QP      int  `json:"qp"`
	STag    STag `json:"stag"` // of this side
	Timeout int  `json:"timeout_ms"`
}

// SRQArgs are those of srq.
type SRQArgs struct {
	PD    int    `json:"pd,omitempty"`
	Depth int    `json:"depth,omitempty"`
	Limit int    `json:"limit,omitempty"`  // an event comes when fewer receives are left
	PerQP int    `json:"per_qp,omitempty"` // most receives that one stream may hold; 0: no limit
	Recvs []Recv `json:"recvs,omitempty"`
}

// SRQ is the number of a shared receive queue.
type SRQ struct {
	SRQ int      `json:"srq"`
	IDs []uint64 `json:"ids,omitempty"` // of the receives
}

// CloseSRQArgs are those of close_srq.
type CloseSRQArgs struct {
	SRQ int `json:"srq"`
}

// A Piece is a part of a region of this side.
type Piece struct {
	MR     int    `json:"mr"`
	Offset uint64 `json:"offset,omitempty"`
	Length uint32 `json:"length"`
}

// A Recv is a receive: into a buffer of Length bytes that the service provides,
// whose content comes with the completion, or into pieces of regions.
type Recv struct {
	Length uint32  `json:"length,omitempty"`
	SGL    []Piece `json:"sgl,omitempty"`
}

// Recvs returns receives of these lengths.
func Recvs(lengths ...uint32) []Recv {
	r := make([]Recv, len(lengths))
	for i, n := range lengths {
		r[i].Length = n
	}
	return r
}

// RecvArgs are those of recv: for a queue pair or a shared receive queue.
type RecvArgs struct {
	QP    int    `json:"qp,omitempty"`
	SRQ   int    `json:"srq,omitempty"`
	Recvs []Recv `json:"recvs"`
}

// IDs is the result of post and recv: numbers that come back in completions.
type IDs struct {
	IDs []uint64 `json:"ids"`
}

// Remote names memory of the peer.
type Remote struct {
	STag STag   `json:"stag"`
	TO   Uint64 `json:"to"`
}

// A Post is a request for a send queue.
type Post struct {
	Op string `json:"op"`

	// SGL is the data that are sent, the one place where those of a Read go, or
	// where the 8 bytes of an atomic's original value go, which may be missing.
	SGL []Piece `json:"sgl,omitempty"`
	// Data in its place are copied by the service.
	Data Hex `json:"data,omitempty"`

	Remote     Remote `json:"remote,omitzero"`
	Invalidate STag   `json:"invalidate,omitempty"` // send_inv, send_se_inv: the peer's
	Immediate  Uint64 `json:"immediate,omitempty"`  // its 8 bytes in network order

	Add         Uint64  `json:"add,omitempty"`
	AddMask     Uint64  `json:"add_mask,omitempty"` // 0: one field of 64 bits
	Compare     Uint64  `json:"compare,omitempty"`
	Swap        Uint64  `json:"swap,omitempty"`
	CompareMask *Uint64 `json:"compare_mask,omitempty"` // left out: all ones
	SwapMask    *Uint64 `json:"swap_mask,omitempty"`

	Unsignaled bool `json:"unsignaled,omitempty"`  // no completion, unless there is an error
	ReadFence  bool `json:"read_fence,omitempty"`  // wait for the Reads and atomics before it
	LocalFence bool `json:"local_fence,omitempty"` // wait for all before it
}

// The operations of a Post, and those with which completions come.
const (
	OpSend             = "send"
	OpSendSE           = "send_se"
	OpSendInvalidate   = "send_inv"
	OpSendSEInvalidate = "send_se_inv"
	OpWrite            = "write"
	OpRead             = "read"
	OpReadInvalidate   = "read_inv" // an RDMA Read, then its sink is invalidated
	OpFetchAdd         = "fetch_add"
	OpCmpSwap          = "cmp_swap"
	OpImmediate        = "imm"
	OpImmediateSE      = "imm_se"
	OpWriteImmediate   = "write_imm"
	OpWriteImmediateSE = "write_imm_se"

	OpInvalidate    = "invalidate" // completions only
	OpFastRegister  = "fast_register"
	OpBind          = "bind"
	OpRecv          = "recv"
	OpRecvImmediate = "recv_imm"
)

// PostArgs are those of post.
type PostArgs struct {
	QP    int    `json:"qp"`
	Posts []Post `json:"posts"`
}

// The two queues of a queue pair.
const (
	SendQueue = "send"
	RecvQueue = "recv"
)

// CompletionArgs are those of completion and fired.
type CompletionArgs struct {
	QP      int    `json:"qp"`
	Queue   string `json:"queue"`
	Timeout int    `json:"timeout_ms"`
}

// A Completion reports how a request has ended.
type Completion struct {
	ID     uint64 `json:"id"`
	Op     string `json:"op"`
	Status string `json:"status"`

	Length      uint32   `json:"length"`
	Solicited   bool     `json:"solicited,omitempty"`
	Invalidated STag     `json:"invalidated,omitempty"`
	Immediate   *Uint64  `json:"immediate,omitempty"` // recv_imm
	Original    *Uint64  `json:"original,omitempty"`  // atomics: what the target held
	Data        Hex      `json:"data,omitempty"`      // received into the service's buffer
	Failure     *Failure `json:"failure,omitempty"`
}

// The statuses of a Completion.
const (
	StatusSuccess           = "success"
	StatusFlushed           = "flushed"
	StatusLocalProtection   = "local_protection"
	StatusBadSTag           = "bad_stag"
	StatusInvalidateFailed  = "invalidate_failed"
	StatusRegisterFailed    = "register_failed"
	StatusBindFailed        = "bind_failed"
	StatusNoReadResources   = "no_read_resources"
	StatusRemoteTermination = "remote_termination"
)

// ArmArgs are those of arm.
type ArmArgs struct {
	QP        int    `json:"qp"`
	Queue     string `json:"queue"`
	Solicited bool   `json:"solicited,omitempty"` // only what the peer marks so, and errors
}
