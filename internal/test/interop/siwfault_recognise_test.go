package interop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/capture"
	"urnic/rdmap"
)

// A script is a recording that a test writes: a connection to siw at 10.0.2.15, or from there.
type script struct {
	t    *testing.T
	file string
	w    *capture.Writer
	s    *capture.Stream
}

// newScript begins a recording with MPA's start-up, with CRCs.
func newScript(t *testing.T, siw side) *script {
	t.Helper()
	c := requested(t, siw)
	reply := c.s.Received
	if siw == client {
		reply = c.s.Sent
	}
	reply([]byte("MPA ID Rep Frame\x40\x01\x00\x00"))
	return c
}

// requested begins one with the Request.
func requested(t *testing.T, siw side) *script {
	t.Helper()
	file := filepath.Join(t.TempDir(), "recording.pcapng")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := capture.NewWriter(f)
	if err != nil {
		t.Fatal(err)
	}
	c := &script{t: t, file: file, w: w}
	t.Cleanup(func() { _ = f.Close() })
	c.s = w.Stream(netip.MustParseAddrPort("10.0.2.2:40000"), netip.MustParseAddrPort("10.0.2.15:7174"), siw == server)
	request := c.s.Sent
	if siw == client {
		request = c.s.Received
	}
	request([]byte("MPA ID Req Frame\x40\x01\x00\x00"))
	return c
}

// evidence ends the recording, and returns it with what else is known of the run.
func (c *script) evidence(siw side, kernel, output string) *evidence {
	c.t.Helper()
	if err := c.w.Close(); err != nil {
		c.t.Fatal(err)
	}
	e := &evidence{siw: siw, hosts: []string{"10.0.2.15"}, kernel: kernel, said: []said{{output, errors.New("exit status 1")}}}
	if err := e.read(c.file); err != nil {
		c.t.Fatal(err)
	}
	if len(e.conns) != 1 {
		c.t.Fatalf("%d connections", len(e.conns))
	}
	return e
}

// fpdu makes an FPDU around a ULPDU.
func fpdu(ulpdu []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(ulpdu)))
	b = append(b, ulpdu...)
	b = append(b, make([]byte, -len(b)&3)...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// untagged makes the FPDU of an untagged message of one segment.
func untagged(op rdmap.Opcode, qn, msn uint32, payload []byte) []byte {
	b := []byte{0x41, 0x40 | byte(op), 0, 0, 0, 0}
	b = binary.BigEndian.AppendUint32(b, qn)
	b = binary.BigEndian.AppendUint32(b, msn)
	b = binary.BigEndian.AppendUint32(b, 0)
	return fpdu(append(b, payload...))
}

func sendFPDU(msn uint32, payload string) []byte {
	return untagged(rdmap.OpSend, 0, msn, []byte(payload))
}

// sinkSTag and what follows are of a Read of siw's, and of our Response.
const (
	sinkSTag = 0x1100
	readLen  = 8
)

func readRequest(msn uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, sinkSTag)
	b = binary.BigEndian.AppendUint64(b, 0)
	b = binary.BigEndian.AppendUint32(b, readLen)
	b = binary.BigEndian.AppendUint32(b, 0x2200)
	b = binary.BigEndian.AppendUint64(b, 0)
	return untagged(rdmap.OpReadRequest, 1, msn, b)
}

// readResponse is a segment of a Response.
func readResponse(to uint64, payload string, last bool) []byte {
	b := []byte{0x81, 0x40 | byte(rdmap.OpReadResponse)}
	if last {
		b[0] |= 0x40
	}
	b = binary.BigEndian.AppendUint32(b, sinkSTag)
	b = binary.BigEndian.AppendUint64(b, to)
	return fpdu(append(b, payload...))
}

func terminate() []byte { return untagged(rdmap.OpTerminate, 2, 1, []byte{0x12, 0x02, 0, 0}) }

// wrong is an FPDU with another CRC.
func wrong(b []byte) []byte {
	b = slices.Clone(b)
	b[len(b)-1] ^= 1
	return b
}

// want checks which fault is recognised; numFaults stands for none.
func (e *evidence) want(t *testing.T, want fault) {
	t.Helper()
	t.Helper()
	got, found, ok := recognise(e)
	switch {
	case !ok && want != numFaults:
		t.Errorf("nothing is recognised; want that %v", want)
	case ok && got != want:
		t.Errorf("recognised is that %v: %s", got, found)
	case ok:
		t.Logf("%v: %s", got, found)
	}
}

// siwTrailer is siw_get_trailer of Linux 6.1's siw_qp_rx.c, with the names that it has there. trailer is
// struct mpa_trailer: 4 octets of pad, and the CRC.
func siwTrailer(trailer *[8]byte, fpdu []byte, pieces ...int) (crcIn, crcOwn uint32) {
	pad := -(2 + int(binary.BigEndian.Uint16(fpdu))) & 3
	partRem := pad + 4
	tbuf := trailer[4-pad:]
	data := fpdu[len(fpdu)-partRem:]
	for _, skbNew := range append(pieces, partRem) {
		avail := min(skbNew, partRem)
		copy(tbuf, data[:avail])
		data = data[avail:]
		partRem -= avail
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	crcOwn = crc32.Update(crc32.Checksum(fpdu[:len(fpdu)-pad-4], table), table, tbuf[:pad])
	return binary.LittleEndian.Uint32(trailer[4:]), crcOwn
}

// complaint is what siw_get_trailer logs.
func complaint(in, own uint32, op rdmap.Opcode) string {
	return fmt.Sprintf("[  100.000000] siw: crc error. in: %08x, own %08x, op %d\n", in, own, op)
}

func TestCRCInPiecesIsRecognised(t *testing.T) {
	for _, payload := range []string{"ABCD", "ABCDE", "ABCDEF", "ABCDEFG"} { // pads of 2, 1, 0 and 3 octets
		for _, cut := range [][]int{{1}, {2}, {3}, {4}, {5}, {6}, {1, 1}, {2, 1}, {1, 1, 1}} {
			t.Run(fmt.Sprint(payload, cut), func(t *testing.T) {
				c := newScript(t, server)
				first, second := sendFPDU(1, "something else"), sendFPDU(2, payload)
				c.s.Sent(first)
				c.s.Sent(second)
				var kept [8]byte
				if in, own := siwTrailer(&kept, first); in != own {
					t.Fatal("an FPDU in one piece is refused")
				}
				in, own := siwTrailer(&kept, second, cut...)
				if in == own {
					return // it is cut behind its end
				}
				c.evidence(server, complaint(in, own, rdmap.OpSend), "").want(t, splitCRC)
			})
		}
	}
}

// What siw refuses for another reason has failed.
func TestOtherCRCsAreNotRecognised(t *testing.T) {
	good := sendFPDU(1, "ABCDE")
	own := binary.LittleEndian.Uint32(good[len(good)-4:])
	for name, test := range map[string]struct {
		sent   []byte
		kernel string
	}{
		"nothing is logged":            {good, ""},
		"other values":                 {good, complaint(own^1, own, rdmap.OpSend)},
		"another operation":            {good, complaintOf(good, rdmap.OpWrite)},
		"ours is wrong":                {wrong(good), complaint(own^1<<24, own, rdmap.OpSend)},
		"ours is wrong, and in pieces": {wrong(good), complaintOf(wrong(good), rdmap.OpSend)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newScript(t, server)
			c.s.Sent(test.sent)
			c.evidence(server, test.kernel, "").want(t, numFaults)
		})
	}
}

func complaintOf(fpdu []byte, op rdmap.Opcode) string {
	in, own := siwTrailer(new([8]byte), fpdu, 2)
	return complaint(in, own, op)
}

func TestWrongCRCIsRecognised(t *testing.T) {
	for _, test := range []struct{ is, told side }{{client, client}, {server, server}, {client, anySide}, {server, anySide}} {
		t.Run(fmt.Sprintf("%s, told %q", test.is, test.told), func(t *testing.T) {
			c := newScript(t, test.is)
			c.s.Received(sendFPDU(1, "siw's"))
			c.s.Sent(sendFPDU(1, "ours"))
			c.s.Received(wrong(sendFPDU(2, "siw's")))
			c.evidence(test.told, "", "").want(t, wrongCRC)
		})
	}
	c := newScript(t, client)
	c.s.Received(sendFPDU(1, "siw's"))
	c.s.Sent(wrong(sendFPDU(1, "ours")))
	c.evidence(client, "", "").want(t, numFaults)
}

func TestFailedReadIsRecognised(t *testing.T) {
	const failed = " Failed status 21: wr_id 0 syndrom 0x0\n"
	for name, test := range map[string]struct {
		answer         string // all of it has readLen octets
		kernel, output string
		end            func(c *script)
		want           fault
	}{
		"no answer":            {"", "", failed, siwCloses, failedRead},
		"half an answer":       {"ABCD", "[1.0] eth0: up\n", failed, siwCloses, failedRead},
		"it is complete":       {"ABCDEFGH", "", failed, siwCloses, numFaults},
		"the kernel tells why": {"ABCD", "[1.0] siw: packet intersection: 2 : 0\n", failed, siwCloses, numFaults},
		"another status":       {"ABCD", "", " Failed status 10: wr_id 0 syndrom 0x0\n", siwCloses, numFaults},
		"we end it":            {"ABCD", "", failed, func(c *script) { c.s.Reset(true) }, numFaults},
		"a Terminate": {"ABCD", "", failed, func(c *script) {
			c.s.Received(terminate())
			siwCloses(c)
		}, numFaults},
		"our CRC is wrong": {"", "", failed, func(c *script) {
			c.s.Sent(wrong(readResponse(0, "ABCD", false)))
			siwCloses(c)
		}, numFaults},
	} {
		t.Run(name, func(t *testing.T) {
			c := newScript(t, client)
			c.s.Received(readRequest(1))
			if n := len(test.answer); n > 0 {
				c.s.Sent(readResponse(0, test.answer, n == readLen))
			}
			test.end(c)
			c.evidence(client, test.kernel, test.output).want(t, test.want)
		})
	}
}

func siwCloses(c *script) { c.s.Close(false) }

// It is siw's only if urnic has stayed as long as it has to.
func TestLostListenerIsRecognised(t *testing.T) {
	const line = "[   52.1] siw1: CEP[0x00000000d2b1c9a4] siw_cm_work_handler: [QP 4294967295]: work type: %d, state %d\n"
	for name, test := range map[string]struct {
		begin       func(*testing.T, side) *script
		stays       time.Duration
		byUs        bool
		work, state int
		want        fault
	}{
		"its listener ends":    {requested, 10 * time.Second, true, 4, 2, lostListener},
		"we leave early":       {requested, time.Second, true, 4, 2, numFaults},
		"siw leaves":           {requested, 10 * time.Second, false, 4, 2, numFaults},
		"it has answered":      {newScript, 10 * time.Second, true, 4, 2, numFaults},
		"a peer's connection":  {requested, 10 * time.Second, true, 4, 7, numFaults},
		"its listener accepts": {requested, 10 * time.Second, true, 1, 2, numFaults},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := test.begin(t, server)
				time.Sleep(test.stays)
				c.s.Close(test.byUs)
				c.evidence(server, fmt.Sprintf(line, test.work, test.state), "").want(t, test.want)
			})
		})
	}
}

func TestOverlookedTerminateIsRecognised(t *testing.T) {
	const failed = "completion queue=send wr=100 status=LOC_QP_OP_ERR\n"
	for name, test := range map[string]struct {
		sent   []byte
		output string
		want   fault
	}{
		"overlooked":   {terminate(), failed, overlookedTerminate},
		"told":         {terminate(), failed + "terminate control=1202\n", numFaults},
		"no failure":   {terminate(), "completion queue=send wr=100 status=SUCCESS\n", numFaults},
		"no Terminate": {sendFPDU(1, "ours"), failed, numFaults},
		"a wrong CRC":  {wrong(terminate()), failed, numFaults},
	} {
		t.Run(name, func(t *testing.T) {
			c := newScript(t, client)
			c.s.Received(sendFPDU(1, "siw's"))
			c.s.Sent(test.sent)
			c.s.Close(true)
			c.evidence(client, "", test.output).want(t, test.want)
		})
	}
}

func TestFailedGoodbyeIsRecognised(t *testing.T) {
	const failed = "Bad wc status 2\n Failed to close connection between server and client\n"
	for name, test := range map[string]struct {
		arrived bool
		output  string
		byUs    bool
		want    fault
	}{
		"it has arrived":  {true, failed, true, failedGoodbye},
		"it has not":      {false, failed, true, numFaults},
		"another failure": {true, "Bad wc status 5\n", true, numFaults},
		"siw ends first":  {true, failed, false, numFaults},
	} {
		t.Run(name, func(t *testing.T) {
			c := newScript(t, client)
			if test.arrived {
				c.s.Received(sendFPDU(1, "goodbye"))
			} else {
				c.s.Received(readRequest(1))
			}
			c.s.Sent(sendFPDU(1, "goodbye"))
			c.s.Close(test.byUs)
			c.evidence(client, "", test.output).want(t, test.want)
		})
	}
}

func TestFaultsOfCasesAreRecognised(t *testing.T) {
	for reason, want := range map[string]fault{
		"want a Terminate 0x1202; got the connection was closed by FIN":                           closedInstead,
		"want a Read Response of 0 octets; got RDMA Read Response, STag 0x51a4c01d, 16 octets":    filledEmptyRead,
		"want a Terminate 0x1202; got a Terminate 0x1101":                                         numFaults,
		"want a Read Response of 0 octets; got RDMA Read Response, STag 0x51a4c01d, 1,436 octets": numFaults,
	} {
		got, ok := recogniseCase(reason)
		if !ok {
			got = numFaults
		}
		if got != want {
			t.Errorf("%s: %d; want %d", reason, got, want)
		}
	}
}

// A run that has failed early has left nothing.
func TestNothingIsRecognisedInNothing(t *testing.T) {
	e := &evidence{siw: client}
	if err := e.read(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Fatal(err)
	}
	e.want(t, numFaults)
}

func TestPageNamesTheFaults(t *testing.T) {
	page, err := os.ReadFile("../../../docs/interop-siw.md")
	if err != nil {
		t.Fatal(err)
	}
	for f := range numFaults {
		if !strings.Contains(string(page), "**"+faults[f].name+"**") {
			t.Errorf("the page does not name that siw %s", faults[f].name)
		}
	}
}
