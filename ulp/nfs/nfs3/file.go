package nfs3

import "urnic/ulp/oncrpc/xdr"

// GetAttrRes are the results of GETATTR (RFC 1813 §3.3.1).
type GetAttrRes struct {
	Status Status
	Attr   Attr // with OK
}

// Encode writes the results.
func (r *GetAttrRes) Encode(e *xdr.Encoder) {
	if e.Uint32(uint32(r.Status)); r.Status == OK {
		r.Attr.encode(e)
	}
}

// Decode reads the results.
func (r *GetAttrRes) Decode(d *xdr.Decoder) error {
	*r = GetAttrRes{Status: Status(d.Uint32())}
	if r.Status == OK {
		r.Attr.decode(d)
	}
	return d.Err()
}

// SetAttrArgs are the arguments of SETATTR (§3.3.2). If Guard is not nil, the file's ctime
// must be that.
type SetAttrArgs struct {
	Object Handle
	Attr   SetAttr
	Guard  *Time
}

// Encode writes the arguments.
func (a *SetAttrArgs) Encode(e *xdr.Encoder) {
	a.Object.encode(e)
	a.Attr.encode(e)
	if e.Bool(a.Guard != nil); a.Guard != nil {
		a.Guard.encode(e)
	}
}

// Decode reads the arguments.
func (a *SetAttrArgs) Decode(d *xdr.Decoder) error {
	a.Object.decode(d)
	a.Attr.decode(d)
	if a.Guard = nil; d.Bool() {
		a.Guard = new(Time)
		a.Guard.decode(d)
	}
	return d.Err()
}

// LookupRes are the results of LOOKUP (§3.3.3).
type LookupRes struct {
	Status Status
	Object Handle     // with OK
	Attr   PostOpAttr // with OK
	Dir    PostOpAttr
}

// Encode writes the results.
func (r *LookupRes) Encode(e *xdr.Encoder) {
	if e.Uint32(uint32(r.Status)); r.Status == OK {
		r.Object.encode(e)
		r.Attr.encode(e)
	}
	r.Dir.encode(e)
}

// Decode reads the results.
func (r *LookupRes) Decode(d *xdr.Decoder) error {
	*r = LookupRes{Status: Status(d.Uint32())}
	if r.Status == OK {
		r.Object.decode(d)
		r.Attr.decode(d)
	}
	r.Dir.decode(d)
	return d.Err()
}

// What ACCESS asks for (§3.3.4).
const (
	AccessRead    = 0x01
	AccessLookup  = 0x02
	AccessModify  = 0x04
	AccessExtend  = 0x08
	AccessDelete  = 0x10
	AccessExecute = 0x20
)

// AccessArgs are the arguments of ACCESS.
type AccessArgs struct {
	Object Handle
	Access uint32 // Access bits
}

// Encode writes the arguments.
func (a *AccessArgs) Encode(e *xdr.Encoder) {
	a.Object.encode(e)
	e.Uint32(a.Access)
}

// Decode reads the arguments.
func (a *AccessArgs) Decode(d *xdr.Decoder) error {
	a.Object.decode(d)
	a.Access = d.Uint32()
	return d.Err()
}

// AccessRes are the results of ACCESS.
type AccessRes struct {
	Status Status
	Attr   PostOpAttr
	Access uint32 // with OK: what is allowed of what was asked for
}

// Encode writes the results.
func (r *AccessRes) Encode(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Attr.encode(e); r.Status == OK {
		e.Uint32(r.Access)
	}
}

// Decode reads the results.
func (r *AccessRes) Decode(d *xdr.Decoder) error {
	*r = AccessRes{Status: Status(d.Uint32())}
	if r.Attr.decode(d); r.Status == OK {
		r.Access = d.Uint32()
	}
	return d.Err()
}

// ReadLinkRes are the results of READLINK (§3.3.5). The path is eligible to direct data
// placement (RFC 8267 §4).
type ReadLinkRes struct {
	Status Status
	Attr   PostOpAttr
	Path   []byte // with OK; decoded, it lies in the stream's memory or where it was moved
}

// Encode writes the results, the path by reference.
func (r *ReadLinkRes) Encode(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Attr.encode(e); r.Status == OK {
		e.Bulk(r.Path)
	}
}

// Decode reads the results.
func (r *ReadLinkRes) Decode(d *xdr.Decoder) error {
	*r = ReadLinkRes{Status: Status(d.Uint32())}
	if r.Attr.decode(d); r.Status == OK {
		r.Path = d.Bulk(MaxPath)
	}
	return d.Err()
}

// ReadArgs are the arguments of READ (§3.3.6).
type ReadArgs struct {
	File   Handle
	Offset uint64
	Count  uint32
}

// Encode writes the arguments.
func (a *ReadArgs) Encode(e *xdr.Encoder) {
	a.File.encode(e)
	e.Uint64(a.Offset)
	e.Uint32(a.Count)
}

// Decode reads the arguments.
func (a *ReadArgs) Decode(d *xdr.Decoder) error {
	a.File.decode(d)
	a.Offset, a.Count = d.Uint64(), d.Uint32()
	return d.Err()
}

// ReadRes are the results of READ. The data is eligible to direct data placement (RFC
// 8267 §4); its length is the count.
type ReadRes struct {
	Status Status
	Attr   PostOpAttr
	EOF    bool   // with OK
	Data   []byte // with OK

	// Pieces, if not nil, are what Encode writes in place of Data: one piece after the
	// other.
	Pieces [][]byte
}

// Encode writes the results, the data by reference.
func (r *ReadRes) Encode(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Attr.encode(e); r.Status == OK {
		n := len(r.Data)
		for _, p := range r.Pieces {
			n += len(p)
		}
		e.Uint32(uint32(n))
		if e.Bool(r.EOF); r.Pieces == nil {
			e.Bulk(r.Data)
		} else {
			e.Bulk(r.Pieces...)
		}
	}
}

// Decode reads the results. The data lies in the stream's memory, or where it was moved.
func (r *ReadRes) Decode(d *xdr.Decoder) error {
	if n := r.head(d); r.Status == OK {
		r.Data = d.Bulk(MaxData)
		r.check(d, n)
	}
	return d.Err()
}

// DecodeInto reads the results, and puts the data into p unless it lies there already. It
// fails if p is too small.
func (r *ReadRes) DecodeInto(d *xdr.Decoder, p []byte) error {
	if n := r.head(d); r.Status == OK {
		r.Data = p[:d.BulkInto(p)]
		r.check(d, n)
	}
	return d.Err()
}

// head reads what stands before the data, and returns its count.
func (r *ReadRes) head(d *xdr.Decoder) (count uint32) {
	*r = ReadRes{Status: Status(d.Uint32())}
	if r.Attr.decode(d); r.Status == OK {
		count, r.EOF = d.Uint32(), d.Bool()
	}
	return count
}

func (r *ReadRes) check(d *xdr.Decoder, count uint32) {
	if d.Err() == nil && uint64(count) != uint64(len(r.Data)) {
		d.Fail("data of READ that is not as long as its count", xdr.ErrValue)
	}
}

// A Stable says how safe written data is (stable_how).
type Stable uint32

// How safe written data is.
const (
	Unstable Stable = 0 // a COMMIT makes it safe
	DataSync Stable = 1 // it is on stable storage, with what is needed to read it
	FileSync Stable = 2 // it is there with all metadata
)

func (s *Stable) decode(d *xdr.Decoder) {
	if *s = Stable(d.Uint32()); *s > FileSync {
		d.Fail("how stable data is", xdr.ErrValue)
	}
}

// WriteArgs are the arguments of WRITE (§3.3.7). The data is eligible to direct data
// placement (RFC 8267 §4); its length is the count.
type WriteArgs struct {
	File   Handle
	Offset uint64
	Stable Stable
	Data   []byte // decoded, it lies in the stream's memory or where it was moved
}

// Encode writes the arguments, the data by reference.
func (a *WriteArgs) Encode(e *xdr.Encoder) {
	a.File.encode(e)
	e.Uint64(a.Offset)
	e.Uint32(uint32(len(a.Data)))
	e.Uint32(uint32(a.Stable))
	e.Bulk(a.Data)
}

// Decode reads the arguments.
func (a *WriteArgs) Decode(d *xdr.Decoder) error {
	a.File.decode(d)
	a.Offset = d.Uint64()
	count := d.Uint32()
	a.Stable.decode(d)
	a.Data = d.Bulk(MaxData)
	if d.Err() == nil && uint64(count) != uint64(len(a.Data)) {
		d.Fail("data of WRITE that is not as long as its count", xdr.ErrValue)
	}
	return d.Err()
}

// WriteRes are the results of WRITE.
type WriteRes struct {
	Status    Status
	Wcc       WccData
	Count     uint32   // with OK: how much was written
	Committed Stable   // with OK
	Verifier  Verifier // with OK: another one says that unstable data may be lost
}

// Encode writes the results.
func (r *WriteRes) Encode(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Wcc.encode(e); r.Status == OK {
		e.Uint32(r.Count)
		e.Uint32(uint32(r.Committed))
		r.Verifier.encode(e)
	}
}

// Decode reads the results.
func (r *WriteRes) Decode(d *xdr.Decoder) error {
	*r = WriteRes{Status: Status(d.Uint32())}
	if r.Wcc.decode(d); r.Status == OK {
		r.Count = d.Uint32()
		r.Committed.decode(d)
		r.Verifier.decode(d)
	}
	return d.Err()
}

// CommitArgs are the arguments of COMMIT (§3.3.21); Count 0 is all from Offset on.
type CommitArgs struct {
	File   Handle
	Offset uint64
	Count  uint32
}

// Encode writes the arguments.
func (a *CommitArgs) Encode(e *xdr.Encoder) {
	a.File.encode(e)
	e.Uint64(a.Offset)
	e.Uint32(a.Count)
}

// Decode reads the arguments.
func (a *CommitArgs) Decode(d *xdr.Decoder) error {
	a.File.decode(d)
	a.Offset, a.Count = d.Uint64(), d.Uint32()
	return d.Err()
}

// CommitRes are the results of COMMIT.
type CommitRes struct {
	Status   Status
	Wcc      WccData
	Verifier Verifier // with OK
}

// Encode writes the results.
func (r *CommitRes) Encode(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Wcc.encode(e); r.Status == OK {
		r.Verifier.encode(e)
	}
}

// Decode reads the results.
func (r *CommitRes) Decode(d *xdr.Decoder) error {
	*r = CommitRes{Status: Status(d.Uint32())}
	if r.Wcc.decode(d); r.Status == OK {
		r.Verifier.decode(d)
	}
	return d.Err()
}
