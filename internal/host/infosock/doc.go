// Package infosock lets a process show other processes of the same user what it has: commands that look into running
// ones ask by it.
//
//	server, err := infosock.Serve("", "rdp", func() any { return endpoint.Info() })
//	defer server.Close()
//
// # Where sockets are
//
// A Unix socket, KIND-PID-N.sock, is in a directory that only its user can enter: $XDG_RUNTIME_DIR/urnic, or urnic-UID in
// the directory for temporary files. Who connects is sent one JSON object, and the connection is closed. Nothing is
// read.
//
// The socket goes with the server. A process that is killed leaves it behind; the next one that serves a socket of the
// kind in the directory removes it.
package infosock
