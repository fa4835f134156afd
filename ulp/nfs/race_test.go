//go:build race

package nfs_test

// fileSize is how long large files are, in bytes, and names how many large directories
// have: the race detector takes its time.
const (
	fileSize = 8 << 20
	names    = 500
)
