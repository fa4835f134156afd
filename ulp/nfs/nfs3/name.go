package nfs3

import "urnic/ulp/oncrpc/xdr"

// A CreateMode says what CREATE does with a file that exists (createmode3).
type CreateMode uint32

// What CREATE does with a file that exists.
const (
	Unchecked CreateMode = 0 // it opens it
	Guarded   CreateMode = 1 // it fails
	Exclusive CreateMode = 2 // it fails unless the file was created with the same verifier
)

// CreateArgs are the arguments of CREATE (RFC 1813 §3.3.8).
type CreateArgs struct {
	Where    NameArgs
	Mode     CreateMode
	Attr     SetAttr  // without Exclusive
	Verifier Verifier // with Exclusive
}

// Encode writes the arguments.
func (a *CreateArgs) Encode(e *xdr.Encoder) {
	a.Where.Encode(e)
	if e.Uint32(uint32(a.Mode)); a.Mode == Exclusive {
		a.Verifier.encode(e)
		return
	}
	a.Attr.encode(e)
}

// Decode reads the arguments.
func (a *CreateArgs) Decode(d *xdr.Decoder) error {
	*a = CreateArgs{}
	_ = a.Where.Decode(d) // stays
	switch a.Mode = CreateMode(d.Uint32()); a.Mode {
	case Unchecked, Guarded:
		a.Attr.decode(d)
	case Exclusive:
		a.Verifier.decode(d)
	default:
		d.Fail("how to create a file", xdr.ErrValue)
	}
	return d.Err()
}

// NewRes are the results of CREATE, MKDIR, SYMLINK and MKNOD.
type NewRes struct {
	Status Status
	Object PostOpHandle // with OK
	Attr   PostOpAttr   // with OK
	Dir    WccData
}

// Encode writes the results.
func (r *NewRes) Encode(e *xdr.Encoder) {
	if e.Uint32(uint32(r.Status)); r.Status == OK {
		r.Object.encode(e)
		r.Attr.encode(e)
	}
	r.Dir.encode(e)
}

// Decode reads the results.
func (r *NewRes) Decode(d *xdr.Decoder) error {
	*r = NewRes{Status: Status(d.Uint32())}
	if r.Status == OK {
		r.Object.decode(d)
		r.Attr.decode(d)
	}
	r.Dir.decode(d)
	return d.Err()
}

// MkdirArgs are the arguments of MKDIR (§3.3.9).
type MkdirArgs struct {
	Where NameArgs
	Attr  SetAttr
}

// Encode writes the arguments.
func (a *MkdirArgs) Encode(e *xdr.Encoder) {
	a.Where.Encode(e)
	a.Attr.encode(e)
}

// Decode reads the arguments.
func (a *MkdirArgs) Decode(d *xdr.Decoder) error {
	_ = a.Where.Decode(d) // stays
	a.Attr.decode(d)
	return d.Err()
}

// SymlinkArgs are the arguments of SYMLINK (§3.3.10). The path is eligible to direct data
// placement (RFC 8267 §4).
type SymlinkArgs struct {
	Where NameArgs
	Attr  SetAttr
	Path  string
}

// Encode writes the arguments, the path as a bulk.
func (a *SymlinkArgs) Encode(e *xdr.Encoder) {
	a.Where.Encode(e)
	a.Attr.encode(e)
	e.Bulk([]byte(a.Path))
}

// Decode reads the arguments.
func (a *SymlinkArgs) Decode(d *xdr.Decoder) error {
	_ = a.Where.Decode(d) // stays
	a.Attr.decode(d)
	a.Path = string(d.Bulk(maxNewPath))
	return d.Err()
}

// MknodArgs are the arguments of MKNOD (§3.3.11).
type MknodArgs struct {
	Where        NameArgs
	Type         FileType
	Attr         SetAttr // of devices, sockets and FIFOs
	Major, Minor uint32  // of devices
}

// Encode writes the arguments.
func (a *MknodArgs) Encode(e *xdr.Encoder) {
	a.Where.Encode(e)
	e.Uint32(uint32(a.Type))
	switch a.Type {
	case CharDevice, BlockDevice:
		a.Attr.encode(e)
		e.Uint32(a.Major)
		e.Uint32(a.Minor)
	case Socket, FIFO:
		a.Attr.encode(e)
	case Regular, Directory, Symlink:
	}
}

// Decode reads the arguments. The types that MKNOD can't make have no more.
func (a *MknodArgs) Decode(d *xdr.Decoder) error {
	*a = MknodArgs{}
	_ = a.Where.Decode(d) // stays
	switch a.Type = FileType(d.Uint32()); a.Type {
	case CharDevice, BlockDevice:
		a.Attr.decode(d)
		a.Major, a.Minor = d.Uint32(), d.Uint32()
	case Socket, FIFO:
		a.Attr.decode(d)
	case Regular, Directory, Symlink:
	}
	return d.Err()
}

// RenameArgs are the arguments of RENAME (§3.3.14).
type RenameArgs struct{ From, To NameArgs }

// Encode writes the arguments.
func (a *RenameArgs) Encode(e *xdr.Encoder) {
	a.From.Encode(e)
	a.To.Encode(e)
}

// Decode reads the arguments.
func (a *RenameArgs) Decode(d *xdr.Decoder) error {
	_ = a.From.Decode(d) // stays
	return a.To.Decode(d)
}

// RenameRes are the results of RENAME.
type RenameRes struct {
	Status Status
	From   WccData // of the directory
	To     WccData
}

// Encode writes the results.
func (r *RenameRes) Encode(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	r.From.encode(e)
	r.To.encode(e)
}

// Decode reads the results.
func (r *RenameRes) Decode(d *xdr.Decoder) error {
	r.Status = Status(d.Uint32())
	r.From.decode(d)
	r.To.decode(d)
	return d.Err()
}

// LinkArgs are the arguments of LINK (§3.3.15).
type LinkArgs struct {
	File Handle
	Link NameArgs
}

// Encode writes the arguments.
func (a *LinkArgs) Encode(e *xdr.Encoder) {
	a.File.encode(e)
	a.Link.Encode(e)
}

// Decode reads the arguments.
func (a *LinkArgs) Decode(d *xdr.Decoder) error {
	a.File.decode(d)
	return a.Link.Decode(d)
}

// LinkRes are the results of LINK.
type LinkRes struct {
	Status Status
	Attr   PostOpAttr // of the file
	Dir    WccData
}

// Encode writes the results.
func (r *LinkRes) Encode(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	r.Attr.encode(e)
	r.Dir.encode(e)
}

// Decode reads the results.
func (r *LinkRes) Decode(d *xdr.Decoder) error {
	r.Status = Status(d.Uint32())
	r.Attr.decode(d)
	r.Dir.decode(d)
	return d.Err()
}
