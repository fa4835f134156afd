package afs

import (
	"context"

	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/secure"
)

// UDP ports of AFS servers.
const (
	PortFile     = 7000
	PortCallback = 7001
	PortPT       = 7002
	PortVL       = 7003
	PortVolume   = 7005
	PortBos      = 7007
)

// Service IDs. A port's services are distinguished by them.
const (
	ServiceFile     uint16 = 1
	ServiceCallback uint16 = 1
	ServiceBos      uint16 = 1
	ServiceVolume   uint16 = 4
	ServiceUbikVote uint16 = 50
	ServiceUbikDisk uint16 = 51
	ServiceVL       uint16 = 52
	ServicePT       uint16 = 73
	ServiceRxStats  uint16 = 409
)

// An Admin says who may change what a server holds.
type Admin func(secure.Caller) bool

// Anybody may do everything: for tests, and for servers that nobody else can reach.
func Anybody(secure.Caller) bool { return true }

// Allows reports whether the caller of a handler's call may change things. Nobody may if a is
// nil.
func (a Admin) Allows(ctx context.Context) bool { return a != nil && a(rpc.Caller(ctx)) }
