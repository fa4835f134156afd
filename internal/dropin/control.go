package dropin

// The structs of cmd/liburnic/engine.h by which the halves of the drop-in library
// talk to each other, byte for byte. The exports compare the sizes.

// A DeviceAttr is struct urnic_device.
type DeviceAttr struct {
	Name, Version                      [64]byte
	GUID                               [8]byte // in network byte order
	IWARP, Strict                      uint32
	MaxQP, MaxQPWR, MaxSGE, MaxReadSGE uint32
	MaxInline                          uint32
	MaxCQ, MaxCQE, MaxMR, MaxPD, MaxMW uint32
	MaxSRQ, MaxSRQWR, MaxSRQSGE        uint32
	MaxReadAtomic, GIDs                uint32
	Ports, Bound, QKeyViolations       uint32
	MaxMRSize, MaxMessage              uint64
}

// A GID is struct urnic_gid.
type GID struct {
	Raw               [16]byte
	IfIndex, Reserved uint32
}

// An Async is struct urnic_async.
type Async struct {
	Type, Reserved uint32
	Cookie         uint64
}

// A Region is struct urnic_mr.
type Region struct {
	Addr, Length, IOVA         uint64
	Access, MR, STag, Reserved uint32
}

// A WindowBind is struct urnic_bind.
type WindowBind struct {
	ID, Addr, Length uint64
	MW, MR           Handle
	Access, Flags    uint32
	RKey, Reserved   uint32
}

// An SRQAttr is struct urnic_srq_attr.
type SRQAttr struct {
	MaxWR, MaxSGE, Limit uint32
}

// A QPInit is struct urnic_qp_init.
type QPInit struct {
	Cookie                                                  uint64
	SendCQ, RecvCQ, SRQ                                     Handle
	MaxSendWR, MaxRecvWR, MaxSendSGE, MaxRecvSGE, MaxInline uint32
	SignalAll                                               uint32
	QP                                                      Handle
	QPN                                                     uint32
	Type                                                    uint32 // enum ibv_qp_type, or 0 for RC
}

// An AHAttr is struct urnic_ah_attr.
type AHAttr struct {
	IsGlobal  uint32
	SGIDIndex uint32
	DGID      [16]byte

	Port, Reserved uint32
}

// A QPAttr is struct urnic_qp_attr.
type QPAttr struct {
	State, CurState                                         uint32
	PathMTU                                                 uint32
	QKey, RQPSN, SQPSN, DestQPN                             uint32
	Access                                                  uint32
	MaxSendWR, MaxRecvWR, MaxSendSGE, MaxRecvSGE, MaxInline uint32
	IsGlobal                                                uint32
	DGID                                                    [16]byte
	SGIDIndex, DLID                                         uint32
	PKeyIndex, Port                                         uint32
	MaxReadAtomic, MaxDestReadAtomic                        uint32
	MinRNRTimer, Timeout, RetryCount, RNRRetry              uint32
	SQDraining, SQDNotify                                   uint32
}
