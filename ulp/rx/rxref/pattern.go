package rxref

import "bytes"

const period = 1 << 16 // bytes after which the pattern repeats

// pattern holds it often enough for a chunk from any place.
var pattern = func() []byte {
	b := make([]byte, period+maxChunk)
	for i := range b {
		b[i] = byte(i*31 + i>>8)
	}
	return b
}()

// bytesAt are n bytes of a stream, n being up to maxChunk.
func bytesAt(at uint64, n int) []byte {
	p := pattern[at%period:]
	return p[:n:n]
}

// mismatches counts the bytes of b, which stand at a place of a stream, that are not those
// of the pattern.
func mismatches(b []byte, at uint64) (bad uint64) {
	want := bytesAt(at, len(b))
	if bytes.Equal(b, want) {
		return 0
	}
	for i := range b {
		if b[i] != want[i] {
			bad++
		}
	}
	return bad
}
