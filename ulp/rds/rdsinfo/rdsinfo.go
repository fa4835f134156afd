package rdsinfo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"urnic/internal/host/infosock"
	"urnic/ulp/rds"
)

// kind begins the names of sockets.
const kind = "rds"

// messages is how many messages of each queue are described.
const messages = 1000

// ErrGone says that the process that made a socket does not serve it any more.
var ErrGone = infosock.ErrGone

// A Report is what a process reports about a node.
type Report struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Node    *rds.Info `json:"node"`
}

// A Server serves what a node has.
type Server struct{ *infosock.Server }

// Serve serves a node at a socket in a directory, "" for Dir, until Close. Who makes a node
// may do so, and closes the server before the node.
func Serve(node *rds.Node, dir string) (*Server, error) {
	s, err := infosock.Serve(dir, kind, func() any {
		return &Report{PID: os.Getpid(), Command: filepath.Base(os.Args[0]), Node: node.Info(messages)}
	})
	if err != nil {
		return nil, fmt.Errorf("rdsinfo: %w", err)
	}
	return &Server{s}, nil
}

// Dir returns the directory of this user's sockets. It need not exist.
func Dir() string { return infosock.Dir() }

// List returns the paths of the sockets in a directory, "" for Dir, in order. There are none if there
// is no such directory. The processes may be gone.
func List(dir string) ([]string, error) { return infosock.List(dir, kind) }

// Ask asks the process that serves a socket what its node has. The error says what is wrong
// with the socket or the answer; it is ErrGone if the socket was left behind.
func Ask(ctx context.Context, path string) (*Report, error) {
	var r Report
	err := infosock.Ask(ctx, path, &r)
	if errors.Is(err, infosock.ErrAnswer) || err == nil && (r.Node == nil || !r.Node.Addr.IsValid()) {
		return nil, fmt.Errorf("%s: the answer of its process describes no RDS node", path)
	}
	if err != nil {
		return nil, err
	}
	return &r, nil
}
