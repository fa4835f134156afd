package vl

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/ubik"
	"urnic/ulp/rx/rpc"
)

// Codes are the abort codes of the interface.
var Codes = rpc.NewCodes("vl", ubik.Codes, afs.System)

const firstCode = 363520

// What a location server aborts calls with.
var (
	ErrIDExists        = Codes.Define(firstCode, "VL_IDEXIST", "the volume ID is taken")
	ErrIO              = Codes.Define(firstCode+1, "VL_IO", "the database can't be read or written")
	ErrNameExists      = Codes.Define(firstCode+2, "VL_NAMEEXIST", "the volume name is taken")
	ErrCreate          = Codes.Define(firstCode+3, "VL_CREATEFAIL", "the entry can't be created")
	ErrNoEntry         = Codes.Define(firstCode+4, "VL_NOENT", "no such entry")
	ErrEmpty           = Codes.Define(firstCode+5, "VL_EMPTY", "the database is empty")
	ErrDeleted         = Codes.Define(firstCode+6, "VL_ENTDELETED", "the entry is deleted")
	ErrBadName         = Codes.Define(firstCode+7, "VL_BADNAME", "the volume name is malformed")
	ErrBadIndex        = Codes.Define(firstCode+8, "VL_BADINDEX", "an index is out of range")
	ErrBadType         = Codes.Define(firstCode+9, "VL_BADVOLTYPE", "no such type of volume")
	ErrBadServer       = Codes.Define(firstCode+10, "VL_BADSERVER", "the number of servers is out of range")
	ErrBadPartition    = Codes.Define(firstCode+11, "VL_BADPARTITION", "the partition is out of range")
	ErrSitesFull       = Codes.Define(firstCode+12, "VL_REPSFULL", "no room for another site")
	ErrNoSite          = Codes.Define(firstCode+13, "VL_NOREPSERVER", "no such site")
	ErrDuplicateSite   = Codes.Define(firstCode+14, "VL_DUPREPSERVER", "the site exists")
	ErrNoReadWrite     = Codes.Define(firstCode+15, "VL_RWNOTFOUND", "the read-write volume has no entry")
	ErrBadRefCount     = Codes.Define(firstCode+16, "VL_BADREFCOUNT", "a reference count makes no sense")
	ErrSizeExceeded    = Codes.Define(firstCode+17, "VL_SIZEEXCEEDED", "too many entries for one answer")
	ErrBadEntry        = Codes.Define(firstCode+18, "VL_BADENTRY", "the entry makes no sense")
	ErrBadIncrement    = Codes.Define(firstCode+19, "VL_BADVOLIDBUMP", "the increment of volume IDs is too large")
	ErrIDHashed        = Codes.Define(firstCode+20, "VL_IDALREADYHASHED", "the volume ID is in the index already")
	ErrLocked          = Codes.Define(firstCode+21, "VL_ENTRYLOCKED", "the entry is locked")
	ErrBadOperation    = Codes.Define(firstCode+22, "VL_BADVOLOPER", "no such volume operation")
	ErrBadRelease      = Codes.Define(firstCode+23, "VL_BADRELLOCKTYPE", "no such way to unlock")
	ErrReleaseAborted  = Codes.Define(firstCode+24, "VL_RERELEASE", "the last release of the volume was not finished")
	ErrBadSiteFlags    = Codes.Define(firstCode+25, "VL_BADSERVERFLAG", "the flags of a site make no sense")
	ErrPermission      = Codes.Define(firstCode+26, "VL_PERM", "permission denied")
	ErrMemory          = Codes.Define(firstCode+27, "VL_NOMEM", "the server has no memory for that")
	ErrBadVersion      = Codes.Define(firstCode+28, "VL_BADVERSION", "the database has another version")
	ErrIndexRange      = Codes.Define(firstCode+29, "VL_INDEXERANGE", "an index is behind the last")
	ErrMultipleAddress = Codes.Define(firstCode+30, "VL_MULTIPADDR", "several servers have one address")
	ErrBadMask         = Codes.Define(firstCode+31, "VL_BADMASK", "the mask of attributes makes no sense")
	ErrBadDatabase     = Codes.Define(firstCode+32, "VL_DBBAD", "the database contradicts itself")
)
