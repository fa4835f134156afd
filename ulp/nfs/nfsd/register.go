package nfsd

import (
	"context"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
)

// callOverhead is how many bytes the longest WRITE has besides the data, and more.
const callOverhead = 64 << 10

// Register adds the NFS program and the MOUNT program to a server of calls. Callers have
// a credential of AUTH_SYS, or are anonymous.
//
// MOUNT is there as version 1 too, without MNT, whose file handles NFSv3 does not take:
// some clients list and unmount by it.
func (s *Server) Register(server *oncrpc.Server) error { return server.Register(s.Programs()...) }

// Programs returns the programs that Register adds. RPC-over-RDMA carries the first, NFS;
// clients find MOUNT by TCP (RFC 8267 §5.1).
func (s *Server) Programs() []*oncrpc.Program {
	nfs := oncrpc.ProgramVersion{Number: nfs3.Version, Procedures: map[uint32]oncrpc.Procedure{}}
	for p, do := range s.procedures() {
		nfs.Procedures[uint32(p)] = oncrpc.Procedure{Name: p.String(), Handle: do.handler(), Once: !p.Idempotent()}
	}
	mount := oncrpc.ProgramVersion{Number: nfs3.MountVersion, Procedures: map[uint32]oncrpc.Procedure{}}
	mount1 := oncrpc.ProgramVersion{Number: 1, Procedures: map[uint32]oncrpc.Procedure{}}
	for p, do := range s.mountProcedures() {
		q := oncrpc.Procedure{Name: p.String(), Handle: do.handler(), Once: !p.Idempotent()}
		mount.Procedures[uint32(p)] = q
		if p != nfs3.MountProcMnt {
			mount1.Procedures[uint32(p)] = q
		}
	}
	return []*oncrpc.Program{
		{Number: nfs3.Program, Name: "nfs", Versions: []oncrpc.ProgramVersion{nfs}, CallMost: int(s.writeMax) + callOverhead},
		{Number: nfs3.MountProgram, Name: "mountd", Versions: []oncrpc.ProgramVersion{mount1, mount}},
	}
}

// handler returns the procedure as a server of calls takes it.
func (do procedure) handler() oncrpc.Handler {
	return func(ctx context.Context, in *oncrpc.Incoming) error {
		return do(ctx, call{sys: in.Sys, remote: addrOf(in.Exchange.Remote), peer: peerOf(in.Exchange), exchange: in.Exchange}, in.Args, in.Results)
	}
}
