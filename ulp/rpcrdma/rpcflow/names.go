package rpcflow

import (
	"fmt"

	"urnic/ulp/oncrpc"
)

// The programs whose procedures have names here.
const (
	programPortmap  = 100000
	programNFS      = 100003
	programMount    = 100005
	programNLM      = 100021
	programStatus   = 100024
	programNFSACL   = 100227
	programCallback = 0x40000000 // the program of NFSv4 callbacks that Linux chooses
)

// A program is the name of a program, and those of its procedures by version.
type program struct {
	name       string
	procedures map[uint32][]string
}

var mountProcedures = []string{"NULL", "MNT", "DUMP", "UMNT", "UMNTALL", "EXPORT"}

var programs = map[uint32]program{
	programPortmap: {"rpcbind", map[uint32][]string{
		2: {"NULL", "SET", "UNSET", "GETPORT", "DUMP", "CALLIT"},
		3: {"NULL", "SET", "UNSET", "GETADDR", "DUMP", "CALLIT", "GETTIME", "UADDR2TADDR", "TADDR2UADDR"},
		4: {
			"NULL", "SET", "UNSET", "GETADDR", "DUMP", "BCAST", "GETTIME", "UADDR2TADDR", "TADDR2UADDR", "GETVERSADDR",
			"INDIRECT", "GETADDRLIST", "GETSTAT",
		},
	}},
	programNFS: {"NFS", map[uint32][]string{
		2: {
			"NULL", "GETATTR", "SETATTR", "ROOT", "LOOKUP", "READLINK", "READ", "WRITECACHE", "WRITE", "CREATE", "REMOVE",
			"RENAME", "LINK", "SYMLINK", "MKDIR", "RMDIR", "READDIR", "STATFS",
		},
		3: {
			"NULL", "GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "READ", "WRITE", "CREATE", "MKDIR", "SYMLINK",
			"MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK", "READDIR", "READDIRPLUS", "FSSTAT", "FSINFO", "PATHCONF", "COMMIT",
		},
		4: {"NULL", "COMPOUND"},
	}},
	programMount: {"MOUNT", map[uint32][]string{1: mountProcedures, 2: mountProcedures, 3: mountProcedures}},
	programNLM: {"NLM", map[uint32][]string{4: {
		"NULL", "TEST", "LOCK", "CANCEL", "UNLOCK", "GRANTED", "TEST_MSG", "LOCK_MSG", "CANCEL_MSG", "UNLOCK_MSG", "GRANTED_MSG",
		"TEST_RES", "LOCK_RES", "CANCEL_RES", "UNLOCK_RES", "GRANTED_RES", "", "", "", "", "SHARE", "UNSHARE", "NM_LOCK", "FREE_ALL",
	}}},
	programStatus: {"STATUS", map[uint32][]string{1: {"NULL", "STAT", "MON", "UNMON", "UNMON_ALL", "SIMU_CRASH", "NOTIFY"}}},
	programNFSACL: {"NFSACL", map[uint32][]string{
		2: {"NULL", "GETACL", "SETACL", "GETATTR", "ACCESS"},
		3: {"NULL", "GETACL", "SETACL"},
	}},
	programCallback: {"NFS callback", map[uint32][]string{1: {"NULL", "COMPOUND"}, 4: {"NULL", "COMPOUND"}}},
}

// procedureName names a procedure: NFSv3 READ.
func procedureName(program, version, procedure uint32) string {
	p, ok := programs[program]
	if !ok {
		return fmt.Sprintf("program %d version %d procedure %d", program, version, procedure)
	}
	names := p.procedures[version]
	if uint64(procedure) >= uint64(len(names)) || names[procedure] == "" {
		return fmt.Sprintf("%sv%d procedure %d", p.name, version, procedure)
	}
	return fmt.Sprintf("%sv%d %s", p.name, version, names[procedure])
}

// flavorName names a flavor of credentials (RFC 5531 §8.2).
func flavorName(f oncrpc.Flavor) string {
	switch f {
	case oncrpc.AuthNone:
		return "AUTH_NONE"
	case oncrpc.AuthSys:
		return "AUTH_SYS"
	case oncrpc.AuthShort:
		return "AUTH_SHORT"
	case oncrpc.RPCSECGSS:
		return "RPCSEC_GSS"
	}
	return fmt.Sprintf("flavor %d", uint32(f))
}
