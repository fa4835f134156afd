package interop

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strconv"

	"urnic/rdmap"
)

// siw keeps the pad and the CRC of an FPDU in 8 bytes, so that the CRC is at their end. When they come in
// pieces, siw_get_trailer copies each piece to where the first belongs, over the one before it. What it then
// compares depends only on the FPDUs and on where they were cut, so that its log can be told from that of a
// CRC which is wrong.

// A trailer is what siw has in these bytes.
type trailer [8]byte

// refused is a CRC that siw has refused, as its kernel logs it.
type refused struct {
	in  uint32 // what siw took for the CRC that came
	own uint32 // what siw has computed
	op  rdmap.Opcode
}

func (r refused) String() string {
	return fmt.Sprintf("siw has taken %08x for the CRC of our %v, and computed %08x", r.in, r.op, r.own)
}

var refusedLine = regexp.MustCompile(`siw: crc error\. in: ([0-9a-f]{8}), own:? ([0-9a-f]{8}), op (\d+)`)

// refusedCRCs returns what a kernel's log has of them.
func refusedCRCs(kernel string) (all []refused) {
	for _, m := range refusedLine.FindAllStringSubmatch(kernel, -1) {
		in, err1 := strconv.ParseUint(m[1], 16, 32)
		own, err2 := strconv.ParseUint(m[2], 16, 32)
		op, err3 := strconv.ParseUint(m[3], 10, 4)
		if err1 == nil && err2 == nil && err3 == nil {
			all = append(all, refused{uint32(in), uint32(own), rdmap.Opcode(op)})
		}
	}
	return all
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// receive has siw receive an FPDU of ours without markers, whose CRC is right. It returns which of the refused
// CRCs are what siw gets if the pad and the CRC come in pieces, however they are cut.
func (b *trailer) receive(fpdu []byte, op rdmap.Opcode, all []refused) (found []refused) {
	const crcLen = 4
	pad := -(2 + int(binary.BigEndian.Uint16(fpdu))) & 3
	n := pad + crcLen
	end := fpdu[len(fpdu)-n:]
	at := len(b) - n
	if slices.ContainsFunc(all, func(r refused) bool { return r.op == op }) {
		data := crc32.Checksum(fpdu[:len(fpdu)-n], castagnoli)
		for cuts := 1; cuts < 1<<(n-1); cuts++ {
			got := *b
			for from := 0; from < n; {
				to := from + 1
				for to < n && cuts>>(to-1)&1 == 0 {
					to++
				}
				copy(got[at:], end[from:to])
				from = to
			}
			r := refused{
				in:  binary.LittleEndian.Uint32(got[len(b)-crcLen:]),
				own: crc32.Update(data, castagnoli, got[at:at+pad]),
				op:  op,
			}
			if r.in != r.own && slices.Contains(all, r) && !slices.Contains(found, r) {
				found = append(found, r)
			}
		}
	}
	copy(b[at:], end)
	return found
}
