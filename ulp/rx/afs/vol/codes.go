package vol

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// Codes are the abort codes of the interface.
var Codes = rpc.NewCodes("vol", afs.Volumes)

const firstCode = 1492325120

// What a volume server aborts calls with, besides afs.Volumes.
var (
	ErrEndTransaction   = Codes.Define(firstCode, "VOLSERTRELE_ERROR", "the transaction can't be ended")
	ErrNoOperation      = Codes.Define(firstCode+1, "VOLSERNO_OP", "no such operation")
	ErrReadDump         = Codes.Define(firstCode+2, "VOLSERREAD_DUMPERROR", "the dump can't be read")
	ErrDump             = Codes.Define(firstCode+3, "VOLSERDUMPERROR", "the volume can't be dumped")
	ErrAttach           = Codes.Define(firstCode+4, "VOLSERATTACH_ERROR", "the volume can't be attached")
	ErrIllegalPartition = Codes.Define(firstCode+5, "VOLSERILLEGAL_PARTITION", "no such partition")
	ErrDetach           = Codes.Define(firstCode+6, "VOLSERDETACH_ERROR", "the volume can't be detached")
	ErrAccess           = Codes.Define(firstCode+7, "VOLSERBAD_ACCESS", "permission denied")
	ErrLocation         = Codes.Define(firstCode+8, "VOLSERVLDB_ERROR", "the volume location database failed")
	ErrBadName          = Codes.Define(firstCode+9, "VOLSERBADNAME", "the volume name is malformed")
	ErrVolumeMoved      = Codes.Define(firstCode+10, "VOLSERVOLMOVED", "the volume has moved")
	ErrBadOperation     = Codes.Define(firstCode+11, "VOLSERBADOP", "not possible with this volume")
	ErrBadRelease       = Codes.Define(firstCode+12, "VOLSERBADRELEASE", "the volume was not released")
	ErrVolumeBusy       = Codes.Define(firstCode+13, "VOLSERVOLBUSY", "the volume has a transaction")
	ErrMemory           = Codes.Define(firstCode+14, "VOLSERNO_MEMORY", "the server has no memory for that")
	ErrNoSuchVolume     = Codes.Define(firstCode+15, "VOLSERNOVOL", "the transaction has no such volume")
	ErrReadWriteTwice   = Codes.Define(firstCode+16, "VOLSERMULTIRWVOL", "there are several read-write volumes")
	ErrFailed           = Codes.Define(firstCode+17, "VOLSERFAILEDOP", "the operation failed")
)
