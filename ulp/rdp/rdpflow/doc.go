// Package rdpflow follows RDP, the Reliable Data Protocol of RFC 908 and RFC 1151, through
// captures: over UDP, and over IP as protocol 27.
//
// An [Analyzer] is a ULP of package dissect. Over UDP it finds RDP at port 10908, at the ports that
// it is given, and at any port by a SYN whose checksum is right. From then on, all datagrams from
// and to the server's port are RDP.
//
// Each connection of RDP is a connection of the analysis. Where two ends open one after another, a
// SYN with a new number begins the next. What happens are events: a [Segment] for each segment, an
// [Open] when the connection is open, and an [End] when a side has ended it, or the capture has no
// more. A [Summary] counts what a connection carried.
//
// # What is judged
//
// The analyzer checks what both sides send. It reports at once what a single segment proves. What depends on all that the other side has
// sent, as windows and acknowledgements do, is a doubt: the capture may lack packets, or have them out of order, and segments of RDP have
// no serial number that shows it. A doubt becomes a broken rule when a later segment of the other side says so itself, at least 20 ms
// later: by its acknowledgement, or by the number that it will use next. If nothing of that kind comes, a note says what may be wrong.
// With [Analyzer.Complete], doubts are broken rules at once: that is for captures that lack nothing, as those that an endpoint records
// itself.
//
// A datagram whose UDP checksum is wrong has never reached its receiver, and is noted only.
//
// # DDP over RDP
//
// A connection to RDP's port 50 may carry DDP, as docs/ddp-over-rdp.md specifies it. Its segments of RDP are then details,
// as those of TCP are below MPA, and what they carry goes to a [dissect.DDP]: each segment of DDP when it arrives, and
// again when it is its turn. Turns follow the numbers of segments (ddp_turn.go). What RDP repeats counts once; a hole is waited for until
// the other side has acknowledged it for 20 ms. A segment that breaks a rule unless the other side has sent something waits
// until the capture shows that it lacks nothing of that.
//
//	ddp.go        what a message of RDP is, and which segments may be where they are
//	ddp_start.go  the request and its answer
//	ddp_turn.go   the order in which segments are delivered, and holes
//	ddp_end.go    the end of a direction, and of the connection
//	ddp_rules.go  the rules of DDP over RDP; those of DDP and RDMAP are package dissect's
//
// # What is remembered
//
// Of connections and endpoints, as much as the constants of this package say. Of data, nothing is
// kept but hashes, and segments of DDP that wait for their turn.
package rdpflow
