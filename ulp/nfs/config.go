package nfs

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"time"

	"urnic/rnic"
	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
	"urnic/ulp/rpcrdma"
)

// A Config says how a client works. Its zero value is ready for use over TCP.
type Config struct {
	// Device is the RNIC that connections over RDMA are made by.
	Device *rnic.Device

	// RDMA says how connections over RDMA work.
	RDMA rpcrdma.Config

	// Credential says who calls; nil stands for user and groups of the process.
	Credential *oncrpc.Sys

	// ReadSize and WriteSize are the most bytes of one READ and one WRITE; 0 stands for
	// 1 MiB. The server may lower them.
	ReadSize, WriteSize int

	// Depth is how many calls of one long transfer are outstanding at a time; 0 stands for
	// 4.
	Depth int

	// Hold is how many bytes the client keeps, for all files together, that the server
	// has not committed; 0 stands for 64 MiB. With less than 0 it keeps none: each write
	// is committed before it returns.
	Hold int64

	// Sync has the server bring data and attributes to stable storage before it answers
	// a WRITE.
	Sync bool

	// Retry says how long the client tries to reach a server that was lost. The zero
	// value does so for as long as the context of the call allows, like a hard mount.
	// Its Patience is a minute if it is 0.
	Retry oncrpc.ClientConfig

	// Dialer makes the connections of TCP. nil stands for one that has a privileged port
	// if it may, as servers demand that export to the root users of hosts.
	Dialer *net.Dialer

	// Connect replaces what connects NFS to the server: the target's transport and port
	// don't matter then, but for MOUNT.
	Connect oncrpc.Dial

	// Root is the handle of a tree that is known already: Dial asks no MOUNT for it.
	Root *nfs3.Handle
}

const (
	defaultSize  = 1 << 20
	defaultDepth = 4
	defaultHold  = 64 << 20
	minSize      = 512 // of what a server may lower sizes to
)

// fill replaces zeros by what they stand for.
func (c *Config) fill() error {
	if c.ReadSize < 0 || c.WriteSize < 0 || c.Depth < 0 {
		return fmt.Errorf("nfs: ReadSize %d, WriteSize %d, Depth %d: none may be less than 0", c.ReadSize, c.WriteSize, c.Depth)
	}
	c.ReadSize = min(cmp.Or(c.ReadSize, defaultSize), nfs3.MaxData)
	c.WriteSize = min(cmp.Or(c.WriteSize, defaultSize), nfs3.MaxData)
	c.Depth = cmp.Or(c.Depth, defaultDepth)
	c.Hold = cmp.Or(c.Hold, defaultHold)
	c.Retry.Patience = cmp.Or(c.Retry.Patience, time.Minute)
	if c.Credential == nil {
		c.Credential = ProcessCredential()
	}
	return nil
}

// nobody is the user and the group of processes that have none, as on Windows.
const nobody = 65534

// ProcessCredential returns what AUTH_SYS says of this process: of its groups, those
// that there is room for.
func ProcessCredential() *oncrpc.Sys {
	s := &oncrpc.Sys{UID: id(os.Geteuid()), GID: id(os.Getegid())}
	if name, err := os.Hostname(); err == nil && len(name) <= oncrpc.MaxMachineName {
		s.Machine = name
	}
	groups, _ := os.Getgroups() // none, if the system can't tell
	for _, g := range groups[:min(len(groups), oncrpc.MaxGroups)] {
		s.Groups = append(s.Groups, id(g))
	}
	return s
}

func id(n int) uint32 {
	if n < 0 {
		return nobody
	}
	return uint32(n)
}
