package service

import (
	"fmt"
	"slices"
	"strings"

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
	{LocalWrite, rnic.LocalWrite},
	{RemoteRead, rnic.RemoteRead},
	{RemoteWrite, rnic.RemoteWrite},
	{RemoteAtomic, rnic.RemoteAtomic},
	{BindWindow, rnic.BindWindow},
	{RemoteInvalidate, rnic.RemoteInvalidate},
}

var rtrs = []named[mpa.RTR]{{"send", mpa.RTRSend}, {"write", mpa.RTRWrite}, {"read", mpa.RTRRead}}

var policies = []named[mpa.CRCPolicy]{{"prefer", mpa.CRCPrefer}, {"require", mpa.CRCRequire}, {"off", mpa.CRCOff}}

// A posting is what a Post's operation comes to.
type posting struct {
	op    rnic.Opcode
	flags rnic.Flags
}

var postings = []named[posting]{
	{OpSend, posting{op: rnic.OpSend}},
	{OpSendSE, posting{rnic.OpSend, rnic.FlagSolicited}},
	{OpSendInvalidate, posting{op: rnic.OpSendInvalidate}},
	{OpSendSEInvalidate, posting{rnic.OpSendInvalidate, rnic.FlagSolicited}},
	{OpWrite, posting{op: rnic.OpWrite}},
	{OpRead, posting{op: rnic.OpRead}},
	{OpReadInvalidate, posting{op: rnic.OpReadInvalidate}},
	{OpFetchAdd, posting{op: rnic.OpFetchAdd}},
	{OpCmpSwap, posting{op: rnic.OpCmpSwap}},
	{OpImmediate, posting{op: rnic.OpImmediate}},
	{OpImmediateSE, posting{rnic.OpImmediate, rnic.FlagSolicited}},
	{OpWriteImmediate, posting{op: rnic.OpWriteImmediate}},
	{OpWriteImmediateSE, posting{rnic.OpWriteImmediate, rnic.FlagSolicited}},
}

var opcodes = map[rnic.Opcode]string{
	rnic.OpSend: OpSend, rnic.OpSendInvalidate: OpSendInvalidate, rnic.OpWrite: OpWrite, rnic.OpWriteImmediate: OpWriteImmediate,
	rnic.OpRead: OpRead, rnic.OpReadInvalidate: OpReadInvalidate, rnic.OpImmediate: OpImmediate,
	rnic.OpFetchAdd: OpFetchAdd, rnic.OpCmpSwap: OpCmpSwap, rnic.OpLocalInvalidate: OpInvalidate,
	rnic.OpFastRegister: OpFastRegister, rnic.OpBindWindow: OpBind,
	rnic.OpRecv: OpRecv, rnic.OpRecvImmediate: OpRecvImmediate,
}

var statuses = map[rnic.Status]string{
	rnic.StatusSuccess: StatusSuccess, rnic.StatusFlushed: StatusFlushed, rnic.StatusLocalProtection: StatusLocalProtection,
	rnic.StatusBadSTag: StatusBadSTag, rnic.StatusInvalidateFailed: StatusInvalidateFailed,
	rnic.StatusRegisterFailed: StatusRegisterFailed, rnic.StatusBindFailed: StatusBindFailed,
	rnic.StatusNoReadResources: StatusNoReadResources, rnic.StatusRemoteTermination: StatusRemoteTermination,
}

var states = map[rnic.State]string{
	rnic.Idle: StateIdle, rnic.RTS: StateRTS, rnic.Closing: StateClosing, rnic.Terminating: StateTerminating, rnic.Error: StateError,
}

var events = map[rnic.EventType]string{
	rnic.EventCloseComplete: EventClosed, rnic.EventTerminateReceived: EventTerminated, rnic.EventLost: EventLost,
	rnic.EventBadClose: EventBadClose, rnic.EventBadLLPClose: EventBadLLPClose, rnic.EventIntegrity: EventIntegrity,
	rnic.EventRemoteOperation: EventRemoteOperation, rnic.EventProtection: EventProtection, rnic.EventCatastrophic: EventCatastrophic,
	rnic.EventCQOverflow: EventCQOverflow, rnic.EventSRQLimit: EventSRQLimit, rnic.EventSRQShare: EventSRQShare,
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
		return v, bad("%s %q: say one of %s", what, shorten([]byte(name)), strings.Join(names(table), ", "))
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
func counts(c []rdmap.Count) map[string]Count {
	m := make(map[string]Count)
	for op, n := range c {
		if n.Messages > 0 {
			m[rdmap.Opcode(op).Name()] = Count{Messages: n.Messages, Octets: n.Octets}
		}
	}
	return m
}

// bad returns an error about a request.
func bad(format string, args ...any) *Error {
	return &Error{Code: CodeRequest, Message: fmt.Sprintf(format, args...)}
}
