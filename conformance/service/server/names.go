package server

import (
	"fmt"
	"slices"
	"strings"

	"urnic/conformance/service"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
)

// A named is a value with its name in the protocol.
type named[T any] struct {
	name  string
	value T
}

var rights = []named[rnic.Access]{
	{service.LocalWrite, rnic.LocalWrite},
	{service.RemoteRead, rnic.RemoteRead},
	{service.RemoteWrite, rnic.RemoteWrite},
	{service.RemoteAtomic, rnic.RemoteAtomic},
	{service.BindWindow, rnic.BindWindow},
	{service.RemoteInvalidate, rnic.RemoteInvalidate},
}

var rtrs = []named[mpa.RTR]{{"send", mpa.RTRSend}, {"write", mpa.RTRWrite}, {"read", mpa.RTRRead}}

var policies = []named[mpa.CRCPolicy]{{"prefer", mpa.CRCPrefer}, {"require", mpa.CRCRequire}, {"off", mpa.CRCOff}}

// A posting is the work request of a Post's operation.
type posting struct {
	op    rnic.Opcode
	flags rnic.Flags
}

var postings = []named[posting]{
	{service.OpSend, posting{op: rnic.OpSend}},
	{service.OpSendSE, posting{rnic.OpSend, rnic.FlagSolicited}},
	{service.OpSendInvalidate, posting{op: rnic.OpSendInvalidate}},
	{service.OpSendSEInvalidate, posting{rnic.OpSendInvalidate, rnic.FlagSolicited}},
	{service.OpWrite, posting{op: rnic.OpWrite}},
	{service.OpRead, posting{op: rnic.OpRead}},
	{service.OpReadInvalidate, posting{op: rnic.OpReadInvalidate}},
	{service.OpFetchAdd, posting{op: rnic.OpFetchAdd}},
	{service.OpCmpSwap, posting{op: rnic.OpCmpSwap}},
	{service.OpImmediate, posting{op: rnic.OpImmediate}},
	{service.OpImmediateSE, posting{rnic.OpImmediate, rnic.FlagSolicited}},
	{service.OpWriteImmediate, posting{op: rnic.OpWriteImmediate}},
	{service.OpWriteImmediateSE, posting{rnic.OpWriteImmediate, rnic.FlagSolicited}},
}

var opcodes = map[rnic.Opcode]string{
	rnic.OpSend: service.OpSend, rnic.OpSendInvalidate: service.OpSendInvalidate, rnic.OpWrite: service.OpWrite, rnic.OpWriteImmediate: service.OpWriteImmediate,
	rnic.OpRead: service.OpRead, rnic.OpReadInvalidate: service.OpReadInvalidate, rnic.OpImmediate: service.OpImmediate,
	rnic.OpFetchAdd: service.OpFetchAdd, rnic.OpCmpSwap: service.OpCmpSwap, rnic.OpLocalInvalidate: service.OpInvalidate,
	rnic.OpFastRegister: service.OpFastRegister, rnic.OpBindWindow: service.OpBind,
	rnic.OpRecv: service.OpRecv, rnic.OpRecvImmediate: service.OpRecvImmediate,
}

var statuses = map[rnic.Status]string{
	rnic.StatusSuccess: service.StatusSuccess, rnic.StatusFlushed: service.StatusFlushed, rnic.StatusLocalProtection: service.StatusLocalProtection,
	rnic.StatusBadSTag: service.StatusBadSTag, rnic.StatusInvalidateFailed: service.StatusInvalidateFailed,
	rnic.StatusRegisterFailed: service.StatusRegisterFailed, rnic.StatusBindFailed: service.StatusBindFailed,
	rnic.StatusNoReadResources: service.StatusNoReadResources, rnic.StatusRemoteTermination: service.StatusRemoteTermination,
}

var states = map[rnic.State]string{
	rnic.Idle: service.StateIdle, rnic.RTS: service.StateRTS, rnic.Closing: service.StateClosing, rnic.Terminating: service.StateTerminating, rnic.Error: service.StateError,
}

var events = map[rnic.EventType]string{
	rnic.EventCloseComplete: service.EventClosed, rnic.EventTerminateReceived: service.EventTerminated, rnic.EventLost: service.EventLost,
	rnic.EventBadClose: service.EventBadClose, rnic.EventBadLLPClose: service.EventBadLLPClose, rnic.EventIntegrity: service.EventIntegrity,
	rnic.EventRemoteOperation: service.EventRemoteOperation, rnic.EventProtection: service.EventProtection, rnic.EventCatastrophic: service.EventCatastrophic,
	rnic.EventCQOverflow: service.EventCQOverflow, rnic.EventSRQLimit: service.EventSRQLimit, rnic.EventSRQShare: service.EventSRQShare,
}

// names returns the names in a table.
func names[T any](table []named[T]) []string {
	s := make([]string, len(table))
	for i, n := range table {
		s[i] = n.name
	}
	return s
}

// lookUp returns the value of a name.
func lookUp[T any](what string, table []named[T], name string) (v T, err error) {
	i := slices.IndexFunc(table, func(n named[T]) bool { return n.name == name })
	if i < 0 {
		return v, bad("%s %q: say one of %s", what, service.Shorten([]byte(name)), strings.Join(names(table), ", "))
	}
	return table[i].value, nil
}

// union joins the values of names.
func union[T ~uint8](what string, table []named[T], list []string) (set T, err error) {
	for _, name := range list {
		v, err := lookUp(what, table, name)
		if err != nil {
			return 0, err
		}
		set |= v
	}
	return set, nil
}

// members returns the names of the values in a set, never nil.
func members[T ~uint8](table []named[T], set T) []string {
	list := []string{}
	for _, n := range table {
		if set&n.value != 0 {
			list = append(list, n.name)
		}
	}
	return list
}

// counts returns counters by the name of the message.
func counts(c []rdmap.Count) map[string]service.Count {
	m := make(map[string]service.Count)
	for op, n := range c {
		if n.Messages > 0 {
			m[rdmap.Opcode(op).Name()] = service.Count{Messages: n.Messages, Octets: n.Octets}
		}
	}
	return m
}

// bad returns an error about a request.
func bad(format string, args ...any) *service.Error {
	return &service.Error{Code: service.CodeRequest, Message: fmt.Sprintf(format, args...)}
}
