package bos

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// Codes are the abort codes of the interface.
var Codes = rpc.NewCodes("bos", afs.System)

const firstCode = 39424

// What an overseer aborts calls with.
var (
	ErrNotActive = Codes.Define(firstCode, "BZNOTACTIVE", "the process is not active")
	ErrNoEntry   = Codes.Define(firstCode+1, "BZNOENT", "no such process")
	ErrBusy      = Codes.Define(firstCode+2, "BZBUSY", "not possible now")
	ErrExists    = Codes.Define(firstCode+3, "BZEXISTS", "the process exists")
	ErrNotMade   = Codes.Define(firstCode+4, "BZNOCREATE", "the process can't be created")
	ErrRange     = Codes.Define(firstCode+5, "BZDOM", "the index is behind the last")
	ErrAccess    = Codes.Define(firstCode+6, "BZACCESS", "permission denied")
	ErrSyntax    = Codes.Define(firstCode+7, "BZSYNTAX", "the parameters make no sense")
	ErrIO        = Codes.Define(firstCode+8, "BZIO", "a file can't be read or written")
	ErrNetwork   = Codes.Define(firstCode+9, "BZNET", "the network failed")
	ErrBadType   = Codes.Define(firstCode+10, "BZBADTYPE", "no such type of process")
)
