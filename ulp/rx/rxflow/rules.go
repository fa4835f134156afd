package rxflow

import "urnic/internal/program/dissect"

// The rules of Rx. Those of a clause that the draft does not have are what OpenAFS and Linux
// both keep.
var (
	ruleHeader      = dissect.Rule{ID: "rx-header", Clause: "draft §9.1"}
	ruleType        = dissect.Rule{ID: "rx-type", Clause: "draft §9.1"}
	ruleFlags       = dissect.Rule{ID: "rx-flags", Clause: "draft §9.1"}
	ruleContext     = dissect.Rule{ID: "rx-context", Clause: "draft §4"}
	ruleDirection   = dissect.Rule{ID: "rx-direction", Clause: "draft §4"}
	rulePayload     = dissect.Rule{ID: "rx-payload", Clause: "draft §4"}
	ruleCallNumber  = dissect.Rule{ID: "rx-call-number", Clause: "draft §3"}
	ruleSequence    = dissect.Rule{ID: "rx-sequence", Clause: "draft §3"}
	ruleSerial      = dissect.Rule{ID: "rx-serial", Clause: "draft §3"}
	ruleLast        = dissect.Rule{ID: "rx-last", Clause: "draft §3"}
	ruleService     = dissect.Rule{ID: "rx-service", Clause: "draft §3"}
	ruleSecurity    = dissect.Rule{ID: "rx-security", Clause: "draft §3"}
	ruleLoop        = dissect.Rule{ID: "rx-loop", Clause: "draft §3"}
	ruleAfterAbort  = dissect.Rule{ID: "rx-after-abort", Clause: "draft §4"}
	ruleAgain       = dissect.Rule{ID: "rx-again", Clause: "draft §5.2"}
	ruleWindow      = dissect.Rule{ID: "rx-window", Clause: "draft §5.4"}
	ruleSize        = dissect.Rule{ID: "rx-size", Clause: "draft §5"}
	ruleJumbo       = dissect.Rule{ID: "rx-jumbo", Clause: "draft §7"}
	ruleJumboCount  = dissect.Rule{ID: "rx-jumbo-count", Clause: "draft §7"}
	ruleAckFormat   = dissect.Rule{ID: "rx-ack-format", Clause: "draft §9.2"}
	ruleAckReason   = dissect.Rule{ID: "rx-ack-reason", Clause: "draft §9.2"}
	ruleAckRequest  = dissect.Rule{ID: "rx-ack-request", Clause: "draft §5"}
	ruleAckUnsent   = dissect.Rule{ID: "rx-ack-unsent", Clause: "draft §5"}
	ruleAckBack     = dissect.Rule{ID: "rx-ack-back", Clause: "draft §5"}
	ruleAckSerial   = dissect.Rule{ID: "rx-ack-serial", Clause: "draft §5"}
	ruleVersion     = dissect.Rule{ID: "rx-version", Clause: "draft §4"}
	ruleDebug       = dissect.Rule{ID: "rx-debug", Clause: "draft §6"}
	ruleUnasked     = dissect.Rule{ID: "rx-unasked", Clause: "draft §2"}
	ruleProtection  = dissect.Rule{ID: "rx-protection", Clause: "the security class"}
	ruleCredentials = dissect.Rule{ID: "rx-credentials", Clause: "the security class"}
)

// The rules of Rx over an RNIC. Clauses are headings of docs/rx-rdma.md.
var (
	ruleRDMAPrivate  = dissect.Rule{ID: "rx-rdma-private", Clause: "Rx over an RNIC, Connection set-up"}
	ruleRDMALength   = dissect.Rule{ID: "rx-rdma-length", Clause: "Rx over an RNIC, Connection set-up"}
	ruleRDMAFormat   = dissect.Rule{ID: "rx-rdma-format", Clause: "Rx over an RNIC, Messages"}
	ruleRDMACredit   = dissect.Rule{ID: "rx-rdma-credit", Clause: "Rx over an RNIC, Credits"}
	ruleRDMAChannel  = dissect.Rule{ID: "rx-rdma-channel", Clause: "Rx over an RNIC, Calls"}
	ruleRDMACall     = dissect.Rule{ID: "rx-rdma-call", Clause: "Rx over an RNIC, Calls"}
	ruleRDMASequence = dissect.Rule{ID: "rx-rdma-sequence", Clause: "Rx over an RNIC, Calls"}
	ruleRDMAWindow   = dissect.Rule{ID: "rx-rdma-window", Clause: "Rx over an RNIC, Windows"}
	ruleRDMAOffer    = dissect.Rule{ID: "rx-rdma-offer", Clause: "Rx over an RNIC, Bulk"}
	ruleRDMAPlaced   = dissect.Rule{ID: "rx-rdma-placed", Clause: "Rx over an RNIC, Bulk"}
	ruleRDMASecurity = dissect.Rule{ID: "rx-rdma-security", Clause: "Rx over an RNIC, Security"}
	ruleRDMAProof    = dissect.Rule{ID: "rx-rdma-proof", Clause: "Rx over an RNIC, Security"}
	ruleRDMAEnd      = dissect.Rule{ID: "rx-rdma-end", Clause: "Rx over an RNIC, The end of a connection"}
)
