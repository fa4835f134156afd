// Package rdpinfo lets other processes of the same user see what the RDP endpoints of a process have: `urnic rdp
// status` asks by it.
//
//	server, err := rdpinfo.Serve(endpoint, "my program", "")
//	defer server.Close()
//
// An endpoint is served at a Unix socket, rdp-PID-N.sock, in a directory that only its user can enter: $XDG_RUNTIME_DIR/urnic,
// or urnic-UID in the directory for temporary files. Who connects is sent one JSON object, a [Report]. The socket goes with
// the server; what a process that was killed leaves behind, the next one removes.
package rdpinfo

import (
	"context"
	"errors"
	"fmt"
	"os"

	"urnic/internal/host/infosock"
	"urnic/ulp/rdp"
)

// kind begins the names of sockets.
const kind = "rdp"

// ErrGone says that the process that made a socket does not serve it any more.
var ErrGone = infosock.ErrGone

// A Report is what a process reports about an endpoint.
type Report struct {
	PID      int       `json:"pid"`
	Command  string    `json:"command"`
	Endpoint *rdp.Info `json:"endpoint"`
}

// A Server serves what an endpoint has.
type Server struct{ *infosock.Server }

// Serve serves an endpoint of a command at a socket in a directory, "" for the user's own, until Close. Who opens an
// endpoint may do so, and closes the server before the endpoint.
func Serve(e *rdp.Endpoint, command, dir string) (*Server, error) {
	s, err := infosock.Serve(dir, kind, func() any { return &Report{os.Getpid(), command, e.Info()} })
	if err != nil {
		return nil, fmt.Errorf("rdpinfo: %w", err)
	}
	return &Server{s}, nil
}

// List returns the paths of the sockets in a directory, "" for the user's own, in order. The processes may be gone.
func List(dir string) ([]string, error) { return infosock.List(dir, kind) }

// Ask asks the process that serves a socket what its endpoint has. The error says what is wrong with the socket or the
// answer; it is ErrGone if the socket was left behind.
func Ask(ctx context.Context, path string) (*Report, error) {
	var r Report
	err := infosock.Ask(ctx, path, &r)
	if errors.Is(err, infosock.ErrAnswer) || err == nil && (r.Endpoint == nil || !r.Endpoint.Addr.IsValid()) {
		return nil, fmt.Errorf("%s: the answer of its process describes no RDP endpoint", path)
	}
	if err != nil {
		return nil, err
	}
	return &r, nil
}
