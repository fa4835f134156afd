package mpa

import (
	"encoding/binary"

	"urnic/internal/host/crc32c"
)

// CRCLen is the length of an FPDU's CRC field. The field is there even when
// CRCs are off (RFC 5044 §4.1).
const CRCLen = 4

// UpdateCRC adds p to a running CRC32c; start with 0 (RFC 5044 §4.4).
func UpdateCRC(crc uint32, p []byte) uint32 { return crc32c.Update(crc, p) }

// appendCRC appends crc as it is on the wire. It matches the figures of RFC
// 5044 §4.4 only with the least significant byte first, as in iSCSI's digests.
func appendCRC(b []byte, crc uint32) []byte { return binary.LittleEndian.AppendUint32(b, crc) }

func readCRC(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
