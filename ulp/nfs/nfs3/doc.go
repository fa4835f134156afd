// Package nfs3 is version 3 of the NFS protocol and of the MOUNT protocol that goes with
// it, RFC 1813: the arguments and results of all procedures, for both sides.
//
// Each type of arguments or results is a Codec of package xdr's streams:
//
//	args := nfs3.ReadArgs{File: h, Offset: 0, Count: 65536}
//	args.Encode(&e)
//	...
//	var res nfs3.ReadRes
//	if err := res.Decode(d); err != nil {
//		return err // no NFS
//	}
//	if err := res.Status.Err(); err != nil {
//		return err // a Status: errors.Is(err, fs.ErrNotExist) and the like work
//	}
//
// Results of a procedure that failed hold what the RFC lets come with the status, mostly
// attributes.
//
// The package is NFS's upper-layer binding to RPC-over-RDMA as well (RFC 8267 §4): what
// is eligible to direct data placement is written as an xdr bulk, nothing else is, and
// Proc.MaxReply says how long a reply may become.
package nfs3
