package ubik

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// Codes are the abort codes of a replicated database.
var Codes = rpc.NewCodes("ubik", afs.System)

const firstCode = 5376

// What the server of a replicated database aborts calls with.
var (
	ErrNoQuorum      = Codes.Define(firstCode, "UNOQUORUM", "no sync site is elected; try again")
	ErrNotSyncSite   = Codes.Define(firstCode+1, "UNOTSYNC", "not the sync site; ask another server")
	ErrTooManyHosts  = Codes.Define(firstCode+2, "UNHOSTS", "too many hosts")
	ErrIO            = Codes.Define(firstCode+3, "UIOERROR", "the database or its log can't be written")
	ErrInternal      = Codes.Define(firstCode+4, "UINTERNAL", "internal error")
	ErrSync          = Codes.Define(firstCode+5, "USYNC", "the servers are out of step")
	ErrNoFile        = Codes.Define(firstCode+6, "UNOENT", "a file of the database is missing")
	ErrBadLock       = Codes.Define(firstCode+7, "UBADLOCK", "a lock has a range that is not 1")
	ErrBadLog        = Codes.Define(firstCode+8, "UBADLOG", "the log can't be read")
	ErrBadHost       = Codes.Define(firstCode+9, "UBADHOST", "a host name makes no sense")
	ErrBadType       = Codes.Define(firstCode+10, "UBADTYPE", "not allowed in this type of transaction")
	ErrTwoEnds       = Codes.Define(firstCode+11, "UTWOENDS", "the transaction was ended twice")
	ErrDone          = Codes.Define(firstCode+12, "UDONE", "the transaction has ended")
	ErrNoServers     = Codes.Define(firstCode+13, "UNOSERVERS", "no server answers")
	ErrEOF           = Codes.Define(firstCode+14, "UEOF", "the database is too short")
	ErrLogIO         = Codes.Define(firstCode+15, "ULOGIO", "the log can't be written")
	ErrDeadlock      = Codes.Define(firstCode+26, "UDEADLOCK", "ended to prevent a deadlock")
	ErrReinitialized = Codes.Define(firstCode+35, "UREINITIALIZE", "not initialized yet")
)
