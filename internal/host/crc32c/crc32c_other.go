//go:build !amd64 || purego

package crc32c

// Update adds p to crc, the CRC32c of what precedes p; that of nothing is 0.
func Update(crc uint32, p []byte) uint32 { return portable(crc, p) }

// Copy copies src to dst, as much as fits, and adds what it has copied to crc: if
// others write to src meanwhile, the result is still the CRC32c of what is in dst.
// The two must not overlap.
func Copy(dst, src []byte, crc uint32) uint32 {
	return portable(crc, dst[:copy(dst, src)])
}
