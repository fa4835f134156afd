// Package memfs is a vfs.FS in memory: for tests, for measuring what lies above it, and for
// data that need not outlive the process.
//
// Files are pages that exist only where something was written, so that holes cost nothing.
// Data is copied once, from or to the caller's memory; many goroutines may copy at the same
// time. Nothing is ever on stable storage: a memfs that is served after the process has
// restarted is a new one, in which all former handles are stale.
//
//	fs := memfs.New(memfs.Options{MaxBytes: 64 << 20})
//	defer fs.Close()
package memfs
