package conformance

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"

	"urnic/conformance/wire"
	"urnic/internal/capture"
)

// A recording is the pcapng file of one case.
type recording struct {
	name string
	file *os.File
	w    *capture.Writer
}

// newRecording creates the file, named by the case and the target's role.
func newRecording(dir, id string, role Roles) (*recording, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, strings.ReplaceAll(id, "/", "-")+"-"+role.String()+".pcapng")
	f, err := capture.Create(name)
	if err != nil {
		return nil, err
	}
	w, err := capture.NewWriter(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &recording{name: name, file: f, w: w}, nil
}

// stream returns the recorder of a connection of the tester's.
func (r *recording) stream(local, remote net.Addr, initiator bool) wire.Recorder {
	return r.w.Stream(capture.AddrPort(local), capture.AddrPort(remote), initiator)
}

// segments returns the recorder of a connection of RDP; nil, if nothing is recorded.
func (r *recording) segments() wire.SegmentRecorder {
	if r == nil {
		return nil
	}
	return r.w
}

// close returns the file's name.
func (r *recording) close() (string, error) {
	return r.name, errors.Join(r.w.Close(), r.file.Close())
}
