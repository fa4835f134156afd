package bos

import "urnic/ulp/rx/rpc"

// The operations. Those that change keys or the cell, that install files, run commands or
// restart the overseer are missing.
var (
	opCreate     = rpc.NewOp[CreateArgs, rpc.Void](80, "CreateBnode")
	opDelete     = rpc.NewOp[String, rpc.Void](81, "DeleteBnode")
	opSet        = rpc.NewOp[Named, rpc.Void](82, "SetStatus")
	opState      = rpc.NewOp[String, State](83, "GetStatus")
	opEnumerate  = rpc.NewOp[rpc.Int32, String](84, "EnumerateInstance")
	opInfo       = rpc.NewOp[String, Info](85, "GetInstanceInfo")
	opParameter  = rpc.NewOp[Named, String](86, "GetInstanceParm")
	opAddUser    = rpc.NewOp[String, rpc.Void](87, "AddSUser")
	opDeleteUser = rpc.NewOp[String, rpc.Void](88, "DeleteSUser")
	opUser       = rpc.NewOp[rpc.Int32, String](89, "ListSUsers")
	opKey        = rpc.NewOp[rpc.Int32, Key](90, "ListKeys")
	opCell       = rpc.NewOp[rpc.Void, String](94, "GetCellName")
	opHost       = rpc.NewOp[rpc.Uint32, String](95, "GetCellHost")
	opSetNow     = rpc.NewOp[Named, rpc.Void](98, "SetTStatus")
	opDates      = rpc.NewOp[String, Dates](107, "GetDates")
	opRestart    = rpc.NewOp[rpc.Int32, RestartTime](111, "GetRestartTime")
	opStrings    = rpc.NewOp[String, Strings](114, "GetInstanceStrings")
	opRestricted = rpc.NewOp[rpc.Void, rpc.Int32](115, "GetRestrictedMode")
)

// Operations describes the operations.
func Operations() []rpc.Description {
	return rpc.Describe(opCreate, opDelete, opSet, opState, opEnumerate, opInfo, opParameter, opAddUser, opDeleteUser, opUser, opKey, opCell,
		opHost, opSetNow, opDates, opRestart, opStrings, opRestricted)
}
