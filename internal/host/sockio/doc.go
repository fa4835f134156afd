// Package sockio makes a byte stream usable without waiting: write what it
// takes now, read what is there now, and ask for a buffer only once there is
// something to put into it. On Linux, TCP connections are driven by their file
// descriptors; any other net.Conn gets a goroutine that writes for it.
package sockio
