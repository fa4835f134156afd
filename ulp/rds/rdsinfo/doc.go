// Package rdsinfo lets other processes of the same user see what the RDS nodes of a process
// have: `urnic rds info` asks by it.
//
//	server, err := rdsinfo.Serve(node, "")
//	defer server.Close()
//
// # Where nodes are found
//
// A node is served at a Unix socket, rds-PID-N.sock, in a directory that only its user can
// enter: $XDG_RUNTIME_DIR/urnic, or urnic-UID in the directory for temporary files. A
// connection gets one JSON object, a [Report], and is closed. Nothing is read from it.
//
// The socket goes with the server. A process that is killed leaves it behind; the next one
// that serves a node in the directory removes it. Package internal/host/infosock does all that.
package rdsinfo
