package rdsflow

import "urnic/internal/program/dissect"

// The rules of RDS. The document has no numbers: clauses are its headings. What it leaves
// open is as in Linux.
var (
	ruleHeader     = dissect.Rule{ID: "rds-header", Clause: `RDS 3.1 "RDS 3.1 header"`}
	ruleChecksum   = dissect.Rule{ID: "rds-checksum", Clause: `RDS 3.1 "RDS 3.1 header"`}
	ruleLength     = dissect.Rule{ID: "rds-length", Clause: `RDS 3.1 "RDS Protocol Limits"`}
	ruleExtension  = dissect.Rule{ID: "rds-extension", Clause: `RDS 3.1 "Extension Headers"`}
	ruleSequence   = dissect.Rule{ID: "rds-sequence", Clause: `RDS 3.1 "Sequence numbers and acknowledgements"`}
	ruleAgain      = dissect.Rule{ID: "rds-retransmitted", Clause: `RDS 3.1 "Sequence numbers and acknowledgements"`}
	ruleAck        = dissect.Rule{ID: "rds-ack", Clause: `RDS 3.1 "Sequence numbers and acknowledgements"`}
	ruleAckOnly    = dissect.Rule{ID: "rds-ack-only", Clause: `RDS 3.1 "ACK-only Messages"`}
	ruleMap        = dissect.Rule{ID: "rds-map", Clause: `RDS 3.1 "Congestion control"`}
	rulePong       = dissect.Rule{ID: "rds-pong", Clause: `RDS 3.1 "RDS Ping"`}
	ruleRDMA       = dissect.Rule{ID: "rds-rdma", Clause: `RDS 3.1 "RDMA"`}
	ruleFragment   = dissect.Rule{ID: "rds-fragment", Clause: `RDS 3.1 "Fragmented messages (frags)"`}
	rulePrivate    = dissect.Rule{ID: "rds-private", Clause: `RDS 3.1 "Connection establishment"`}
	ruleCredit     = dissect.Rule{ID: "rds-credit", Clause: `RDS 3.1 "Flow Control"`}
	rulePaths      = dissect.Rule{ID: "rds-paths", Clause: `RDS 3.1 "Multipath RDS (MPRDS)"`}
	ruleGeneration = dissect.Rule{ID: "rds-generation", Clause: `RDS 3.1 "RDS Generation Number"`}
	ruleDialler    = dissect.Rule{ID: "rds-dialler", Clause: "Linux rds_tcp_accept_one"}
)
