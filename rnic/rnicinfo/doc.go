// Package rnicinfo lets other processes of the same user see what the devices of a process
// have: `urnic top` asks by it. Programs under `urnic run` are seen without it.
//
//	server, err := rnicinfo.Serve(dev, "my program", "")
//	defer server.Close()
//	server.Show(qp, mr)
//
// A device counts connections and messages and what it holds by itself. Queue pairs, with
// their completion queues and shared receive queues, and regions are listed if the program
// shows them. The server keeps none of them alive.
//
// # Where devices are found
//
// A device is served at a Unix socket, rnic-PID-N.sock, in a directory that only its user can
// enter: $XDG_RUNTIME_DIR/urnic, or urnic-UID in the directory for temporary files. A process that
// connects gets one JSON object, a [Report], and the connection is closed. Nothing is read, and
// a reader that is slow delays nobody.
//
// The socket goes with the server. A process that is killed leaves its socket behind; [Gather]
// removes it. Package internal/host/infosock does the rest.
package rnicinfo
