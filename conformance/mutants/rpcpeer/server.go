package rpcpeer

import (
	"context"
	"errors"
	"sync"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// Root is the file handle of the directory.
const Root = "root"

// Procedures (RFC 1813 §3.3) and statuses (§2.6).
const (
	null    = 0
	getAttr = 1
	lookup  = 3
	read    = 6
	write   = 7
	create  = 8
	remove  = 12

	ok    = 0
	noEnt = 2
	isDir = 21
	stale = 70
)

const (
	attrLen   = 84
	maxHandle = 64
	maxName   = 60 // its file's handle is made of it
	maxFile   = 1 << 20
)

// A Service is a server of NFS version 3 (RFC 1813) that is as small as can be: files in
// one directory, in memory, without attributes. It is an oncrpc.Service, whatever program is called.
type Service struct {
	mu    sync.Mutex
	files map[string][]byte // by handle
}

// NewService returns a service without files.
func NewService() *Service { return &Service{files: map[string][]byte{}} }

// Serve carries out a call.
func (s *Service) Serve(_ context.Context, x *oncrpc.Exchange, reply *xdr.Encoder) error {
	d := x.Call.Decoder()
	var c oncrpc.Call
	if err := c.Decode(d); err != nil {
		return oncrpc.ErrNoReply
	}
	r := oncrpc.Reply{XID: c.XID}
	results, err := s.decode(c.Procedure, x, d)
	switch {
	case errors.Is(err, errNoProcedure):
		r.Err = &oncrpc.AcceptedError{Stat: oncrpc.ProcedureUnavailable}
	case err != nil:
		r.Err = &oncrpc.AcceptedError{Stat: oncrpc.GarbageArguments}
	}
	if err := r.Encode(reply); err != nil || r.Err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	results(reply)
	return nil
}

var errNoProcedure = errors.New("there is no such procedure")

// decode decodes the arguments of a call, and returns what carries it out and writes its
// results.
func (s *Service) decode(procedure uint32, x *oncrpc.Exchange, d *xdr.Decoder) (func(e *xdr.Encoder), error) {
	switch procedure {
	case null: // it takes no arguments, and looks at none
		return func(*xdr.Encoder) {}, nil
	case getAttr:
		d.Opaque(maxHandle)
		return func(e *xdr.Encoder) {
			e.Uint32(ok)
			e.Fixed(make([]byte, attrLen))
		}, d.End()
	case lookup, remove, create:
		d.Opaque(maxHandle)
		name := d.String(maxName)
		if procedure == create {
			d.Fixed(d.Left()) // how, and with which attributes
		}
		return func(e *xdr.Encoder) { s.name(procedure, name, e) }, d.End()
	case read:
		handle, off, n := d.String(maxHandle), d.Uint64(), d.Uint32()
		return func(e *xdr.Encoder) { s.read(handle, off, n, x, e) }, d.End()
	case write:
		handle, off := d.String(maxHandle), d.Uint64()
		d.Uint32()
		d.Uint32()
		data := d.Bulk(maxFile)
		return func(e *xdr.Encoder) { s.write(handle, off, data, e) }, d.End()
	}
	return nil, errNoProcedure
}

// words writes integers of 32 bits.
func words(e *xdr.Encoder, of ...uint32) {
	for _, w := range of {
		e.Uint32(w)
	}
}

// name looks for a file, removes it, or makes one.
func (s *Service) name(procedure uint32, name string, e *xdr.Encoder) {
	handle := "/" + name
	_, there := s.files[handle]
	switch {
	case procedure == create:
		s.files[handle] = nil
		words(e, ok, 1)
		e.String(handle)
		words(e, 0, 0, 0)
	case !there && procedure == lookup:
		words(e, noEnt, 0)
	case !there:
		words(e, noEnt, 0, 0)
	case procedure == remove:
		delete(s.files, handle)
		words(e, ok, 0, 0)
	default:
		e.Uint32(ok)
		e.String(handle)
		words(e, 0, 0)
	}
}

func (s *Service) read(handle string, off uint64, n uint32, x *oncrpc.Exchange, e *xdr.Encoder) {
	f, there := s.files[handle]
	switch {
	case handle == Root:
		words(e, isDir, 0)
		return
	case !there:
		words(e, stale, 0)
		return
	}
	f = f[min(off, uint64(len(f))):]
	data := x.Bulk(min(int(n), len(f)))
	copy(data, f)
	words(e, ok, 0, uint32(len(data)))
	e.Bool(len(data) == len(f))
	e.Bulk(data)
}

func (s *Service) write(handle string, off uint64, data []byte, e *xdr.Encoder) {
	f, there := s.files[handle]
	if !there || off > maxFile {
		words(e, stale, 0, 0)
		return
	}
	if end := int(off) + len(data); end > len(f) {
		f = append(f, make([]byte, end-len(f))...)
	}
	copy(f[off:], data)
	s.files[handle] = f
	words(e, ok, 0, 0, uint32(len(data)), 2)
	e.Fixed(make([]byte, 8))
}
