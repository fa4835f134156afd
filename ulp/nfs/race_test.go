//go:build race

package nfs_test

// fileSize is how long large files are, in octets: the race detector takes its time.
const fileSize = 16 << 20
