package nfs3

import "urnic/ulp/oncrpc/xdr"

// Bytes of the results of READDIR and READDIRPLUS besides the entries and the
// attributes of the directory: the verifier, the end of the list, and eof.
const sizeListing = sizeVerifier + 4 + 4

// ReadDirArgs are the arguments of READDIR (RFC 1813 §3.3.16).
type ReadDirArgs struct {
	Dir      Handle
	Cookie   uint64   // 0, or that of the entry to continue behind
	Verifier Verifier // 0, or that which came with the cookie
	Count    uint32   // bytes of all results but the status
}

// Encode writes the arguments.
func (a *ReadDirArgs) Encode(e *xdr.Encoder) {
	a.Dir.encode(e)
	e.Uint64(a.Cookie)
	a.Verifier.encode(e)
	e.Uint32(a.Count)
}

// Decode reads the arguments.
func (a *ReadDirArgs) Decode(d *xdr.Decoder) error {
	a.Dir.decode(d)
	a.Cookie = d.Uint64()
	a.Verifier.decode(d)
	a.Count = d.Uint32()
	return d.Err()
}

// An Entry is a name in a directory (entry3).
type Entry struct {
	FileID uint64
	Name   string
	Cookie uint64
}

// Size returns how many bytes the entry takes in the results.
func (n *Entry) Size() int { return 4 + 8 + 4 + (len(n.Name)+3)&^3 + 8 }

func (n *Entry) encode(e *xdr.Encoder) {
	e.Bool(true)
	e.Uint64(n.FileID)
	e.String(n.Name)
	e.Uint64(n.Cookie)
}

func (n *Entry) decode(d *xdr.Decoder) {
	n.FileID, n.Name, n.Cookie = d.Uint64(), d.String(MaxName), d.Uint64()
}

// ReadDirRes are the results of READDIR.
type ReadDirRes struct {
	Status   Status
	Dir      PostOpAttr
	Verifier Verifier // this and all else with OK
	Entries  []Entry
	EOF      bool
}

// Size returns how many bytes the results take that count in ReadDirArgs.Count.
func (r *ReadDirRes) Size() int {
	n := r.Dir.size() + sizeListing
	for i := range r.Entries {
		n += r.Entries[i].Size()
	}
	return n
}

// Encode writes the results.
func (r *ReadDirRes) Encode(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Dir.encode(e); r.Status != OK {
		return
	}
	r.Verifier.encode(e)
	for i := range r.Entries {
		r.Entries[i].encode(e)
	}
	e.Bool(false)
	e.Bool(r.EOF)
}

// Decode reads the results.
func (r *ReadDirRes) Decode(d *xdr.Decoder) error {
	*r = ReadDirRes{Status: Status(d.Uint32()), Entries: r.Entries[:0]}
	if r.Dir.decode(d); r.Status != OK {
		return d.Err()
	}
	r.Verifier.decode(d)
	for d.Bool() { // each takes bytes of the stream, so that it ends
		var n Entry
		if n.decode(d); d.Err() != nil {
			break
		}
		r.Entries = append(r.Entries, n)
	}
	r.EOF = d.Bool()
	return d.Err()
}

// ReadDirPlusArgs are the arguments of READDIRPLUS (§3.3.17).
type ReadDirPlusArgs struct {
	Dir      Handle
	Cookie   uint64
	Verifier Verifier
	DirCount uint32 // bytes of names, cookies and numbers of files
	MaxCount uint32 // bytes of all results but the status
}

// Encode writes the arguments.
func (a *ReadDirPlusArgs) Encode(e *xdr.Encoder) {
	a.Dir.encode(e)
	e.Uint64(a.Cookie)
	a.Verifier.encode(e)
	e.Uint32(a.DirCount)
	e.Uint32(a.MaxCount)
}

// Decode reads the arguments.
func (a *ReadDirPlusArgs) Decode(d *xdr.Decoder) error {
	a.Dir.decode(d)
	a.Cookie = d.Uint64()
	a.Verifier.decode(d)
	a.DirCount, a.MaxCount = d.Uint32(), d.Uint32()
	return d.Err()
}

// An EntryPlus is a name in a directory, and what it names (entryplus3).
type EntryPlus struct {
	Entry
	Attr   PostOpAttr
	Handle PostOpHandle
}

// Size returns how many bytes the entry takes in the results.
func (n *EntryPlus) Size() int {
	size := n.Entry.Size() + n.Attr.size() + 4
	if n.Handle.Present {
		size += 4 + (int(n.Handle.Handle.n)+3)&^3
	}
	return size
}

// ReadDirPlusRes are the results of READDIRPLUS.
type ReadDirPlusRes struct {
	Status   Status
	Dir      PostOpAttr
	Verifier Verifier // this and all else with OK
	Entries  []EntryPlus
	EOF      bool
}

// Size returns how many bytes the results take that count in ReadDirPlusArgs.MaxCount.
func (r *ReadDirPlusRes) Size() int {
	n := r.Dir.size() + sizeListing
	for i := range r.Entries {
		n += r.Entries[i].Size()
	}
	return n
}

// Encode writes the results.
func (r *ReadDirPlusRes) Encode(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Dir.encode(e); r.Status != OK {
		return
	}
	r.Verifier.encode(e)
	for i := range r.Entries {
		n := &r.Entries[i]
		n.encode(e)
		n.Attr.encode(e)
		n.Handle.encode(e)
	}
	e.Bool(false)
	e.Bool(r.EOF)
}

// Decode reads the results.
func (r *ReadDirPlusRes) Decode(d *xdr.Decoder) error {
	*r = ReadDirPlusRes{Status: Status(d.Uint32()), Entries: r.Entries[:0]}
	if r.Dir.decode(d); r.Status != OK {
		return d.Err()
	}
	r.Verifier.decode(d)
	for d.Bool() { // each takes bytes of the stream, so that it ends
		var n EntryPlus
		n.decode(d)
		n.Attr.decode(d)
		if n.Handle.decode(d); d.Err() != nil {
			break
		}
		r.Entries = append(r.Entries, n)
	}
	r.EOF = d.Bool()
	return d.Err()
}

func (p *PostOpAttr) size() int {
	if p.Present {
		return sizePostOp
	}
	return 4
}
