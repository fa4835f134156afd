package report

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"urnic/conformance"
	"urnic/conformance/catalogue"
	"urnic/conformance/wire"
)

// began is when the sample runs began.
var began = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

// hostile is what a target might send to do harm by way of a report.
const hostile = "\x1b[2J</script><script>alert(1)</script>\x00 ]]> \xff\xfe \u202e<b>&amp;"

// result makes a result of a case that is named by a clause of the catalogue.
func result(t testing.TB, clause, words, role, group, title string, v conformance.Verdict) conformance.Result {
	t.Helper()
	c, ok := catalogue.Lookup(clause)
	if !ok {
		t.Fatalf("the catalogue has no %s", clause)
	}
	return conformance.Result{
		Case: clause + "/" + words, Role: role, Group: group, Title: title,
		Clauses: []string{clause}, Level: c.Level.String(), Cite: c.Cite(), Clause: c.Summary,
		Verdict: v, Began: began, Duration: 12345 * time.Microsecond,
	}
}

// sample returns a report as a run makes it: cases of several RFCs, in both roles,
// with each verdict, and with texts that a hostile target has had a part in.
func sample(t testing.TB) *conformance.Report {
	t.Helper()
	both := []string{"responder", "initiator"}
	var all []conformance.Result
	add := func(r conformance.Result) { all = append(all, r) }

	for _, role := range both {
		r := result(t, "rfc5044-7.1.1-1", "request-key", role, "start-up", "A Request with its Key goes through", conformance.Pass)
		r.Exchange = startup()
		add(r)
	}
	r := result(t, "rfc5044-7.1.1-15", "revision-seven", "responder", "start-up",
		"A Request of revision 7 is not accepted", conformance.Inconclusive)
	r.Reason = "nothing came within 2 s, and the connection stayed open"
	r.Sent, r.Expected, r.Got = "an MPA Request with Rev=7", "the connection closed, or a Reply with R=1", "nothing, for 2 s"
	r.Level = catalogue.Should.String()
	r.Exchange = startup()[:2]
	r.Exchange[1].Wrong = "Rev is 7"
	add(r)

	r = result(t, "rfc5044-4.4-12", "crc-one-bit", "responder", "framing", "An FPDU with a wrong CRC ends the connection", conformance.Fail)
	r.Reason = "the target took the FPDU: its octets are in the buffer"
	r.Sent = "a Send of 16 octets whose CRC has bit 0 inverted"
	r.Expected = "Terminate of LLP, MPA error 0x02 (MPA CRC error), and no Delivery"
	r.Got = "a receive completion of 16 octets"
	r.Exchange = append(startup(), wire.Event{
		At: 1100 * time.Microsecond, By: wire.Tester, Conn: 1, What: "Send, last, QN 0 MSN 1 MO 0, 16 octets",
		Wrong: "the CRC is 0x5a3c11f2; 0x5a3c11f3 were right", Fields: sendFields(1, 0), Octets: sendFrame(1, 0, 16), Length: 40,
	}, wire.Event{At: 1900 * time.Microsecond, By: wire.Control, What: "completion: receive, success, 16 octets"})
	add(r)

	for _, role := range both {
		r = result(t, "rfc5041-7.1-4", "end-one-octet-beyond", role, "protection",
			"A Send one octet longer than its buffer is refused, and the buffer's neighbour stays as it was", conformance.Fail)
		r.Clauses = append(r.Clauses, "rfc5041-7.1-11", "rfc5041-7.2-1")
		r.Reason = "Terminate names another error: DDP Untagged, Invalid MO (0x04) in place of Message too long (0x05)"
		r.Sent = "a Send of 65 octets to a receive buffer of 64"
		r.Expected = "Terminate of DDP, Untagged Buffer Error, 0x05: DDP Message too long for available buffer"
		r.Got = "Terminate of DDP, Untagged Buffer Error, 0x04: Invalid MO"
		r.Exchange = tooLong()
		r.Duration = 51200 * time.Microsecond
		r.Pcap = "captures/rfc5041-7.1-4_end-one-octet-beyond_" + role + ".pcap"
		add(r)
	}
	r = result(t, "rfc5041-4.1-9", "dv-zero", "responder", "ddp", "A segment of DDP version 0 ends the stream", conformance.Pass)
	r.Exchange = tooLong()
	add(r)
	r = result(t, "rfc5041-5.2-9", "zero-length", "initiator", "ddp", "A Write of no octets is one segment", conformance.Skipped)
	r.Reason = "the profile raw can't ask the target to write"
	add(r)

	r = result(t, "rfc5040-5.4-7", "nothing-after-terminate", "responder", "teardown",
		"After its Terminate the target sends nothing more", conformance.Fail)
	r.Reason = "41 octets came after Terminate, " + hostile
	r.Sent, r.Expected, r.Got = "a Write to an STag that is not registered", "Terminate, then the end of the stream", hostile
	r.Exchange = append(tooLong(), wire.Event{
		At: 9 * time.Millisecond, By: wire.Target, Conn: 1, What: "not an FPDU: " + hostile,
		Wrong: "octets after Terminate", Octets: wire.Octets(strings.Repeat("\xde\xad\x00<", 60)), Length: 2048,
	})
	add(r)
	r = result(t, "rfc5040-5.4-2", "terminate-queue", "responder", "rdmap", "Terminate comes on Queue Number 2", conformance.Pass)
	r.Exchange = tooLong()
	add(r)
	r = result(t, "rfc5040-8.1.1-8", "invalidate-foreign", "initiator", "protection",
		"Send with Invalidate does not reach the STag of another stream", conformance.Inconclusive)
	r.Reason = "the second connection was refused"
	r.Sent, r.Expected, r.Got = "Send with Invalidate", "Terminate", "a reset on the second connection"
	r.Exchange = twoConnections()
	add(r)
	for _, role := range both {
		r = result(t, "rfc6581-9.1-2", "ord-above-ird", role, "start-up", "The Reply's ORD is at most the Request's IRD", conformance.Skipped)
		r.Reason = "the target speaks revision 1 only"
		add(r)
	}
	return assemble(all)
}

// assemble makes a report of results.
func assemble(all []conformance.Result) *conformance.Report {
	r := &conformance.Report{
		Tool: "urnic v0.9.1", Target: "192.0.2.17:7471", Profile: "urnic", Began: began,
		Duration: 41_234 * time.Millisecond, Results: all,
	}
	for _, rfc := range []string{"RFC 5044", "RFC 5041", "RFC 5040", "RFC 6581"} {
		c := conformance.Coverage{RFC: rfc}
		c.Binding = conformance.Clauses{Tested: 41, Untestable: 17, Open: 5, Run: 31, Kept: 26, Broken: 2, Unknown: 3, NotSelected: 10}
		c.Advised = conformance.Clauses{Tested: 4, Untestable: 2, Open: 1, Run: 2, Kept: 1, Unknown: 1, NotTried: 2}
		if rfc == "RFC 6581" {
			c.Binding = conformance.Clauses{Tested: 9, Untestable: 12, OtherProfile: 9}
			c.Advised = conformance.Clauses{}
		}
		for i := range all {
			if rfcOf(&all[i]) == rfc {
				c.Totals.Add(all[i].Verdict)
			}
		}
		r.Coverage = append(r.Coverage, c)
	}
	states := map[string]conformance.State{}
	for i := range all {
		r.Totals.Add(all[i].Verdict)
		for _, id := range all[i].Clauses {
			states[id] = map[conformance.Verdict]conformance.State{
				conformance.Pass: conformance.Kept, conformance.Fail: conformance.Broken,
				conformance.Inconclusive: conformance.Unknown, conformance.Skipped: conformance.NotTried,
			}[all[i].Verdict]
		}
	}
	for _, c := range catalogue.All() {
		s := conformance.ClauseState{Clause: c.ID, State: states[c.ID]}
		switch {
		case s.State == conformance.NotTried:
			s.Reason = "the target speaks revision 1 only"
		case s.State != "":
		case c.Untestable != "":
			s.State, s.Reason = conformance.Untestable, c.Untestable
		case c.RFC() == "RFC 8166":
			s.State, s.Reason = conformance.OtherProfile, "its cases are for the profile rpcrdma"
		default:
			s.State, s.Reason = conformance.NotSelected, "--only selects none of its cases"
		}
		r.Clauses = append(r.Clauses, s)
	}
	return r
}

// many returns a report of n cases, each with an exchange.
func many(t testing.TB, n int) *conformance.Report {
	t.Helper()
	verdicts := []conformance.Verdict{conformance.Pass, conformance.Pass, conformance.Pass, conformance.Pass, conformance.Fail, conformance.Inconclusive}
	clauses := catalogue.All()
	var all []conformance.Result
	for i := range n {
		r := result(t, clauses[i/2%len(clauses)].ID, fmt.Sprintf("variant-%d", i), []string{"responder", "initiator"}[i%2],
			"framing", "A frame of kind "+fmt.Sprint(i)+" is judged by the receiver", verdicts[i%len(verdicts)])
		r.Reason, r.Sent, r.Expected, r.Got = "said the judge", "a frame", "another", "none"
		for range 8 {
			r.Exchange = append(r.Exchange, tooLong()...)
		}
		all = append(all, r)
	}
	return assemble(all)
}

func startup() []wire.Event {
	return []wire.Event{
		{At: 20 * time.Microsecond, By: wire.Control, What: "listen on 192.0.2.17:40112, receive buffer of 64 octets"},
		{
			At: 210 * time.Microsecond, By: wire.Tester, Conn: 1, What: "MPA Request, Rev 2, M=0 C=1 S=1, IRD 4 ORD 4",
			Fields: []string{"MPA  Key  \"MPA ID Req Frame\"", "MPA  M  0", "MPA  C  1", "MPA  Rev  2", "MPA  PD_Length  4", "MPA  IRD  4", "MPA  ORD  4"},
			Octets: wire.Octets("MPA ID Req Frame\x50\x02\x00\x04\x00\x04\x00\x04"), Length: 24,
		},
		{
			At: 480 * time.Microsecond, By: wire.Target, Conn: 1, What: "MPA Reply, Rev 2, M=0 C=1 S=1, IRD 4 ORD 4, 3 octets of Private Data",
			Fields: []string{"MPA  Key  \"MPA ID Rep Frame\"", "MPA  Rev  2", "MPA  PD_Length  7"},
			Octets: wire.Octets("MPA ID Rep Frame\x50\x02\x00\x07\x00\x04\x00\x04abc"), Length: 27,
		},
	}
}

func sendFields(msn, mo uint32) []string {
	return []string{
		"MPA  ULPDU Length  34", "DDP  T  0", "DDP  L  1", "DDP  DV  1", "RDMAP control    RV=1 opcode=3 (Send)",
		"DDP   QN         0", fmt.Sprintf("DDP  MSN  %d", msn), fmt.Sprintf("DDP  MO  %d", mo), "MPA  CRC  0x5a3c11f2",
	}
}

// sendFrame is an FPDU with a Send in it, and a CRC that is wrong.
func sendFrame(msn, mo uint32, payload int) wire.Octets {
	b := binary.BigEndian.AppendUint16(nil, uint16(18+payload))
	b = append(b, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, msn)
	b = binary.BigEndian.AppendUint32(b, mo)
	for i := range payload {
		b = append(b, byte(i))
	}
	return append(b, 0x5a, 0x3c, 0x11, 0xf2)
}

func tooLong() []wire.Event {
	return append(startup(),
		wire.Event{
			At: 1100 * time.Microsecond, By: wire.Tester, Conn: 1, What: "Send, last, QN 0 MSN 1 MO 0, 65 octets",
			Wrong: "one octet longer than the buffer", Fields: sendFields(1, 0), Octets: sendFrame(1, 0, 65), Length: 89,
		},
		wire.Event{
			At: 1480 * time.Microsecond, By: wire.Target, Conn: 1,
			What:  "Terminate, DDP, Untagged Buffer Error, 0x04 Invalid MO, with segment length and DDP header",
			Wrong: "the code is 0x04; 0x05 is due",
			Fields: []string{
				"DDP  QN  2", "DDP  MSN  1", "DDP  MO  0", "RDMAP  Opcode  7 (Terminate)", "Terminate  Layer  1 (DDP)", "Terminate  EType  2 (Untagged Buffer Error)",
				"Terminate  Error Code  0x04 (Invalid MO)", "Terminate  HdrCt  M=1 D=1 R=0",
			},
			Octets: wire.Octets("\x00\x2a\x41\x47\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x00\x12\x04\xc0\x00\x00\x53\x41\x43" + strings.Repeat("\x00", 20)), Length: 48,
		},
		wire.Event{At: 1500 * time.Microsecond, By: wire.Target, Conn: 1, What: "FIN"},
		wire.Event{At: 1620 * time.Microsecond, By: wire.Tester, Conn: 1, What: "FIN"},
		wire.Event{At: 1700 * time.Microsecond, By: wire.Tester, What: "waits up to 2 s for the buffer's completion"},
		wire.Event{At: 1900 * time.Microsecond, By: wire.Control, What: "completion: receive, flushed; the octets beyond the buffer are as before"},
	)
}

func twoConnections() []wire.Event {
	events := startup()
	for _, e := range startup()[1:] {
		e.Conn, e.At = 2, e.At+time.Millisecond
		events = append(events, e)
	}
	return append(events, wire.Event{At: 3 * time.Millisecond, By: wire.Target, Conn: 2, What: "RST"})
}
