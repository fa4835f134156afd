// Package conformance tests whether an iWARP endpoint conforms to the RFCs, and reports which clauses it breaks.
//
// The tester connects to the endpoint, the target, over TCP or RDP, misbehaves on purpose, and checks every byte that comes
// back. A [Case] is one experiment. It is named by the clause of package catalogue that it tests, and ends in a [Verdict]. A
// [Runner] runs cases against a target and returns a [Report].
//
// DDP may run on another lower layer than MPA over TCP. A run is over one [LLP], that of its [Profile]. Over RDP, cases of
// clauses of MPA are left out, and a case of DDP or RDMAP that needs a feature of MPA ([Case.MPA]) is skipped with the reason.
// Cases in which segments change their order ([Case.Over]) need RDP. All others are the same for both: package wire translates
// their frames and FPDUs to messages of RDP.
//
// The tester's RDP connections are those of package ulp/rdp, which urnic as a target uses too. RDP itself is not tested;
// package rdpconn says why that does no harm. The tester uses no code of the layers that it tests.
package conformance
