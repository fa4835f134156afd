// Package vfstest holds the tests that every vfs.FS has to pass: the contract of package
// vfs, rule by rule.
//
// Test runs them on one FS, with the parts that Features says are there. Agree lets two of
// them carry out the same random operations, and compares what they say.
//
//	func TestFS(t *testing.T) {
//		vfstest.Test(t, func(t *testing.T) vfs.FS { return memfs.New(memfs.Options{}) })
//	}
package vfstest
