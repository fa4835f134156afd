// Package nfsd is an NFS server: it carries out the procedures of NFSv3 and of MOUNT (RFC
// 1813) over filesystems of package vfs.
//
//	s, err := nfsd.New(nfsd.Config{})
//	if err != nil {
//		return err
//	}
//	if err := s.AddExport(nfsd.Export{Path: "/srv", FS: tree}); err != nil {
//		return err
//	}
//	err = s.Register(server) // an oncrpc.Server, which transports serve
//
// An Export says who may mount what, and whom its files take a caller for. Files have
// owners, groups and modes, and the server checks these, for the caller's credential, as
// POSIX has it, with what RFC 1813 §4.4 asks for besides: the owner of a file may read
// and write it whatever its mode says, because it was open when the mode changed.
//
// A directory of the machine is served by a process of root's with the rights of the caller
// (vfs.Features.Callers): then the kernel checks them, with access control lists.
//
// File handles name the export and the file. Nothing that a client sends reaches a file
// outside of an export; no symbolic link is ever followed. Handles are signed, so that
// clients can't forge that of a file in a directory that they can't search. They outlive
// the server only if the next one has the same Config.Key.
//
// The only state that the server keeps of its clients is the list of mounts, which is
// informational. The server has no Stop: stop its transports.
package nfsd
