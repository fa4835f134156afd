// Package rdpstream is a byte stream over RDP: a net.Conn and a net.Listener, on which any network program of Go runs.
//
//	l, err := rdpstream.Listen(endpoint, rdpstream.Config{Port: 80})
//	err = http.Serve(l, handler)
//
// A stream is a sequenced connection of package rdp. Each of its messages begins with one byte that reports what it is:
//
//	0  data: the bytes that follow, one at least
//	1  end: the sender writes no more; nothing follows
//
// RDP can't send an empty message, and its Close drops what is in transit (RFC 908 §3.2.5), so the end of a stream has to be a message. Close sends it and returns; when
// the peer has accepted all, the connection is closed. So nothing that was written is lost, as long as the endpoint is there: see rdp.Endpoint.Shutdown. An RST that comes
// before the end mark is an error for the reader, and io.EOF never is one.
package rdpstream
