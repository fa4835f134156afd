package capture

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"urnic/ddp"
	"urnic/internal/test/tshark"
	"urnic/mpa"
	"urnic/rdmap"
)

// A talk is an iWARP connection as a device would record it.
type talk struct {
	s       *Stream
	framers [2]mpa.Framer // ours, the peer's
	counts  map[rdmap.Opcode]int
	msn     [2][4]uint32
}

func (k *talk) start(t *testing.T, crc, markers bool) {
	t.Helper()
	k.framers = [2]mpa.Framer{{CRC: crc, Markers: markers}, {CRC: crc, Markers: markers}}
	k.counts = map[rdmap.Opcode]int{}
	block, err := mpa.Enhanced{IRD: 16, ORD: 16}.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, reply := range []bool{false, true} {
		f := mpa.Frame{Reply: reply, CRC: crc, Markers: markers, Revision: 2, Enhanced: true, PrivateData: append(block, "private"...)}
		b, err := f.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if reply {
			k.s.Received(b)
		} else {
			k.s.Sent(b)
		}
	}
}

// send records a message as one FPDU.
func (k *talk) send(t *testing.T, from int, op rdmap.Opcode, payload []byte) {
	t.Helper()
	k.counts[op]++
	c := ddp.NewControl(op.Tagged(), true)
	var head []byte
	if op.Tagged() {
		head, _ = ddp.TaggedHeader{Control: c, RsvdULP: uint8(rdmap.NewControl(op)), STag: 0x1234, TO: 0x10000}.AppendBinary(nil)
	} else {
		q := op.Queue()
		k.msn[from][q]++
		head, _ = ddp.UntaggedHeader{Control: c, RsvdULP: [5]byte{uint8(rdmap.NewControl(op))}, QN: q, MSN: k.msn[from][q]}.AppendBinary(nil)
	}
	fpdu, err := k.framers[from].AppendFPDU(nil, head, payload)
	if err != nil {
		t.Fatal(err)
	}
	if from == local {
		k.s.Sent(fpdu)
	} else {
		k.s.Received(fpdu[:len(fpdu)/2], fpdu[len(fpdu)/2:])
	}
}

// tshark must take recordings without complaint: checksums, sequence numbers,
// FPDUs of any length, markers, CRCs.
func TestTsharkTakesRecordings(t *testing.T) {
	for _, tc := range []struct{ crc, markers, v6 bool }{
		{false, false, false}, {true, false, false}, {false, true, false}, {true, true, false}, {true, false, true}, {true, true, true},
	} {
		t.Run(fmt.Sprintf("crc=%t,markers=%t,v6=%t", tc.crc, tc.markers, tc.v6), func(t *testing.T) {
			l, r := "192.0.2.1:40000", "192.0.2.2:7174"
			if tc.v6 {
				l, r = "[2001:db8::1]:40000", "[2001:db8::2]:7174"
			}
			var k talk
			file := recording(t, func(w *Writer) {
				k.s = w.Stream(netip.MustParseAddrPort(l), netip.MustParseAddrPort(r), true)
				k.start(t, tc.crc, tc.markers)
				for _, n := range []int{0, 1, 2, 3, 64, 1442, 9000, 30_000, 64_000, mpa.MaxMULPDU - ddp.UntaggedHeaderLen} {
					k.send(t, local, rdmap.OpSend, pattern(n))
					k.send(t, remote, rdmap.OpSendSE, pattern(n))
					k.send(t, local, rdmap.OpWrite, pattern(n))
				}
				k.send(t, remote, rdmap.OpReadRequest, readRequest())
				k.send(t, local, rdmap.OpReadResponse, pattern(8))
				k.send(t, remote, rdmap.OpImmediate, pattern(8))
				for i := 0; i < 20 && tc.v6 == tc.markers; i++ { // enough for an acknowledgement in between
					k.send(t, local, rdmap.OpWrite, pattern(64_000))
				}
				k.send(t, remote, rdmap.OpTerminate, []byte{0x20, 0x02, 0, 0})
				k.s.Close(false)
				k.s.Close(true)
			})
			fpdus := 0
			for _, n := range k.counts {
				fpdus += n
			}
			judge(t, file, fpdus, tc.crc)
			ops := map[rdmap.Opcode]int{}
			for _, line := range tshark.LinesOf(t, file, "-T", "fields", "-e", "iwarp_rdma.opcode", "-Y", "iwarp_rdma.opcode") {
				for v := range strings.SplitSeq(line, ",") {
					var op uint8
					if _, err := fmt.Sscanf(v, "0x%x", &op); err != nil {
						t.Fatalf("opcode %q: %v", v, err)
					}
					ops[rdmap.Opcode(op)]++
				}
			}
			for op, n := range k.counts {
				if ops[op] != n {
					t.Errorf("tshark sees %d of %v, want %d", ops[op], op, n)
				}
			}
		})
	}
}

// judge has tshark look for anything wrong in a recording with n FPDUs.
func judge(t *testing.T, file []byte, n int, crc bool) {
	t.Helper()
	strict := []string{"-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"}
	bad := "_ws.malformed || tcp.analysis.flags || tcp.checksum.status == 0 || ip.checksum.status == 0 || _ws.expert.severity == error"
	if lines := tshark.LinesOf(t, file, append(strict, "-Y", bad)...); len(lines) > 0 {
		t.Errorf("tshark complains of\n%s", strings.Join(lines, "\n"))
	}
	details := strings.Join(tshark.LinesOf(t, file, append(strict, "-O", "iwarp_mpa")...), "\n")
	if good := strings.Count(details, "(Good CRC32)"); crc && good != n {
		t.Errorf("tshark finds %d of %d CRCs good", good, n)
	}
	for _, want := range []string{"Request frame header", "Reply frame header"} {
		if !strings.Contains(details, want) {
			t.Errorf("tshark does not see %q", want)
		}
	}
}

func readRequest() []byte {
	b, _ := rdmap.ReadRequest{SinkSTag: 0x1234, SinkTO: 0x10000, Size: 8, SrcSTag: 0x99, SrcTO: 0x20000}.AppendBinary(nil)
	return b
}
