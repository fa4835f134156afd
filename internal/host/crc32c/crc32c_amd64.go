//go:build !purego

package crc32c

import "golang.org/x/sys/cpu"

// What the processor can do, and is good at. The assembly reads both.
var (
	folds   = canFold()
	chained = folds && manyCRC32s()
)

// leastCopied is from how many octets on it pays to copy and sum in one go, which
// BenchmarkCopy tells. copyFold needs 64.
const leastCopied = 72

// Update adds p to crc, the CRC32c of what precedes p; that of nothing is 0.
func Update(crc uint32, p []byte) uint32 { return update(crc, p) }

// Copy copies src to dst, as much as fits, and adds what it has copied to crc. It
// reads each octet once: if others write to src meanwhile, the result is still the
// CRC32c of what is in dst. The two must not overlap.
func Copy(dst, src []byte, crc uint32) uint32 {
	n := min(len(dst), len(src))
	if folds && n >= leastCopied {
		return copyFold(dst, src[:n], crc)
	}
	copy(dst, src)
	return update(crc, dst[:n])
}

// canFold reports whether the processor and the system have what the assembly uses.
func canFold() bool {
	x := &cpu.X86
	return x.HasAVX512F && x.HasAVX512VL && x.HasAVX512BW && x.HasAVX512DQ &&
		x.HasAVX512VPCLMULQDQ && x.HasBMI2 && x.HasSSE42
}

// manyCRC32s reports whether this is an AMD processor of family 1Ah, which is Zen 5,
// or a later one. Those before, and Intel's, execute one CRC32 in a cycle.
func manyCRC32s() bool {
	_, b, c, d := cpuid(0)
	if b != 0x68747541 || d != 0x69746e65 || c != 0x444d4163 { // "Auth", "enti", "cAMD"
		return false
	}
	version, _, _, _ := cpuid(1)
	family := version >> 8 & 0xf
	if family == 0xf {
		family += version >> 20 & 0xff
	}
	return family >= 0x1a
}
