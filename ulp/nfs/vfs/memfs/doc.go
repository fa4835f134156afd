// Package memfs is a vfs.FS in memory: for tests, for measuring what lies above it, and for
// data that need not outlive the process.
//
// Files are pages that exist only where something was written, so that holes cost nothing.
// Data is copied once, from or to the caller's memory, by as many goroutines as there are
// at the same time. Nothing is ever on stable storage: whoever serves a memfs again after
// the process has ended serves another one, in which all former handles are stale.
//
//	fs := memfs.New(memfs.Options{MaxBytes: 64 << 20})
//	defer fs.Close()
package memfs
