// Package leakcheck makes tests fail that leave goroutines behind.
//
// For all the tests of a package, give it a TestMain:
//
//	func TestMain(m *testing.M) { leakcheck.Main(m) }
//
// For one test, say leakcheck.Check(t) before anything is started.
//
// A goroutine needs a moment to end after it was told to, so both look again
// until it is gone, and complain only after a minute. Tests in a
// testing/synctest bubble need neither: a bubble waits for its goroutines.
package leakcheck
