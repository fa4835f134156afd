package nfs3

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"urnic/ulp/oncrpc/xdr"
)

// Bounds of what is decoded, in bytes. RFC 1813 has none but MaxHandle (§2.4).
const (
	MaxHandle = 64

	// MaxName is that of a name: more than filesystems have, so that a server can say
	// ErrNameTooLong.
	MaxName = 4096
	// MaxPath is that of what a symbolic link says.
	MaxPath = 4096
	// MaxData is that of the data of READ and WRITE, and of a listing.
	MaxData = 16 << 20

	maxNewPath = 4 * MaxPath // decoded of SYMLINK, for ErrNameTooLong
)

// Bytes of what has one size, or of its longest form.
const (
	sizeHandle       = 4 + MaxHandle
	sizePostOpHandle = 4 + sizeHandle
	sizeTime         = 8
	sizeAttr         = 60 + 3*sizeTime
	sizePostOp       = 4 + sizeAttr
	sizeWcc          = 4 + 8 + 2*sizeTime + sizePostOp
	sizeVerifier     = 8
	sizeNew          = 4 + sizePostOpHandle + sizePostOp + sizeWcc
)

// A Handle names a file on the server for as long as the file exists (nfs_fh3). Handles
// can be compared.
type Handle struct {
	n      uint8
	octets [MaxHandle]byte
}

// ErrHandle says that a handle would have more than MaxHandle bytes.
var ErrHandle = errors.New("nfs: a file handle has 64 bytes at most (RFC 1813 §2.4)")

// MakeHandle returns a handle of these bytes, or ErrHandle.
func MakeHandle[T ~string | ~[]byte](p T) (Handle, error) {
	if len(p) > MaxHandle {
		return Handle{}, ErrHandle
	}
	h := Handle{n: uint8(len(p))}
	copy(h.octets[:], p)
	return h, nil
}

// Octets returns the handle's bytes, in its own memory.
func (h *Handle) Octets() []byte { return h.octets[:h.n] }

// String returns the bytes as hexadecimal digits.
func (h Handle) String() string { return hex.EncodeToString(h.octets[:h.n]) }

func (h *Handle) encode(e *xdr.Encoder) { e.Opaque(h.octets[:h.n]) }

func (h *Handle) decode(d *xdr.Decoder) {
	*h = Handle{}
	h.n = uint8(copy(h.octets[:], d.Opaque(MaxHandle)))
}

// A PostOpHandle is a handle that may be missing (post_op_fh3).
type PostOpHandle struct {
	Present bool
	Handle  Handle
}

func (p *PostOpHandle) encode(e *xdr.Encoder) {
	if e.Bool(p.Present); p.Present {
		p.Handle.encode(e)
	}
}

func (p *PostOpHandle) decode(d *xdr.Decoder) {
	*p = PostOpHandle{Present: d.Bool()}
	if p.Present {
		p.Handle.decode(d)
	}
}

// A Verifier is what is compared for equality only: cookieverf3, createverf3, writeverf3.
type Verifier [8]byte

func (v *Verifier) encode(e *xdr.Encoder) { e.Fixed(v[:]) }
func (v *Verifier) decode(d *xdr.Decoder) { *v = Verifier{}; copy(v[:], d.Fixed(len(v))) }

// A Time is a time since the beginning of 1970, UTC (nfstime3).
type Time struct{ Seconds, Nanoseconds uint32 }

// TimeOf returns the protocol's time. It can't say one before 1970, or in 2106 and later:
// the nearest that it can stands for these.
func TimeOf(t time.Time) Time {
	switch s := t.Unix(); {
	case s < 0:
		return Time{}
	case s > math.MaxUint32:
		return Time{math.MaxUint32, 999999999}
	default:
		return Time{uint32(s), uint32(t.Nanosecond())}
	}
}

// Time returns the time in UTC.
func (t Time) Time() time.Time { return time.Unix(int64(t.Seconds), int64(t.Nanoseconds)).UTC() }

func (t *Time) encode(e *xdr.Encoder) { e.Uint32(t.Seconds); e.Uint32(t.Nanoseconds) }
func (t *Time) decode(d *xdr.Decoder) { *t = Time{d.Uint32(), d.Uint32()} }

// A FileType is what a file is (ftype3).
type FileType uint32

// The types of files.
const (
	Regular     FileType = 1
	Directory   FileType = 2
	BlockDevice FileType = 3
	CharDevice  FileType = 4
	Symlink     FileType = 5
	Socket      FileType = 6
	FIFO        FileType = 7
)

var fileTypes = [...]string{"", "NF3REG", "NF3DIR", "NF3BLK", "NF3CHR", "NF3LNK", "NF3SOCK", "NF3FIFO"}

// String returns the RFC's name, such as "NF3DIR".
func (t FileType) String() string {
	if t > 0 && int(t) < len(fileTypes) {
		return fileTypes[t]
	}
	return fmt.Sprintf("ftype3 %d", uint32(t))
}

// An Attr is the attributes of a file (fattr3).
type Attr struct {
	Type         FileType
	Mode         uint32 // the twelve bits of permissions
	Links        uint32
	UID, GID     uint32
	Size         uint64 // bytes
	Used         uint64 // bytes of storage
	Major, Minor uint32 // of a device
	FSID         uint64
	FileID       uint64 // unique within the filesystem
	Atime        Time
	Mtime        Time
	Ctime        Time
}

func (a *Attr) encode(e *xdr.Encoder) {
	e.Uint32(uint32(a.Type))
	e.Uint32(a.Mode)
	e.Uint32(a.Links)
	e.Uint32(a.UID)
	e.Uint32(a.GID)
	e.Uint64(a.Size)
	e.Uint64(a.Used)
	e.Uint32(a.Major)
	e.Uint32(a.Minor)
	e.Uint64(a.FSID)
	e.Uint64(a.FileID)
	a.Atime.encode(e)
	a.Mtime.encode(e)
	a.Ctime.encode(e)
}

func (a *Attr) decode(d *xdr.Decoder) {
	*a = Attr{Type: FileType(d.Uint32())}
	if d.Err() == nil && (a.Type < Regular || a.Type > FIFO) {
		d.Fail("the type of a file", xdr.ErrValue)
	}
	a.Mode, a.Links, a.UID, a.GID = d.Uint32(), d.Uint32(), d.Uint32(), d.Uint32()
	a.Size, a.Used = d.Uint64(), d.Uint64()
	a.Major, a.Minor = d.Uint32(), d.Uint32()
	a.FSID, a.FileID = d.Uint64(), d.Uint64()
	a.Atime.decode(d)
	a.Mtime.decode(d)
	a.Ctime.decode(d)
}

// A PostOpAttr is the attributes after an operation, which may be missing (post_op_attr).
type PostOpAttr struct {
	Present bool
	Attr    Attr
}

func (p *PostOpAttr) encode(e *xdr.Encoder) {
	if e.Bool(p.Present); p.Present {
		p.Attr.encode(e)
	}
}

func (p *PostOpAttr) decode(d *xdr.Decoder) {
	*p = PostOpAttr{Present: d.Bool()}
	if p.Present {
		p.Attr.decode(d)
	}
}

// A PreOpAttr is what says whether a file was changed by others before an operation, and
// may be missing (pre_op_attr).
type PreOpAttr struct {
	Present bool
	Size    uint64
	Mtime   Time
	Ctime   Time
}

func (p *PreOpAttr) encode(e *xdr.Encoder) {
	if e.Bool(p.Present); p.Present {
		e.Uint64(p.Size)
		p.Mtime.encode(e)
		p.Ctime.encode(e)
	}
}

func (p *PreOpAttr) decode(d *xdr.Decoder) {
	*p = PreOpAttr{Present: d.Bool()}
	if p.Present {
		p.Size = d.Uint64()
		p.Mtime.decode(d)
		p.Ctime.decode(d)
	}
}

// A WccData is for weak cache consistency: a client whose cache agrees with Before knows
// that nobody else has changed the file (wcc_data).
type WccData struct {
	Before PreOpAttr
	After  PostOpAttr
}

func (w *WccData) encode(e *xdr.Encoder) { w.Before.encode(e); w.After.encode(e) }
func (w *WccData) decode(d *xdr.Decoder) { w.Before.decode(d); w.After.decode(d) }

// A TimeHow says to what a time is set (time_how).
type TimeHow uint32

// To what a time is set.
const (
	DontChange      TimeHow = 0
	SetToServerTime TimeHow = 1
	SetToClientTime TimeHow = 2
)

// A SetTime says whether a time is to be set (set_atime, set_mtime).
type SetTime struct {
	How  TimeHow
	Time Time // with SetToClientTime
}

func (s *SetTime) encode(e *xdr.Encoder) {
	if e.Uint32(uint32(s.How)); s.How == SetToClientTime {
		s.Time.encode(e)
	}
}

func (s *SetTime) decode(d *xdr.Decoder) {
	*s = SetTime{How: TimeHow(d.Uint32())}
	switch s.How {
	case DontChange, SetToServerTime:
	case SetToClientTime:
		s.Time.decode(d)
	default:
		d.Fail("how to set a time", xdr.ErrValue)
	}
}

// A SetAttr says what is to change of a file's attributes; nil leaves it as it is
// (sattr3).
type SetAttr struct {
	Mode         *uint32
	UID, GID     *uint32
	Size         *uint64
	Atime, Mtime SetTime
}

func (s *SetAttr) encode(e *xdr.Encoder) {
	for _, v := range [...]*uint32{s.Mode, s.UID, s.GID} {
		if e.Bool(v != nil); v != nil {
			e.Uint32(*v)
		}
	}
	if e.Bool(s.Size != nil); s.Size != nil {
		e.Uint64(*s.Size)
	}
	s.Atime.encode(e)
	s.Mtime.encode(e)
}

func (s *SetAttr) decode(d *xdr.Decoder) {
	*s = SetAttr{}
	for _, v := range [...]**uint32{&s.Mode, &s.UID, &s.GID} {
		if d.Bool() {
			*v = new(d.Uint32())
		}
	}
	if d.Bool() {
		s.Size = new(d.Uint64())
	}
	s.Atime.decode(d)
	s.Mtime.decode(d)
}

// HandleArgs are the arguments of GETATTR, READLINK, FSSTAT, FSINFO and PATHCONF.
type HandleArgs struct{ Handle Handle }

// Encode writes the arguments.
func (a *HandleArgs) Encode(e *xdr.Encoder) { a.Handle.encode(e) }

// Decode reads the arguments.
func (a *HandleArgs) Decode(d *xdr.Decoder) error {
	a.Handle.decode(d)
	return d.Err()
}

// NameArgs are a name in a directory, and the arguments of LOOKUP, REMOVE and RMDIR
// (diropargs3).
type NameArgs struct {
	Dir  Handle
	Name string
}

// Encode writes the arguments.
func (a *NameArgs) Encode(e *xdr.Encoder) {
	a.Dir.encode(e)
	e.String(a.Name)
}

// Decode reads the arguments.
func (a *NameArgs) Decode(d *xdr.Decoder) error {
	a.Dir.decode(d)
	a.Name = d.String(MaxName)
	return d.Err()
}

// WccRes are the results of SETATTR, REMOVE and RMDIR: of the file, or of the directory.
type WccRes struct {
	Status Status
	Wcc    WccData
}

// Encode writes the results.
func (r *WccRes) Encode(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	r.Wcc.encode(e)
}

// Decode reads the results.
func (r *WccRes) Decode(d *xdr.Decoder) error {
	r.Status = Status(d.Uint32())
	r.Wcc.decode(d)
	return d.Err()
}
