// Package hang makes a test that hangs fail instead of the whole run:
//
//	defer hang.Guard(t, func() { conn.Close() })()
//
// A panic would end the tests that come after it too, and so does the time limit of go test.
package hang
