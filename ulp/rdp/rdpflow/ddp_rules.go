package rdpflow

import "urnic/internal/program/dissect"

// The rules of DDP over RDP, which docs/ddp-over-rdp.md specifies. Those of DDP and RDMAP are package dissect's.
var (
	ruleDDPMessage = dissect.Rule{ID: "llp-message", Clause: `DDP over RDP "Messages"`}
	ruleDDPCRC     = dissect.Rule{ID: "crc", Clause: `DDP over RDP "Messages"`}
	ruleDDPOffer   = dissect.Rule{ID: "startup-frame", Clause: `DDP over RDP "Messages"`}
	ruleDDPRole    = dissect.Rule{ID: "startup-role", Clause: `DDP over RDP "Start-up"`}
	ruleDDPOrder   = dissect.Rule{ID: "startup-order", Clause: `DDP over RDP "Start-up"`}
	ruleDDPDepths  = dissect.Rule{ID: "ird-ord", Clause: `DDP over RDP "Start-up", RFC 6581 §9.1`}
	ruleDDPNumber  = dissect.Rule{ID: "segment-number", Clause: `DDP over RDP "Segments"`}
	ruleDDPEnd     = dissect.Rule{ID: "llp-end", Clause: `DDP over RDP "The end"`}
	ruleDDPRoom    = dissect.Rule{ID: "llp-room", Clause: `DDP over RDP "Connections", RFC 5041 §5.1`}
)
