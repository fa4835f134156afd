package nfs3

import (
	"fmt"

	"urnic/ulp/oncrpc/xdr"
)

// Numbers of the MOUNT program (RFC 1813 §5.1.2), which RPC-over-RDMA does not carry (RFC
// 8267 §5.1).
const (
	MountProgram = 100005
	MountVersion = 3
)

// Bounds of the MOUNT protocol, in bytes (§5.1.4), and of lists that RFC 1813 leaves
// without one.
const (
	MaxMountPath = 1024
	MaxMountName = 255

	maxFlavors = 64
	maxListed  = 1 << 16 // mounts, exports, or groups of one
)

// A MountProc is a procedure of the MOUNT program (§5.2).
type MountProc uint32

// The procedures.
const (
	MountProcNull    MountProc = 0
	MountProcMnt     MountProc = 1
	MountProcDump    MountProc = 2
	MountProcUmnt    MountProc = 3
	MountProcUmntAll MountProc = 4
	MountProcExport  MountProc = 5

	MountProcs = 6 // how many there are
)

// UMNT of what is not mounted does nothing, and MNT again names the same file, so that
// all may be repeated.
var mountProcedures = [MountProcs]procedure{
	MountProcNull:    {"NULL", true, void, void, 0},
	MountProcMnt:     {"MNT", true, fresh[MountArgs], fresh[MountRes], 4 + sizeHandle + 4 + 4*maxFlavors},
	MountProcDump:    {"DUMP", true, void, fresh[DumpRes], maxMountReply},
	MountProcUmnt:    {"UMNT", true, fresh[MountArgs], void, 0},
	MountProcUmntAll: {"UMNTALL", true, void, void, 0},
	MountProcExport:  {"EXPORT", true, void, fresh[ExportRes], maxMountReply},
}

// maxMountReply is that of lists, whose length RFC 1813 does not say.
const maxMountReply = 1 << 20

// String returns the RFC's name, such as "UMNTALL".
func (p MountProc) String() string {
	if p < MountProcs {
		return mountProcedures[p].name
	}
	return fmt.Sprintf("procedure %d", uint32(p))
}

// Idempotent reports whether a server that gets a call twice may carry it out twice.
func (p MountProc) Idempotent() bool { return p < MountProcs && mountProcedures[p].idempotent }

// Args returns arguments of the procedure to decode into, or nil if there is none.
func (p MountProc) Args() Codec {
	if p < MountProcs {
		return mountProcedures[p].args()
	}
	return nil
}

// Results returns results of the procedure to decode into, or nil if there is none.
func (p MountProc) Results() Codec {
	if p < MountProcs {
		return mountProcedures[p].res()
	}
	return nil
}

// MaxReply returns how many bytes the results have at most that a client should be
// prepared for, without the header of the reply.
func (p MountProc) MaxReply() int {
	if p < MountProcs {
		return mountProcedures[p].most
	}
	return 0
}

// A MountStatus is the outcome of MNT, mountstat3 of §5.1.5: all but MountOK are errors.
// The numbers are those of Status.
type MountStatus Status

// The statuses.
const (
	MountOK             = MountStatus(OK)
	MountErrPerm        = MountStatus(ErrPerm)
	MountErrNoEnt       = MountStatus(ErrNoEnt)
	MountErrIO          = MountStatus(ErrIO)
	MountErrAcces       = MountStatus(ErrAcces)
	MountErrNotDir      = MountStatus(ErrNotDir)
	MountErrInval       = MountStatus(ErrInval)
	MountErrNameTooLong = MountStatus(ErrNameTooLong)
	MountErrNotSupp     = MountStatus(ErrNotSupp)
	MountErrServerFault = MountStatus(ErrServerFault)
)

var mountStatuses = map[MountStatus]struct{ name, text string }{
	MountOK:             {"MNT3_OK", "success"},
	MountErrPerm:        {"MNT3ERR_PERM", "not permitted"},
	MountErrNoEnt:       {"MNT3ERR_NOENT", "the server exports no such directory"},
	MountErrIO:          {"MNT3ERR_IO", "input or output failed on the server"},
	MountErrAcces:       {"MNT3ERR_ACCES", "the server does not allow this host or user to mount it"},
	MountErrNotDir:      {"MNT3ERR_NOTDIR", "not a directory"},
	MountErrInval:       {"MNT3ERR_INVAL", "invalid argument"},
	MountErrNameTooLong: {"MNT3ERR_NAMETOOLONG", "the path is too long"},
	MountErrNotSupp:     {"MNT3ERR_NOTSUPP", "the server can't do that"},
	MountErrServerFault: {"MNT3ERR_SERVERFAULT", "the server has failed"},
}

// String returns the RFC's name, such as "MNT3ERR_ACCES".
func (s MountStatus) String() string {
	if t, ok := mountStatuses[s]; ok {
		return t.name
	}
	return fmt.Sprintf("mountstat3 %d", uint32(s))
}

func (s MountStatus) Error() string {
	if t, ok := mountStatuses[s]; ok {
		return "mount: " + t.text + " (" + t.name + ")"
	}
	return "mount: " + s.String()
}

// Err returns the status as an error, nil for MountOK.
func (s MountStatus) Err() error {
	if s == MountOK {
		return nil
	}
	return s
}

// Is makes errors.Is find what it finds for the Status of the same number.
func (s MountStatus) Is(target error) bool { return Status(s).Is(target) }

// MountArgs are the arguments of MNT and UMNT: the path of a directory on the server.
type MountArgs struct{ Path string }

// Encode writes the arguments.
func (a *MountArgs) Encode(e *xdr.Encoder) { e.String(a.Path) }

// Decode reads the arguments.
func (a *MountArgs) Decode(d *xdr.Decoder) error {
	a.Path = d.String(MaxMountPath)
	return d.Err()
}

// MountRes are the results of MNT (§5.2.1).
type MountRes struct {
	Status  MountStatus
	Handle  Handle   // with MountOK
	Flavors []uint32 // with MountOK: of authentication, that the server accepts
}

// Encode writes the results.
func (r *MountRes) Encode(e *xdr.Encoder) {
	if e.Uint32(uint32(r.Status)); r.Status != MountOK {
		return
	}
	r.Handle.encode(e)
	e.Uint32(uint32(len(r.Flavors)))
	for _, f := range r.Flavors {
		e.Uint32(f)
	}
}

// Decode reads the results.
func (r *MountRes) Decode(d *xdr.Decoder) error {
	*r = MountRes{Status: MountStatus(d.Uint32()), Flavors: r.Flavors[:0]}
	if r.Status != MountOK {
		return d.Err()
	}
	r.Handle.decode(d)
	for range d.Count(maxFlavors, 4) {
		r.Flavors = append(r.Flavors, d.Uint32())
	}
	return d.Err()
}

// A Mount is what a server remembers of MNT: it may be long gone.
type Mount struct{ Host, Dir string }

// DumpRes are the results of DUMP (§5.2.2).
type DumpRes struct{ Mounts []Mount }

// Encode writes the results.
func (r *DumpRes) Encode(e *xdr.Encoder) {
	for _, m := range r.Mounts {
		e.Bool(true)
		e.String(m.Host)
		e.String(m.Dir)
	}
	e.Bool(false)
}

// Decode reads the results.
func (r *DumpRes) Decode(d *xdr.Decoder) error {
	r.Mounts = r.Mounts[:0]
	for another(d, len(r.Mounts)) {
		r.Mounts = append(r.Mounts, Mount{d.String(MaxMountName), d.String(MaxMountPath)})
	}
	return d.Err()
}

// An Export is a directory that a server lets be mounted, and by whom: all, if there are
// no groups.
type Export struct {
	Dir    string
	Groups []string
}

// ExportRes are the results of EXPORT (§5.2.5).
type ExportRes struct{ Exports []Export }

// Encode writes the results.
func (r *ExportRes) Encode(e *xdr.Encoder) {
	for _, x := range r.Exports {
		e.Bool(true)
		e.String(x.Dir)
		for _, g := range x.Groups {
			e.Bool(true)
			e.String(g)
		}
		e.Bool(false)
	}
	e.Bool(false)
}

// Decode reads the results.
func (r *ExportRes) Decode(d *xdr.Decoder) error {
	r.Exports = r.Exports[:0]
	for another(d, len(r.Exports)) {
		x := Export{Dir: d.String(MaxMountPath)}
		for another(d, len(x.Groups)) {
			x.Groups = append(x.Groups, d.String(MaxMountName))
		}
		r.Exports = append(r.Exports, x)
	}
	return d.Err()
}

// another reads whether a list continues behind n elements.
func another(d *xdr.Decoder, n int) bool {
	more := d.Bool()
	if more && n >= maxListed {
		d.Fail("a list", xdr.ErrLong)
		return false
	}
	return more
}
