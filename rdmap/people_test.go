package rdmap

import (
	"errors"
	"strings"
	"testing"
)

// wantReason checks that an error says something.
func wantReason(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("the error is %v; want %q in it", err, part)
	}
}

func TestMessagesForPeople(t *testing.T) {
	untaggedHeader, taggedHeader := header(false), header(true)
	read, _ := ReadRequest{SinkSTag: 1, SinkTO: 2, Size: 64, SrcSTag: 3, SrcTO: 4}.AppendBinary(nil)
	for _, tt := range []struct{ got, want string }{
		{AtomicFetchAdd.String(), "FetchAdd"},
		{AtomicCmpSwap.String(), "CmpSwap"},
		{
			AtomicRequest{RequestID: 7, STag: 1, TO: 8, AddSwap: 9, AddSwapMask: 10, Compare: 11}.String(),
			"FetchAdd id=7 target=0x00000001+0x8 data=0x9 mask=0xa",
		},
		{
			AtomicRequest{Op: AtomicCmpSwap, RequestID: 7, STag: 1, TO: 8, AddSwap: 9, AddSwapMask: 10, Compare: 11, CompareMask: 12}.String(),
			"CmpSwap id=7 target=0x00000001+0x8 data=0x9 mask=0xa compare=0xb mask=0xc",
		},
		{ReadRequest{SinkSTag: 1, SinkTO: 2, Size: 64, SrcSTag: 3, SrcTO: 4}.String(), "sink=0x00000001+0x2 size=64 source=0x00000003+0x4"},
		{
			(&Terminate{Code: 0x0207, HdrCt: hdrctM | hdrctD, DDPHeader: untaggedHeader}).String(),
			TermCode(0x0207).String() + ", on RDMA Read Request untagged last qn=1 msn=3 mo=0",
		},
		{
			(&Terminate{Code: 0x1100, HdrCt: hdrctM | hdrctD, DDPHeader: taggedHeader}).String(),
			TermCode(0x1100).String() + ", on RDMA Write tagged last stag=0x00000001 to=0x2",
		},
		{
			(&Terminate{Code: 0x0101, HdrCt: hdrctM | hdrctD | hdrctR, DDPHeader: untaggedHeader, RDMAHeader: read}).String(),
			TermCode(0x0101).String() + ", on RDMA Read Request untagged last qn=1 msn=3 mo=0, sink=0x00000001+0x2 size=64 source=0x00000003+0x4",
		},
		{(&Terminate{Code: 0x0101, HdrCt: hdrctM | hdrctD, DDPHeader: untaggedHeader, RDMAHeader: read}).String(), // which it does not announce
			TermCode(0x0101).String() + ", on RDMA Read Request untagged last qn=1 msn=3 mo=0"},
		{(&Terminate{Code: 0x0101, HdrCt: hdrctR}).String(), TermCode(0x0101).String()},
		{
			Trace{Op: OpWrite, QN: 1, Err: &Error{Code: 0x0207}}.String(),
			"<- RDMA Write qn=1 msn=0 len=0 refused: rdmap: catastrophic error, localized to RDMAP stream (0x0207)",
		},
		{(&Error{Code: 0x0207}).Error(), "rdmap: catastrophic error, localized to RDMAP stream (0x0207)"},
		{
			(&Error{Code: 0x0207, Reason: "a reason", Err: errors.New("the cause"), Clause: "RFC 5040 §7.2"}).Error(),
			"rdmap: catastrophic error, localized to RDMAP stream (0x0207): a reason: the cause (RFC 5040 §7.2)",
		},
	} {
		if tt.got != tt.want {
			t.Errorf("got  %q\nwant %q", tt.got, tt.want)
		}
	}
}
