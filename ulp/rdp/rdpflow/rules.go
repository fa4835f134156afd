package rdpflow

import (
	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/wire"
)

// The rules of RDP.
var (
	ruleHeader      = dissect.Rule{ID: "rdp-header", Clause: "RFC 908 §4.2"}
	ruleLength      = dissect.Rule{ID: "rdp-length", Clause: "RFC 908 §4.2.1, Header Length, Data Length"}
	ruleChecksum    = dissect.Rule{ID: "rdp-checksum", Clause: "RFC 908 §3.4.2, RFC 1151 p.1"}
	ruleFlags       = dissect.Rule{ID: "rdp-flags", Clause: "RFC 908 §4.2.1, Control Flags"}
	rulePort        = dissect.Rule{ID: "rdp-port", Clause: "RFC 908 §3.2.2, RFC 1151 p.2"}
	ruleLimits      = dissect.Rule{ID: "rdp-limits", Clause: "RFC 908 §4.3.2"}
	ruleSYNAgain    = dissect.Rule{ID: "rdp-syn-again", Clause: "RFC 908 §3.5, §4.3.2"}
	ruleSequence    = dissect.Rule{ID: "rdp-sequence", Clause: "RFC 908 §3.4.1, §4.4.2"}
	ruleAgain       = dissect.Rule{ID: "rdp-again", Clause: "RFC 908 §3.4.1, §3.4.4"}
	ruleSize        = dissect.Rule{ID: "rdp-size", Clause: "RFC 908 §3.3, §4.3.2"}
	ruleWindow      = dissect.Rule{ID: "rdp-window", Clause: "RFC 908 §3.5, RFC 1151 p.3"}
	ruleOutstanding = dissect.Rule{ID: "rdp-outstanding", Clause: "RFC 908 §3.5, §3.2.4 SND.MAX"}
	ruleAckUnsent   = dissect.Rule{ID: "rdp-ack-unsent", Clause: "RFC 908 §3.4.3, §4.2.1"}
	ruleAckBack     = dissect.Rule{ID: "rdp-ack-back", Clause: "RFC 908 §3.2.4 RCV.CUR, §3.4.3"}
	ruleEACK        = dissect.Rule{ID: "rdp-eack", Clause: "RFC 908 §3.5, §4.5"}
	ruleEACKUnsent  = dissect.Rule{ID: "rdp-eack-unsent", Clause: "RFC 908 §4.5.2"}
	ruleAfterRST    = dissect.Rule{ID: "rdp-after-rst", Clause: "RFC 908 §3.2.5, §3.6"}
	ruleLoop        = dissect.Rule{ID: "rdp-loop", Clause: "RFC 908 §3.7.2"}
)

// formRules are the rules for the form of a segment, by their names in package wire.
var formRules = map[string]dissect.Rule{
	"H1": ruleHeader, "H2": ruleLength, "H3": ruleLength, "H4": ruleChecksum, "H5": ruleFlags, "H6": rulePort,
}

// formRule returns the rule that a segment of the wrong form breaks.
func formRule(e *wire.FormatError) dissect.Rule { return formRules[e.Rule()] }
