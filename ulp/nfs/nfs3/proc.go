package nfs3

import (
	"fmt"

	"urnic/ulp/oncrpc/xdr"
)

// Numbers of the NFS program (RFC 1813 §2.2, RFC 8267 §9).
const (
	Program  = 100003
	Version  = 3
	Port     = 2049  // TCP
	PortRDMA = 20049 // RPC-over-RDMA
)

// A Codec is the arguments or the results of a procedure. Decode leaves what follows in
// the stream, and returns an *xdr.Error if they are none.
type Codec interface {
	Encode(e *xdr.Encoder)
	Decode(d *xdr.Decoder) error
}

// Void is no arguments, or no results.
type Void struct{}

// Encode writes nothing.
func (*Void) Encode(*xdr.Encoder) {}

// Decode reads nothing.
func (*Void) Decode(d *xdr.Decoder) error { return d.Err() }

// A Proc is a procedure of the NFS program (RFC 1813 §3).
type Proc uint32

// The procedures.
const (
	ProcNull        Proc = 0
	ProcGetAttr     Proc = 1
	ProcSetAttr     Proc = 2
	ProcLookup      Proc = 3
	ProcAccess      Proc = 4
	ProcReadLink    Proc = 5
	ProcRead        Proc = 6
	ProcWrite       Proc = 7
	ProcCreate      Proc = 8
	ProcMkdir       Proc = 9
	ProcSymlink     Proc = 10
	ProcMknod       Proc = 11
	ProcRemove      Proc = 12
	ProcRmdir       Proc = 13
	ProcRename      Proc = 14
	ProcLink        Proc = 15
	ProcReadDir     Proc = 16
	ProcReadDirPlus Proc = 17
	ProcFSStat      Proc = 18
	ProcFSInfo      Proc = 19
	ProcPathConf    Proc = 20
	ProcCommit      Proc = 21

	Procs = 22 // how many there are
)

// A procedure is what is known of one, in bytes without bulk data.
type procedure struct {
	name       string
	idempotent bool
	args       func() Codec
	res        func() Codec
	most       int // bytes of the results, without what the arguments say
}

func void() Codec { return new(Void) }

func fresh[T any, P interface {
	*T
	Codec
}]() Codec {
	return P(new(T))
}

// A WRITE that comes again late would undo a later one, so that it counts among those
// that must not be repeated.
var procedures = [Procs]procedure{
	ProcNull:        {"NULL", true, void, void, 0},
	ProcGetAttr:     {"GETATTR", true, fresh[HandleArgs], fresh[GetAttrRes], 4 + sizeAttr},
	ProcSetAttr:     {"SETATTR", false, fresh[SetAttrArgs], fresh[WccRes], 4 + sizeWcc},
	ProcLookup:      {"LOOKUP", true, fresh[NameArgs], fresh[LookupRes], 4 + sizeHandle + 2*sizePostOp},
	ProcAccess:      {"ACCESS", true, fresh[AccessArgs], fresh[AccessRes], 4 + sizePostOp + 4},
	ProcReadLink:    {"READLINK", true, fresh[HandleArgs], fresh[ReadLinkRes], 4 + sizePostOp + 4},
	ProcRead:        {"READ", true, fresh[ReadArgs], fresh[ReadRes], 4 + sizePostOp + 12},
	ProcWrite:       {"WRITE", false, fresh[WriteArgs], fresh[WriteRes], 4 + sizeWcc + 8 + sizeVerifier},
	ProcCreate:      {"CREATE", false, fresh[CreateArgs], fresh[NewRes], sizeNew},
	ProcMkdir:       {"MKDIR", false, fresh[MkdirArgs], fresh[NewRes], sizeNew},
	ProcSymlink:     {"SYMLINK", false, fresh[SymlinkArgs], fresh[NewRes], sizeNew},
	ProcMknod:       {"MKNOD", false, fresh[MknodArgs], fresh[NewRes], sizeNew},
	ProcRemove:      {"REMOVE", false, fresh[NameArgs], fresh[WccRes], 4 + sizeWcc},
	ProcRmdir:       {"RMDIR", false, fresh[NameArgs], fresh[WccRes], 4 + sizeWcc},
	ProcRename:      {"RENAME", false, fresh[RenameArgs], fresh[RenameRes], 4 + 2*sizeWcc},
	ProcLink:        {"LINK", false, fresh[LinkArgs], fresh[LinkRes], 4 + sizePostOp + sizeWcc},
	ProcReadDir:     {"READDIR", true, fresh[ReadDirArgs], fresh[ReadDirRes], 4 + sizePostOp},
	ProcReadDirPlus: {"READDIRPLUS", true, fresh[ReadDirPlusArgs], fresh[ReadDirPlusRes], 4 + sizePostOp},
	ProcFSStat:      {"FSSTAT", true, fresh[HandleArgs], fresh[FSStatRes], 4 + sizePostOp + 52},
	ProcFSInfo:      {"FSINFO", true, fresh[HandleArgs], fresh[FSInfoRes], 4 + sizePostOp + 48},
	ProcPathConf:    {"PATHCONF", true, fresh[HandleArgs], fresh[PathConfRes], 4 + sizePostOp + 24},
	ProcCommit:      {"COMMIT", true, fresh[CommitArgs], fresh[CommitRes], 4 + sizeWcc + sizeVerifier},
}

// String returns the RFC's name, such as "READDIRPLUS".
func (p Proc) String() string {
	if p < Procs {
		return procedures[p].name
	}
	return fmt.Sprintf("procedure %d", uint32(p))
}

// Idempotent reports whether a server that gets a call twice may carry it out twice (RFC
// 1813 §4.5).
func (p Proc) Idempotent() bool { return p < Procs && procedures[p].idempotent }

// Args returns arguments of the procedure to decode into, or nil if there is none.
func (p Proc) Args() Codec {
	if p < Procs {
		return procedures[p].args()
	}
	return nil
}

// Results returns results of the procedure to decode into, or nil if there is none.
func (p Proc) Results() Codec {
	if p < Procs {
		return procedures[p].res()
	}
	return nil
}

// MaxReply returns how many bytes the results of a call with these arguments have at
// most, without the header of the reply and without the data of READ and of READLINK:
// who has no other place for these adds them, filled up to a multiple of four (RFC 8267
// §4.1).
func (p Proc) MaxReply(args Codec) int {
	if p >= Procs {
		return 0
	}
	most := procedures[p].most
	switch a := args.(type) {
	case *ReadDirArgs:
		most = max(most, 4+int(min(a.Count, MaxData)))
	case *ReadDirPlusArgs:
		most = max(most, 4+int(min(a.MaxCount, MaxData)))
	}
	return most
}

// A Result is the results of any procedure but NULL.
type Result interface {
	Codec
	Stat() *Status // the one in the results
}

// Stat returns the status in the results.
func (r *GetAttrRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *WccRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *LookupRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *AccessRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *ReadLinkRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *ReadRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *WriteRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *NewRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *RenameRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *LinkRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *ReadDirRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *ReadDirPlusRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *FSStatRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *FSInfoRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *PathConfRes) Stat() *Status { return &r.Status }

// Stat returns the status in the results.
func (r *CommitRes) Stat() *Status { return &r.Status }
