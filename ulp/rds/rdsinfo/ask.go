package rdsinfo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// ErrGone says that the process that made a socket does not serve it any more.
var ErrGone = errors.New("the process that made it is gone")

// maxReport is how long a report may be.
const maxReport = 64 << 20

// Ask asks the process that serves a socket what its node has. The error says what is wrong
// with the socket or the answer; it is ErrGone if the socket was left behind.
func Ask(ctx context.Context, path string) (*Report, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such socket", path)
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s is no socket: it is not urnic's", path)
	case !own(info):
		return nil, fmt.Errorf("%s is another user's: its process could say anything", path)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	silent := func() error {
		return fmt.Errorf("%s: its process has not answered in time: it may be stopped: %w", path, context.Cause(ctx))
	}
	switch {
	case ctx.Err() != nil && err != nil: // also while it was waited for the process to accept
		return nil, silent()
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%s: %w", path, ErrGone)
	case err != nil:
		return nil, err
	}
	defer func() { _ = conn.Close() }() // what matters has been read or written
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	b, err := io.ReadAll(io.LimitReader(conn, maxReport+1))
	switch {
	case ctx.Err() != nil:
		return nil, silent()
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(b) > maxReport:
		return nil, fmt.Errorf("%s: the answer is longer than %d bytes", path, maxReport)
	}
	var r Report
	if err := json.Unmarshal(b, &r); err != nil || r.Node == nil || !r.Node.Addr.IsValid() {
		return nil, fmt.Errorf("%s: the answer of its process describes no RDS node", path)
	}
	return &r, nil
}

// removeStale removes sockets whose processes are gone.
func removeStale(dir string) {
	paths, err := List(dir)
	if err != nil {
		return // what is there stays
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSocket == 0 {
			continue
		}
		conn, err := net.DialTimeout("unix", path, time.Second)
		switch {
		case err == nil:
			_ = conn.Close()
		case errors.Is(err, syscall.ECONNREFUSED):
			_ = os.Remove(path) // another process may have removed it
		}
	}
}
