package vol

import "urnic/ulp/rx/rpc"

const maxListed = 24 << 20 // bytes of a list of volumes

// The operations. Those that copy volumes between servers (103, 128), and those that no tool
// uses (110, 111), are missing.
var (
	opCreate         = rpc.NewOp[CreateArgs, Created](100, "CreateVolume")
	opDelete         = rpc.NewOp[rpc.Int32, rpc.Void](101, "DeleteVolume")
	opRestore        = rpc.NewOp[RestoreArgs, rpc.Void](102, "Restore")
	opEnd            = rpc.NewOp[rpc.Int32, rpc.Int32](104, "EndTrans")
	opClone          = rpc.NewOp[CloneArgs, rpc.Uint32](105, "Clone")
	opSetFlags       = rpc.NewOp[Numbered, rpc.Void](106, "SetFlags")
	opGetFlags       = rpc.NewOp[rpc.Int32, rpc.Int32](107, "GetFlags")
	opBegin          = rpc.NewOp[BeginArgs, rpc.Int32](108, "TransCreate")
	opDump           = rpc.NewOp[Numbered, rpc.Void](109, "Dump")
	opName           = rpc.NewOp[rpc.Int32, String](112, "GetName")
	opStatus         = rpc.NewOp[rpc.Int32, Status](113, "GetStatus")
	opSignal         = rpc.NewOp[SignalArgs, rpc.Void](114, "SignalRestore")
	opPartitionsOld  = rpc.NewOp[rpc.Void, OldPartitions](115, "ListPartitions")
	opList           = rpc.NewOp[Place, Infos](116, "ListVolumes").Limits(100, maxListed)
	opSetIDs         = rpc.NewOp[IDsArgs, rpc.Void](117, "SetIdsTypes")
	opMonitor        = rpc.NewOp[rpc.Void, TransactionInfos](118, "Monitor")
	opPartitionOld   = rpc.NewOp[String, OldPartition](119, "PartitionInfo")
	opReClone        = rpc.NewOp[Numbered, rpc.Void](120, "ReClone")
	opListOne        = rpc.NewOp[Place, Infos](121, "ListOneVolume")
	opNuke           = rpc.NewOp[Place, rpc.Void](122, "NukeVolume")
	opSetDate        = rpc.NewOp[Numbered, rpc.Void](123, "SetDate")
	opListX          = rpc.NewOp[Place, XInfos](124, "XListVolumes").Limits(100, maxListed)
	opListOneX       = rpc.NewOp[Place, XInfos](125, "XListOneVolume")
	opSetInfo        = rpc.NewOp[InfoArgs, rpc.Void](126, "SetInfo")
	opPartitions     = rpc.NewOp[rpc.Void, Partitions](127, "XListPartitions")
	opSize           = rpc.NewOp[Numbered, Size](65537, "GetSize")
	opPartition      = rpc.NewOp[String, Partition](65539, "PartitionInfo64")
	withDataBehindIt = []string{opRestore.Name, opDump.Name}
)

// Operations describes the operations.
func Operations() []rpc.Description {
	return rpc.Describe(opCreate, opDelete, opRestore, opEnd, opClone, opSetFlags, opGetFlags, opBegin, opDump, opName, opStatus, opSignal,
		opPartitionsOld, opList, opSetIDs, opMonitor, opPartitionOld, opReClone, opListOne, opNuke, opSetDate, opListX, opListOneX, opSetInfo,
		opPartitions, opSize, opPartition)
}

// Split are the names of the operations with data behind their arguments or before their results.
func Split() []string { return withDataBehindIt }
