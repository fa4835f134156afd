//go:build !race

package nfs_test

// fileSize is how long large files are, in octets.
const fileSize = 64 << 20
