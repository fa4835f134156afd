package vl

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

const maxListed = 16 << 20 // bytes of entries in one answer

// The operations. Linked lists (512, 523) and updates of single fields (507, 524), which no
// tool uses, are missing.
var (
	opCreateOld      = rpc.NewOp[OldEntry, rpc.Void](501, "CreateEntry")
	opDelete         = rpc.NewOp[Volume, rpc.Void](502, "DeleteEntry")
	opByIDOld        = rpc.NewOp[Volume, OldEntry](503, "GetEntryByID")
	opByNameOld      = rpc.NewOp[Name, OldEntry](504, "GetEntryByName")
	opNewID          = rpc.NewOp[rpc.Uint32, rpc.Uint32](505, "GetNewVolumeId")
	opReplaceOld     = rpc.NewOp[OldReplaceArgs, rpc.Void](506, "ReplaceEntry")
	opLock           = rpc.NewOp[LockArgs, rpc.Void](508, "SetLock")
	opUnlock         = rpc.NewOp[LockArgs, rpc.Void](509, "ReleaseLock")
	opListEntryOld   = rpc.NewOp[rpc.Int32, OldNextEntry](510, "ListEntry")
	opListOld        = rpc.NewOp[Attributes, OldListedEntries](511, "ListAttributes").Limits(100, maxListed)
	opStats          = rpc.NewOp[rpc.Void, Stats](513, "GetStats")
	opProbe          = rpc.NewOp[rpc.Void, rpc.Void](514, "ProbeServer")
	opAddrs          = rpc.NewOp[AddrsArgs, Addrs](515, "GetAddrs")
	opChangeAddr     = rpc.NewOp[AddrChange, rpc.Void](516, "ChangeAddr")
	opCreate         = rpc.NewOp[Entry, rpc.Void](517, "CreateEntryN")
	opByID           = rpc.NewOp[Volume, Entry](518, "GetEntryByIDN")
	opByName         = rpc.NewOp[Name, Entry](519, "GetEntryByNameN")
	opReplace        = rpc.NewOp[ReplaceArgs, rpc.Void](520, "ReplaceEntryN")
	opListEntry      = rpc.NewOp[rpc.Int32, NextEntry](521, "ListEntryN")
	opListN          = rpc.NewOp[Attributes, ListedEntries](522, "ListAttributesN").Limits(100, maxListed)
	opByIDU          = rpc.NewOp[Volume, UEntry](526, "GetEntryByIDU")
	opByNameU        = rpc.NewOp[Name, UEntry](527, "GetEntryByNameU")
	opRegister       = rpc.NewOp[Registration, rpc.Void](532, "RegisterAddrs")
	opAddrsU         = rpc.NewOp[ServerKey, Server](533, "GetAddrsU")
	opListAttributes = rpc.NewOp[ListArgs, PartOfEntries](534, "ListAttributesN2").Limits(200, maxListed)
)

// opCapabilities is AuriStor's. Linux's kAFS begins with it. OpenAFS aborts it, which kAFS takes for
// an answer, but Linux 6.1 crashes if that comes while the call is still being sent. So there
// are no capabilities here, and no abort.
var opCapabilities = rpc.NewOp[rpc.Void, afs.Capabilities](65537, "GetCapabilities")

// Operations describes the operations.
func Operations() []rpc.Description {
	return rpc.Describe(opCreateOld, opDelete, opByIDOld, opByNameOld, opNewID, opReplaceOld, opLock, opUnlock, opListEntryOld, opListOld,
		opStats, opProbe, opAddrs, opChangeAddr, opCreate, opByID, opByName, opReplace, opListEntry, opListN, opByIDU, opByNameU,
		opRegister, opAddrsU, opListAttributes)
}
