package rpcflow

import "urnic/internal/program/dissect"

// The rules of RPC-over-RDMA. That of a header that can't be decoded has the clause which
// the codec names.
var (
	ruleFirst      = dissect.Rule{ID: "rpc-first-credit", Clause: "RFC 8166 §3.3.3"}
	ruleCredits    = dissect.Rule{ID: "rpc-credits", Clause: "RFC 8166 §3.3.1"}
	ruleInline     = dissect.Rule{ID: "rpc-inline-threshold", Clause: "RFC 8166 §3.3.2"}
	ruleMemory     = dissect.Rule{ID: "rpc-memory", Clause: "RFC 8166 §3.4.3"}
	ruleAfterReply = dissect.Rule{ID: "rpc-memory-after-reply", Clause: "RFC 8166 §3.4.5.1"}
	rulePosition   = dissect.Rule{ID: "rpc-read-position", Clause: "RFC 8166 §3.4.5"}
	ruleReadLen    = dissect.Rule{ID: "rpc-read-length", Clause: "RFC 8166 §3.4.5.2"}
	ruleWriteList  = dissect.Rule{ID: "rpc-write-list", Clause: "RFC 8166 §3.4.6"}
	ruleWritten    = dissect.Rule{ID: "rpc-written-length", Clause: "RFC 8166 §3.4.6"}
	ruleWriteLen   = dissect.Rule{ID: "rpc-write-length", Clause: "RFC 8166 §3.4.6.2"}
	ruleLongCall   = dissect.Rule{ID: "rpc-long-call", Clause: "RFC 8166 §3.5.3"}
	ruleXID        = dissect.Rule{ID: "rpc-xid", Clause: "RFC 8166 §4.2.1"}
	ruleNoMsg      = dissect.Rule{ID: "rpc-nomsg", Clause: "RFC 8166 §4.2.4"}
	ruleReadList   = dissect.Rule{ID: "rpc-read-list", Clause: "RFC 8166 §4.3.1"}
	ruleReplyChunk = dissect.Rule{ID: "rpc-reply-chunk", Clause: "RFC 8166 §4.3.3"}
	ruleError      = dissect.Rule{ID: "rpc-error-version", Clause: "RFC 8166 §4.5"}
	ruleInvalidate = dissect.Rule{ID: "rpc-invalidate", Clause: "RFC 8797 §4.1"}
	ruleMessage    = dissect.Rule{ID: "rpc-message", Clause: "RFC 5531 §9"}
	ruleHeaderID   = "rpc-header"
)
