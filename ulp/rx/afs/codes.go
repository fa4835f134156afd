package afs

import "urnic/ulp/rx/rpc"

// System are the codes that are Unix error numbers. Any server may send them.
var System = rpc.NewCodes("unix")

// Unix error numbers that servers here send.
var (
	ErrNotPermitted = System.Define(1, "EPERM", "not permitted")
	ErrNoEntry      = System.Define(2, "ENOENT", "no such file, transaction or entry")
	ErrIO           = System.Define(5, "EIO", "input or output failed")
	ErrTooBig       = System.Define(7, "E2BIG", "a missing or oversized argument")
	ErrAccess       = System.Define(13, "EACCES", "access is denied")
	ErrExists       = System.Define(17, "EEXIST", "it exists")
	ErrCrossDevice  = System.Define(18, "EXDEV", "on another volume")
	ErrNoDevice     = System.Define(19, "ENODEV", "no such volume or device")
	ErrNotDirectory = System.Define(20, "ENOTDIR", "not a directory")
	ErrIsDirectory  = System.Define(21, "EISDIR", "a directory")
	ErrInvalid      = System.Define(22, "EINVAL", "an invalid argument")
	ErrReadOnly     = System.Define(30, "EROFS", "read-only")
)

// Volumes are the codes that say what is wrong with a volume.
var Volumes = rpc.NewCodes("volume", System)

// What can be wrong with a volume.
var (
	ErrSalvage      = Volumes.Define(101, "VSALVAGE", "the volume must be salvaged")
	ErrNoVnode      = Volumes.Define(102, "VNOVNODE", "the volume has no such file")
	ErrNoVolume     = Volumes.Define(103, "VNOVOL", "no such volume here")
	ErrVolumeExists = Volumes.Define(104, "VVOLEXISTS", "the volume exists")
	ErrNoService    = Volumes.Define(105, "VNOSERVICE", "the volume is out of service")
	ErrOffline      = Volumes.Define(106, "VOFFLINE", "the volume is off-line")
	ErrOnline       = Volumes.Define(107, "VONLINE", "the volume is on-line")
	ErrDiskFull     = Volumes.Define(108, "VDISKFULL", "the partition is full")
	ErrOverQuota    = Volumes.Define(109, "VOVERQUOTA", "the volume's quota is used up")
	ErrBusy         = Volumes.Define(110, "VBUSY", "the volume is busy; try again")
	ErrMoved        = Volumes.Define(111, "VMOVED", "the volume has moved; ask the location server")
)
