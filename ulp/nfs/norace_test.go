//go:build !race

package nfs_test

// fileSize is how long large files are, in bytes, and names how many large directories
// have.
const (
	fileSize = 64 << 20
	names    = 2000
)
