package nfsd

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/fnv"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/vfs"
)

// A file handle is, in bytes:
//
//	0      handleVersion
//	1..4   the export's number
//	5..12  check bytes: an HMAC of the rest, with the server's key
//	13..   the filesystem's handle, 1 to vfs.MaxHandle
const (
	handleVersion = 1
	handleHead    = 13
)

// exportNumber returns that of a path, which is the same after the server has started
// again, with other exports or in another order.
func exportNumber(path string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(path))
	return h.Sum32()
}

// A mac makes the check bytes of one handle at a time.
type mac struct {
	hash hash.Hash
	sum  [sha256.Size]byte
}

// check returns the check bytes of a handle, for which all else is in p.
func (s *Server) check(p []byte) (c [8]byte) {
	m, _ := s.macs.Get().(*mac)
	m.hash.Reset()
	_, _ = m.hash.Write(p[:5])
	_, _ = m.hash.Write(p[handleHead:])
	copy(c[:], m.hash.Sum(m.sum[:0]))
	s.macs.Put(m)
	return c
}

// handle returns the file handle of a file of an export. One that the filesystem should
// not have made is vfs.ErrIO.
func (s *Server) handle(x *export, h vfs.Handle) (nfs3.Handle, error) {
	if len(h) == 0 || len(h) > vfs.MaxHandle {
		return nfs3.Handle{}, vfs.ErrIO
	}
	var p [handleHead + vfs.MaxHandle]byte
	n := handleHead + copy(p[handleHead:], h)
	p[0] = handleVersion
	binary.BigEndian.PutUint32(p[1:], x.number)
	c := s.check(p[:n])
	copy(p[5:], c[:])
	return nfs3.MakeHandle(p[:n])
}

// file returns the export and the filesystem's handle. It returns ErrBadHandle for what
// this server has never made, and ErrStale if the export is gone.
func (s *Server) file(h *nfs3.Handle) (*export, vfs.Handle, error) {
	p := h.Octets()
	if len(p) <= handleHead || len(p) > handleHead+vfs.MaxHandle || p[0] != handleVersion {
		return nil, "", nfs3.ErrBadHandle
	}
	if c := s.check(p); !hmac.Equal(c[:], p[5:handleHead]) {
		return nil, "", nfs3.ErrBadHandle
	}
	x := s.exports.Load().numbers[binary.BigEndian.Uint32(p[1:])]
	if x == nil {
		return nil, "", nfs3.ErrStale
	}
	return x, vfs.Handle(p[handleHead:]), nil
}
