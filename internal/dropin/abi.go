package dropin

import "unsafe"

// The structs of cmd/liburnic/engine.h that lie in the program's memory on the data
// path. Those marked there as rdma-core's have its layout.

// An SGE is struct ibv_sge.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// A RecvWR is struct ibv_recv_wr.
type RecvWR struct {
	ID     uint64
	Next   *RecvWR
	SGL    *SGE
	NumSGE int32
}

// A SendWR is struct ibv_send_wr.
type SendWR struct {
	ID     uint64
	Next   *SendWR
	SGL    *SGE
	NumSGE int32
	Opcode uint32
	Flags  uint32
	// Imm is immediate data in network byte order, or the rkey to invalidate.
	Imm uint32
	// WR is a union: RDMA or Atomic.
	WR         AtomicWR
	RemoteSRQN uint32
	Bind       BindWR // type 2 windows
}

// An AtomicWR is the union wr of struct ibv_send_wr, seen as that of an atomic.
type AtomicWR struct {
	RemoteAddr    uint64
	CompareAdd    uint64
	Swap          uint64
	RKey, padding uint32
}

// An RDMAWR is the same union, seen as that of a Write or Read.
type RDMAWR struct {
	RemoteAddr uint64
	RKey       uint32
}

// RDMA returns the union as that of a Write or Read.
func (w *SendWR) RDMA() *RDMAWR { return (*RDMAWR)(unsafe.Pointer(&w.WR)) }

// A UDWR is the same union, seen as that of a Send of a UD queue pair.
type UDWR struct {
	AH        unsafe.Pointer // struct ibv_ah
	QPN, QKey uint32
}

// UD returns the union as that of a Send of a UD queue pair.
func (w *SendWR) UD() *UDWR { return (*UDWR)(unsafe.Pointer(&w.WR)) }

// A BindWR is the member bind_mw of struct ibv_send_wr.
type BindWR struct {
	MW           unsafe.Pointer // struct ibv_mw
	RKey         uint32
	MR           unsafe.Pointer // struct ibv_mr
	Addr, Length uint64
	Access       uint32
	_            uint32
}

// A WC is struct ibv_wc.
type WC struct {
	ID           uint64
	Status       uint32
	Opcode       uint32
	VendorErr    uint32
	ByteLen      uint32
	Imm          uint32 // as SendWR's
	QPN          uint32
	SrcQP        uint32
	Flags        uint32
	PKeyIndex    uint16
	SLID         uint16
	SL           uint8
	DLIDPathBits uint8
}
