package fs

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// The operations. Those of translators to DFS (161, 163) and of hierarchical storage (220), and
// those that no client uses any more, are missing.
var (
	opFetchOld     = rpc.NewOp[OldFetchArgs, Promised](130, "FetchData")
	opFetchACL     = rpc.NewOp[afs.FID, ACL](131, "FetchACL")
	opStatus       = rpc.NewOp[afs.FID, Promised](132, "FetchStatus")
	opStoreOld     = rpc.NewOp[OldStoreArgs, Changed](133, "StoreData")
	opStoreStatus  = rpc.NewOp[StatusArgs, Changed](135, "StoreStatus")
	opRemove       = rpc.NewOp[NameArgs, Changed](136, "RemoveFile")
	opCreate       = rpc.NewOp[CreateArgs, Created](137, "CreateFile")
	opRename       = rpc.NewOp[RenameArgs, Two](138, "Rename")
	opSymlink      = rpc.NewOp[SymlinkArgs, Made](139, "Symlink")
	opLink         = rpc.NewOp[LinkArgs, Two](140, "Link")
	opMakeDir      = rpc.NewOp[CreateArgs, Created](141, "MakeDir")
	opRemoveDir    = rpc.NewOp[NameArgs, Changed](142, "RemoveDir")
	opViceStats    = rpc.NewOp[rpc.Void, Statistics](146, "GetStatistics")
	opGiveUp       = rpc.NewOp[afs.Callbacks, rpc.Void](147, "GiveUpCallBacks")
	opVolumeStatus = rpc.NewOp[rpc.Uint32, VolumeStatus](149, "GetVolumeStatus")
	opRootVolume   = rpc.NewOp[rpc.Void, String](151, "GetRootVolume")
	opTime         = rpc.NewOp[rpc.Void, Clock](153, "GetTime")
	opBulk         = rpc.NewOp[FIDs, Statuses](155, "BulkStatus")
	opSetLock      = rpc.NewOp[LockArgs, Sync](156, "SetLock")
	opExtendLock   = rpc.NewOp[afs.FID, Sync](157, "ExtendLock")
	opReleaseLock  = rpc.NewOp[afs.FID, Sync](158, "ReleaseLock")
	opXVersion     = rpc.NewOp[rpc.Void, rpc.Int32](159, "XStatsVersion")
	opXStats       = rpc.NewOp[afs.XStatsArgs, afs.XStats](160, "GetXStats")
	opInlineBulk   = rpc.NewOp[FIDs, Statuses](65536, "InlineBulkStatus")
	opFetch        = rpc.NewOp[FetchArgs, Promised](65537, "FetchData64")
	opStore        = rpc.NewOp[StoreArgs, Changed](65538, "StoreData64")
	opGiveUpAll    = rpc.NewOp[rpc.Void, rpc.Void](65539, "GiveUpAllCallBacks")
	opCapabilities = rpc.NewOp[rpc.Void, afs.Capabilities](65540, "GetCapabilities")
	opStatistics   = rpc.NewOp[rpc.Int32, Counters](65542, "GetStatistics64")
)

// Operations describes the operations. The replies of FetchData and FetchData64 have data in
// front of the results.
func Operations() []rpc.Description {
	return rpc.Describe(opFetchOld, opFetchACL, opStatus, opStoreOld, opStoreStatus, opRemove, opCreate, opRename, opSymlink, opLink, opMakeDir,
		opRemoveDir, opViceStats, opGiveUp, opVolumeStatus, opRootVolume, opTime, opBulk, opSetLock, opExtendLock, opReleaseLock, opXVersion, opXStats,
		opInlineBulk, opFetch, opStore, opGiveUpAll, opCapabilities, opStatistics)
}

// Split are the names of the operations with data behind their arguments or before their results.
func Split() []string { return []string{opFetchOld.Name, opFetch.Name, opStoreOld.Name, opStore.Name} }
