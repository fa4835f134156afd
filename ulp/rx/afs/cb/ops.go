package cb

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// The operations. Those that look at a client's locks and cached files (207, 208, 65536) are
// missing.
var (
	opCallBack     = rpc.NewOp[afs.Callbacks, rpc.Void](204, "CallBack")
	opInit         = rpc.NewOp[rpc.Void, rpc.Void](205, "InitCallBackState")
	opProbe        = rpc.NewOp[rpc.Void, rpc.Void](206, "Probe")
	opXVersion     = rpc.NewOp[rpc.Void, rpc.Int32](209, "XStatsVersion")
	opXStats       = rpc.NewOp[afs.XStatsArgs, afs.XStats](210, "GetXStats")
	opInit2        = rpc.NewOp[rpc.Void, Identity](211, "InitCallBackState2")
	opWho          = rpc.NewOp[rpc.Void, Identity](212, "WhoAreYou")
	opInit3        = rpc.NewOp[afs.UUID, rpc.Void](213, "InitCallBackState3")
	opProbeUUID    = rpc.NewOp[afs.UUID, rpc.Void](214, "ProbeUuid")
	opPreference   = rpc.NewOp[rpc.Int32, Preference](215, "GetServerPrefs")
	opCell         = rpc.NewOp[rpc.Int32, Cell](216, "GetCellServDB")
	opLocalCell    = rpc.NewOp[rpc.Void, String](217, "GetLocalCell")
	opCacheConfig  = rpc.NewOp[rpc.Uint32, CacheConfig](218, "GetCacheConfig")
	opCellByNumber = rpc.NewOp[rpc.Int32, Cell](65537, "GetCellByNum")
	opAbout        = rpc.NewOp[rpc.Void, About](65538, "TellMeAboutYourself")
)

// Operations describes the operations.
func Operations() []rpc.Description {
	return rpc.Describe(opCallBack, opInit, opProbe, opXVersion, opXStats, opInit2, opWho, opInit3, opProbeUUID, opPreference, opCell,
		opLocalCell, opCacheConfig, opCellByNumber, opAbout)
}
