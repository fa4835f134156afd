package dropin

// Numbers of rdma-core's ABI (infiniband/verbs.h) that the engine deals in.

// enum ibv_access_flags.
const (
	accessLocalWrite   = 1 << 0
	accessRemoteWrite  = 1 << 1
	accessRemoteRead   = 1 << 2
	accessRemoteAtomic = 1 << 3
	accessMWBind       = 1 << 4
	accessZeroBased    = 1 << 5
	accessOnDemand     = 1 << 6 // of a region of all memory: the C half leaves it out otherwise
	accessHugeTLB      = 1 << 7 // a hint
	accessOptional     = 0x3ff << 20
)

// enum ibv_qp_state.
const (
	qpsReset uint32 = iota
	qpsInit
	qpsRTR
	qpsRTS
	qpsSQD
	qpsSQE
	qpsErr
)

var stateNames = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

// enum ibv_qp_attr_mask.
const (
	qpState             = 1 << 0
	qpCurState          = 1 << 1
	qpSQDNotify         = 1 << 2
	qpAccess            = 1 << 3
	qpPKeyIndex         = 1 << 4
	qpPort              = 1 << 5
	qpQKey              = 1 << 6
	qpAV                = 1 << 7
	qpPathMTU           = 1 << 8
	qpTimeout           = 1 << 9
	qpRetryCount        = 1 << 10
	qpRNRRetry          = 1 << 11
	qpRQPSN             = 1 << 12
	qpMaxReadAtomic     = 1 << 13
	qpAltPath           = 1 << 14
	qpMinRNRTimer       = 1 << 15
	qpSQPSN             = 1 << 16
	qpMaxDestReadAtomic = 1 << 17
	qpPathMigState      = 1 << 18
	qpCap               = 1 << 19
	qpDestQPN           = 1 << 20
	qpRateLimit         = 1 << 25
	qpAllAttrs          = 1<<21 - 1 | qpRateLimit
)

// enum ibv_wr_opcode.
const (
	wrWrite uint32 = iota
	wrWriteImm
	wrSend
	wrSendImm
	wrRead
	wrCmpSwap
	wrFetchAdd
	wrLocalInv
	wrBindMW
	wrSendInv
)

// enum ibv_send_flags.
const (
	sendFence     = 1 << 0
	sendSignaled  = 1 << 1
	sendSolicited = 1 << 2
	sendInline    = 1 << 3
)

// enum ibv_wc_status.
const (
	wcSuccess          uint32 = 0
	wcLocalLength      uint32 = 1
	wcLocalOperation   uint32 = 2
	wcLocalProtect     uint32 = 4
	wcFlushed          uint32 = 5
	wcBind             uint32 = 6
	wcRemoteRequest    uint32 = 9
	wcRemoteAccess     uint32 = 10
	wcRemoteOp         uint32 = 11
	wcRetryExceeded    uint32 = 12
	wcRNRRetryExceeded uint32 = 13
	wcGeneral          uint32 = 21
)

// enum ibv_wc_opcode.
const (
	wcSend     uint32 = 0
	wcWrite    uint32 = 1
	wcRead     uint32 = 2
	wcCmpSwap  uint32 = 3
	wcFetchAdd uint32 = 4
	wcBindMW   uint32 = 5
	wcLocalInv uint32 = 6
	wcRecv     uint32 = 1 << 7
	wcRecvImm  uint32 = 1<<7 + 1
)

// enum ibv_wc_flags.
const (
	wcGRH     = 1 << 0
	wcWithImm = 1 << 1
	wcWithInv = 1 << 3
)

// enum ibv_event_type.
const (
	eventCQErr      uint32 = 0
	eventQPFatal    uint32 = 1
	eventQPRequest  uint32 = 2
	eventQPAccess   uint32 = 3
	eventSQDrained  uint32 = 5
	eventPortActive uint32 = 9
	eventPortErr    uint32 = 10
	eventSRQLimit   uint32 = 15
	eventLastWQE    uint32 = 16
)

// enum ibv_srq_attr_mask.
const (
	srqMaxWR = 1 << 0
	srqLimit = 1 << 1
)

// enum ibv_rereg_mr_flags.
const (
	reregTranslation = 1 << 0
	reregPD          = 1 << 1
	reregAccess      = 1 << 2
)

// enum ibv_mw_type.
const (
	mwType1 uint32 = 1
	mwType2 uint32 = 2
)

// enum ibv_qp_type. 0 stands for qptRC.
const (
	qptRC uint32 = 2
	qptUC uint32 = 3
	qptUD uint32 = 4
)

// qpOwnKey is the bit of a request's Q_Key that stands for the queue pair's own.
const qpOwnKey = 1 << 31
