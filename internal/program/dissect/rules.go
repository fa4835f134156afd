package dissect

// A Rule is something that one side of a connection must conform to.
type Rule struct {
	ID     string // a short name, which does not change
	Clause string // where it is written
}

// The rules of MPA start-up.
var (
	ruleFrame       = Rule{"startup-frame", "RFC 5044 §7.1.1"}
	ruleRole        = Rule{"startup-role", "RFC 5044 §7.1.2"}
	ruleReserved    = Rule{"startup-reserved", "RFC 5044 §7.1.1"}
	ruleRevision    = Rule{"startup-revision", "RFC 5044 §7.1.1"}
	ruleRequestR    = Rule{"request-rejected-flag", "RFC 5044 §7.1.1"}
	ruleEarly       = Rule{"octets-before-reply", "RFC 5044 §7.1.2"}
	ruleEnhanced    = Rule{"enhanced-block", "RFC 6581 §6"}
	ruleEchoS       = Rule{"enhanced-echo", "RFC 6581 §10"}
	ruleEchoA       = Rule{"peer-to-peer-echo", "RFC 6581 §9.2"}
	ruleFlagsBCD    = Rule{"rtr-flags", "RFC 6581 §9.2"}
	ruleDepths      = Rule{"ird-ord", "RFC 6581 §9.1"}
	ruleRTR         = Rule{"rtr", "RFC 6581 §9.2"}
	ruleFirstFPDU   = Rule{"responder-first", "RFC 5044 §7.1.2"}
	ruleCRC         = Rule{"crc", "RFC 5044 §8"}
	ruleMarker      = Rule{"marker", "RFC 5044 §8"}
	rulePad         = Rule{"pad", "RFC 5044 §4.1"}
	ruleULPDULength = Rule{"ulpdu-length", "RFC 5044 §3"}
	ruleCutFPDU     = Rule{"cut-fpdu", "RFC 5044 §4.1"}
)

// The rules of DDP.
var (
	ruleHeader      = Rule{"ddp-header", "RFC 5041 §4.4"}
	ruleDDPReserved = Rule{"ddp-reserved", "RFC 5041 §4.1"}
	ruleDDPVersion  = Rule{"ddp-version", "RFC 5041 §4.1"}
	ruleLast        = Rule{"last-flag", "RFC 5041 §4.1"}
	ruleRsvdULP     = Rule{"rsvdulp", "RFC 5041 §4.2"} // §4.3 for untagged messages
	ruleRsvdULP3    = Rule{"rsvdulp", "RFC 5041 §4.3"}
	ruleMSN         = Rule{"msn", "RFC 5041 §4.3"}
	ruleMO          = Rule{"mo", "RFC 5041 §5.2"}
	ruleTO          = Rule{"to", "RFC 5041 §5.2"}
	ruleTOWrap      = Rule{"to-wrap", "RFC 5041 §7.1"}
	ruleZeroLength  = Rule{"zero-length", "RFC 5041 §5.2"}
	ruleLength      = Rule{"message-length", "RFC 5041 §5.2"}
)

// The rules of RDMAP.
var (
	ruleVersion       = Rule{"rdmap-version", "RFC 5040 §4.1"}
	ruleRDMAPReserved = Rule{"rdmap-reserved", "RFC 5040 §4.1"}
	ruleOpcode        = Rule{"opcode", "RFC 5040 §4.1"}
	ruleTagged        = Rule{"tagged-flag", "RFC 5040 §4.1"}
	ruleQueue         = Rule{"queue-number", "RFC 5040 §4.1"}
	ruleInvalidate    = Rule{"invalidate-stag", "RFC 5040 §4.1"}
	ruleHeaderLength  = Rule{"rdmap-header", "RFC 5040 §4.2"}
	ruleIRD           = Rule{"outstanding-reads", "RFC 5040 §6.1"}
	ruleResponse      = Rule{"read-response", "RFC 5040 §5.2.2"}
	ruleTerminate     = Rule{"terminate", "RFC 5040 §4.8"}
	ruleTermCode      = Rule{"terminate-code", "RFC 5040 §4.8"}
	ruleTermLength    = Rule{"terminate-length", "RFC 5040 §4.8"}
	ruleTermHeader    = Rule{"terminate-header", "RFC 5040 §4.8"}
	ruleAfter         = Rule{"after-terminate", "RFC 5040 §5.4"}
)

// The rules of the RDMAP extensions.
var (
	ruleTagged7     = Rule{"tagged-flag", "RFC 7306 §4.1"}
	ruleQueue7      = Rule{"queue-number", "RFC 7306 §4.1"}
	ruleVersion7    = Rule{"rdmap-version", "RFC 7306 §4.1"}
	ruleInvalidate7 = Rule{"invalidate-stag", "RFC 7306 §4.1"}
	ruleImmediate   = Rule{"immediate-length", "RFC 7306 §6.3"}
	ruleAtomicOp    = Rule{"atomic-operation", "RFC 7306 §5.2.1"}
	ruleAtomic      = Rule{"atomic-request", "RFC 7306 §5.2.1"}
	ruleAtomicReply = Rule{"atomic-response", "RFC 7306 §5.2.2"}
)
