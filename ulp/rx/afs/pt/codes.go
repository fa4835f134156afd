package pt

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/ubik"
	"urnic/ulp/rx/rpc"
)

// Codes are the abort codes of the interface.
var Codes = rpc.NewCodes("pt", ubik.Codes, afs.System)

const firstCode = 267264

// What a protection server aborts calls with.
var (
	ErrNameExists   = Codes.Define(firstCode, "PREXIST", "the name is taken")
	ErrIDExists     = Codes.Define(firstCode+1, "PRIDEXIST", "the ID is taken")
	ErrNoIDs        = Codes.Define(firstCode+2, "PRNOIDS", "no ID is left")
	ErrDatabase     = Codes.Define(firstCode+3, "PRDBFAIL", "the database can't be read or written")
	ErrNoEntry      = Codes.Define(firstCode+4, "PRNOENT", "no such user or group")
	ErrPermission   = Codes.Define(firstCode+5, "PRPERM", "permission denied")
	ErrNotGroup     = Codes.Define(firstCode+6, "PRNOTGROUP", "not a group")
	ErrNotUser      = Codes.Define(firstCode+7, "PRNOTUSER", "not a user")
	ErrBadName      = Codes.Define(firstCode+8, "PRBADNAM", "the name is malformed, or does not begin with its owner's")
	ErrBadArgument  = Codes.Define(firstCode+9, "PRBADARG", "an argument is out of range")
	ErrNoMoreGroups = Codes.Define(firstCode+10, "PRNOMORE", "the quota of groups is used up")
	ErrRebuild      = Codes.Define(firstCode+11, "PRDBBAD", "the database must be rebuilt")
	ErrGroupEmpty   = Codes.Define(firstCode+12, "PRGROUPEMPTY", "an empty group can't own another")
	ErrInconsistent = Codes.Define(firstCode+13, "PRINCONSISTENT", "the database contradicts itself")
	ErrAddress      = Codes.Define(firstCode+14, "PRDBADDR", "an address within the database is wrong")
	ErrTooMany      = Codes.Define(firstCode+15, "PRTOOMANY", "too many elements")
	ErrMemory       = Codes.Define(firstCode+16, "PRNOMEM", "the server has no memory for that")
	ErrInternal     = Codes.Define(firstCode+17, "PRINTERNAL", "the client library failed")
	ErrNameTooLong  = Codes.Define(firstCode+18, "PRNAMETOOLONG", "a name has 63 bytes at most")
)
