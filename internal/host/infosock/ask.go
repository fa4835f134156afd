package infosock

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

// ErrAnswer says that what a process has answered is not what was asked for.
var ErrAnswer = errors.New("the answer of its process makes no sense")

// maxReport is how long a report may be.
const maxReport = 64 << 20

// Ask asks the process that serves a socket for what it has, and decodes that into a value. The error says what is wrong
// with the socket or the answer; it is ErrGone if the socket was left behind.
func Ask(ctx context.Context, path string, into any) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such socket", path)
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s is no socket: it is not urnic's", path)
	case !own(info):
		return fmt.Errorf("%s is another user's: its process could say anything", path)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	silent := func() error {
		return fmt.Errorf("%s: its process has not answered in time: it may be stopped: %w", path, context.Cause(ctx))
	}
	switch {
	case ctx.Err() != nil && err != nil: // also while it was waited for the process to accept
		return silent()
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: %w", path, ErrGone)
	case err != nil:
		return err
	}
	defer func() { _ = conn.Close() }() // what matters has been read or written
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	b, err := io.ReadAll(io.LimitReader(conn, maxReport+1))
	switch {
	case ctx.Err() != nil:
		return silent()
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case len(b) > maxReport:
		return fmt.Errorf("%s: the answer is longer than %d bytes", path, maxReport)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s: %w", path, ErrAnswer)
	}
	return nil
}

// removeStale removes sockets whose processes are gone.
func removeStale(dir, kind string) {
	paths, err := List(dir, kind)
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
