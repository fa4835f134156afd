package crc32c

import "github.com/klauspost/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// portable is Update for any processor.
func portable(crc uint32, p []byte) uint32 { return crc32.Update(crc, castagnoli, p) }
