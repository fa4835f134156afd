// Package dissect reads iWARP connections out of captures and checks them
// against the RFCs.
//
// [Analyze] finds iWARP on any port by the keys of MPA's start-up frames,
// follows start-up (RFC 5044 §7.1, RFC 6581), takes the FPDUs of both directions
// apart with the settings that it settled, and checks CRCs, markers, DDP
// segments (RFC 5041) and RDMA messages (RFC 5040, RFC 7306). What it finds it
// hands to a [Handler] as [Event] values, in the order of the capture: start-up
// frames, segments, messages, violations, notes. A [Violation] names the rule
// and the broken clause, and the side that broke it. The [Result] sums
// up each connection.
//
// The renderers of this package are handlers: [Text], one line a message;
// [JSON], one object a line; [Ladder], the exchange between two columns.
// [Result.WriteJSON] and [Result.WriteTable] print the summary.
//
// [AnalyzeULP] also follows an upper layer protocol: a [ULP] is notified of Sends, of what
// RDMA Reads and Writes move, and of holes, and hands on events and violations of its own
// by a [Reporter]. Package ulp/rpcrdma/rpcflow is one. A ULP that needs no iWARP is also a
// [StreamULP], a [RoCEULP] or a [DatagramULP].
//
// What carries DDP in place of MPA over TCP is followed elsewhere, and shows its segments to a [DDP], which judges them by the
// same rules. Package ulp/rdp/rdpflow does so for DDP over RDP.
//
// # What is judged
//
// Rules that a sender must conform to and that can be seen from outside. A rule that
// says SHOULD is not judged, nor what depends on memory that only an endpoint
// knows, such as whether an STag is valid. What a capture lacks is never called
// a violation: behind a hole, the checks that would need the lost bytes rest.
//
// A capture may also hold bytes twice that are not the same. An FPDU whose CRC is
// wrong is in doubt until the other side has acknowledged it: what was sent again
// before counts. If the checksum of TCP is wrong as well, and nothing better was
// captured, that is noted and nobody's violation.
//
// # Finding the way behind a hole
//
// Where bytes are missing, the next FPDU is found if that is sound: the hole
// lies within one FPDU, whose length is known; or markers point to the next one;
// or CRCs are on, and the CRC of one confirms it. Otherwise the rest of that
// direction is not decoded, and a note says so. A connection whose start-up was
// not captured is recognised only if it has CRCs and no markers.
package dissect
