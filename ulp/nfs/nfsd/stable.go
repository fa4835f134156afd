package nfsd

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/vfs"
)

// A client keeps what it has written until a COMMIT returns the write verifier that the
// WRITEs returned (RFC 1813 §3.3.21). So the verifier has to change whenever data that is
// not committed may be lost. A system reports a loss once: the call that gets the error
// may be another client's, and the COMMIT that follows succeeds.

// forget makes a new write verifier. All clients write again what they have not committed.
func (s *Server) forget() {
	var p [8]byte
	_, _ = rand.Read(p[:]) // never fails
	s.verifier.Store(binary.BigEndian.Uint64(p[:]))
}

// lossStep is odd, so that no two numbers of losses give the same verifier.
const lossStep = 0x9e3779b97f4a7c15

// writeVerifier returns the verifier as it is now. A WRITE has to take it before it writes:
// taken later, it would hide a loss in between. A COMMIT takes it when all is done.
func (s *Server) writeVerifier(x *export) (v nfs3.Verifier) {
	n := s.verifier.Load()
	if x.losses != nil {
		n += x.losses.Losses() * lossStep
	}
	binary.BigEndian.PutUint64(v[:], n)
	return v
}

// sync makes a call of the filesystem that may bring the file's data to stable storage, and
// changes the verifier if that fails. Until it has, syncsDone does not return.
func (o *object) sync(do func() error) error {
	st := o.s.changes.stripe(o.h)
	st.syncs.RLock()
	defer st.syncs.RUnlock()
	return o.noteLoss(do())
}

// syncsDone returns when the verifier reports all losses of the file that a call has seen
// so far.
func (o *object) syncsDone() {
	st := o.s.changes.stripe(o.h)
	st.syncs.Lock()
	st.syncs.Unlock() //nolint:staticcheck // waits for those that hold it
}

// noteLoss changes the verifier if an error of the filesystem says that data may be lost.
// It returns the error.
func (o *object) noteLoss(err error) error {
	if err != nil && o.x.lost(err) {
		o.s.forget()
	}
	return err
}

// lost reports whether data may be lost after an error of a call that changes something.
func (x *export) lost(err error) bool {
	if errors.Is(err, vfs.ErrIO) { // whatever it is besides
		return true
	}
	switch status(err) { //nolint:exhaustive // the others refuse a call
	case nfs3.ErrIO, nfs3.ErrServerFault:
		return true
	case nfs3.ErrNoSpc, nfs3.ErrDQuot:
		// Said of the data of the call, or of data that was taken before and has no
		// place now. Filesystems that count losses count the latter.
		return x.losses == nil
	}
	return false
}

// setAttrs is SetAttr of the filesystem.
func (o *object) setAttrs(ctx context.Context, set vfs.SetAttr) error {
	return o.sync(func() error {
		_, err := o.x.FS.SetAttr(ctx, o.h, set)
		return err
	})
}
