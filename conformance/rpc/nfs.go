package rpc

// The programs that the suite calls (RFC 1813 §3, appendix I).
const (
	NFS      = 100003
	NFS3     = 3
	Mount    = 100005
	Mount3   = 3
	MountMnt = 1
	Portmap  = 100000
	Portmap2 = 2
	PmapPort = 3
)

// Procedures of NFS version 3 (RFC 1813 §3.3).
const (
	Null    = 0
	GetAttr = 1
	Lookup  = 3
	Read    = 6
	Write   = 7
	Create  = 8
	Remove  = 12
)

// OK is NFS3_OK, and Exist NFS3ERR_EXIST (RFC 1813 §2.6).
const (
	OK    = 0
	NoEnt = 2
	Exist = 17
)

// Lengths of RFC 1813 §2.4 and §2.5, in bytes.
const (
	maxHandle = 64
	attrLen   = 84
	wccLen    = 24
)

// HandleArgs are the arguments of GETATTR.
func HandleArgs(handle []byte) []byte { return Opaque(nil, handle) }

// NameArgs are the arguments of LOOKUP and REMOVE: a name in a directory.
func NameArgs(dir []byte, name string) []byte { return Opaque(Opaque(nil, dir), []byte(name)) }

// CreateArgs are those of CREATE, UNCHECKED, with mode 0666 and nothing else.
func CreateArgs(dir []byte, name string) []byte {
	b := words(NameArgs(dir, name), 0)       // UNCHECKED
	return words(b, 1, 0o666, 0, 0, 0, 0, 0) // mode; neither uid, gid, size, atime nor mtime
}

// ReadArgs are those of READ.
func ReadArgs(file []byte, offset uint64, count uint32) []byte {
	return words(hyper(HandleArgs(file), offset), count)
}

// WriteHead are those of WRITE up to the count of the data, which follow, or are
// reduced: FILE_SYNC.
func WriteHead(file []byte, offset uint64, count uint32) []byte {
	return words(hyper(HandleArgs(file), offset), count, 2, count)
}

// A ReadResult is what READ returns, but for the data. Rest is what follows upon their
// count: the data, unless they are reduced.
type ReadResult struct {
	Status, Count uint32
	EOF           bool
	Length        uint32 // of the data
	Rest          []byte
}

// ParseRead takes the results of READ apart.
func ParseRead(b []byte) (ReadResult, error) {
	d := decoder{rest: b}
	r := ReadResult{Status: d.word()}
	d.postAttr()
	if r.Status == OK {
		r.Count, r.EOF, r.Length = d.word(), d.more("eof"), d.word()
	}
	r.Rest = d.rest
	return r, d.err
}

func (d *decoder) postAttr() {
	if d.more("attributes") {
		d.take(attrLen)
	}
}

func (d *decoder) wcc() {
	if d.more("attributes before") {
		d.take(wccLen)
	}
	d.postAttr()
}

// ParseStatus returns the status with which results begin.
func ParseStatus(b []byte) (uint32, error) {
	d := decoder{rest: b}
	return d.word(), d.err
}

// ParseWrite returns the status and the count of WRITE.
func ParseWrite(b []byte) (status, count uint32, err error) {
	d := decoder{rest: b}
	status = d.word()
	d.wcc()
	if status == OK {
		count = d.word()
	}
	return status, count, d.err
}

// ParseHandle returns the status and the file handle of CREATE, which need not tell it,
// or of LOOKUP.
func ParseHandle(procedure uint32, b []byte) (status uint32, handle []byte, err error) {
	d := decoder{rest: b}
	status = d.word()
	if status == OK && (procedure != Create || d.more("handle")) {
		handle = d.opaque(maxHandle)
	}
	return status, handle, d.err
}

// ParseMnt returns the status and the file handle of MNT (RFC 1813 §5.2.1).
func ParseMnt(b []byte) (status uint32, handle []byte, err error) {
	return ParseHandle(Lookup, b)
}
