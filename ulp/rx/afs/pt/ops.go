package pt

import "urnic/ulp/rx/rpc"

const maxNames = 4 + 10000*textLen // bytes of names at once

// The operations. Those that no tool uses are missing: WhereIsIt (501), DumpEntry (502) and
// UpdateEntry (520).
var (
	opCreate          = rpc.NewOp[CreateArgs, rpc.Void](500, "INewEntry")
	opAddToGroup      = rpc.NewOp[Pair, rpc.Void](503, "AddToGroup")
	opNamesToIDs      = rpc.NewOp[Names, IDs](504, "NameToID").Limits(maxNames, 4+4*MaxList)
	opIDsToNames      = rpc.NewOp[IDs, Names](505, "IDToName").Limits(4+4*10000, maxNames)
	opDelete          = rpc.NewOp[rpc.Int32, rpc.Void](506, "Delete")
	opRemoveFromGroup = rpc.NewOp[Pair, rpc.Void](507, "RemoveFromGroup")
	opGetCPS          = rpc.NewOp[rpc.Int32, List](508, "GetCPS")
	opNew             = rpc.NewOp[NewArgs, rpc.Int32](509, "NewEntry")
	opListMax         = rpc.NewOp[rpc.Void, Maxima](510, "ListMax")
	opSetMax          = rpc.NewOp[SetMaxArgs, rpc.Void](511, "SetMax")
	opListEntry       = rpc.NewOp[rpc.Int32, Entry](512, "ListEntry")
	opChange          = rpc.NewOp[ChangeArgs, rpc.Void](513, "ChangeEntry")
	opListElements    = rpc.NewOp[rpc.Int32, List](514, "ListElements")
	opIsMember        = rpc.NewOp[Pair, rpc.Int32](515, "IsAMemberOf")
	opSetFields       = rpc.NewOp[FieldsArgs, rpc.Void](516, "SetFieldsEntry")
	opListOwned       = rpc.NewOp[OwnedArgs, List](517, "ListOwned")
	opGetCPS2         = rpc.NewOp[HostArgs, List](518, "GetCPS2")
	opGetHostCPS      = rpc.NewOp[rpc.Uint32, List](519, "GetHostCPS")
	opListEntries     = rpc.NewOp[EntriesArgs, Entries](521, "ListEntries")
	opListSuperGroups = rpc.NewOp[rpc.Int32, List](530, "ListSuperGroups")
)

// Operations describes the operations.
func Operations() []rpc.Description {
	return rpc.Describe(opCreate, opAddToGroup, opNamesToIDs, opIDsToNames, opDelete, opRemoveFromGroup, opGetCPS, opNew, opListMax,
		opSetMax, opListEntry, opChange, opListElements, opIsMember, opSetFields, opListOwned, opGetCPS2, opGetHostCPS, opListEntries,
		opListSuperGroups)
}
