package rxref

import "urnic/ulp/rx/rpc"

// What clients look for: the ID of the service, and a UDP port.
const (
	ID   = 2077
	Port = 7077
)

const (
	maxEcho = 1 << 20 // bytes
	maxName = 256
)

// How says how a stream goes.
type How struct {
	Length   uint64 // bytes
	PauseMS  uint32 // the server stops for so many milliseconds ...
	PauseAt  uint32 // ... when it has moved so many bytes
	FailCode int32  // if it is not 0, the server aborts the call with it ...
	FailAt   uint32 // ... when it has moved so many bytes
}

// XDR encodes or decodes h.
func (h *How) XDR(x *rpc.XDR) {
	x.Uint64(&h.Length)
	x.Uint32(&h.PauseMS)
	x.Uint32(&h.PauseAt)
	x.Int32(&h.FailCode)
	x.Uint32(&h.FailAt)
}

// Seen is what the server saw of a stream.
type Seen struct {
	Length       uint64 // bytes moved
	Bad          uint64 // bytes that were not those of the pattern
	Microseconds uint32 // from the arguments to the last byte
}

// XDR encodes or decodes s.
func (s *Seen) XDR(x *rpc.XDR) {
	x.Uint64(&s.Length)
	x.Uint64(&s.Bad)
	x.Uint32(&s.Microseconds)
}

// An Identity is who the server takes the client for.
type Identity struct {
	Security   int32  // index: 0 null, 2 rxkad
	Level      int32  // 0 clear, 1 auth, 2 crypt; -1 without security
	Expires    uint32 // seconds since 1970; 0 without security
	KeyVersion int32
	Name       string
	Instance   string
	Cell       string
}

// XDR encodes or decodes i.
func (i *Identity) XDR(x *rpc.XDR) {
	x.Int32(&i.Security)
	x.Int32(&i.Level)
	x.Uint32(&i.Expires)
	x.Int32(&i.KeyVersion)
	x.String(&i.Name, maxName)
	x.String(&i.Instance, maxName)
	x.String(&i.Cell, maxName)
}

// echoed is what Echo takes and returns.
type echoed []byte

// XDR encodes or decodes e.
func (e *echoed) XDR(x *rpc.XDR) { x.Opaque((*[]byte)(e), maxEcho) }

var (
	opNull   = rpc.NewOp[rpc.Void, rpc.Void](1, "Null")
	opEcho   = rpc.NewOp[echoed, echoed](2, "Echo").Limits(maxEcho+4, maxEcho+4)
	opPut    = rpc.NewOp[How, Seen](3, "Put")
	opGet    = rpc.NewOp[How, Seen](4, "Get")
	opFail   = rpc.NewOp[rpc.Int32, rpc.Void](5, "Fail")
	opSlow   = rpc.NewOp[rpc.Uint32, rpc.Uint32](6, "Slow")
	opWhoAmI = rpc.NewOp[rpc.Void, Identity](7, "WhoAmI")
	opBoth   = rpc.NewOp[How, Seen](8, "Both")
)

// codes names the abort codes: there are none but those of the RPC layer.
var codes = rpc.NewCodes("rxref", rpc.Standard)
