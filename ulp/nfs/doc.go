// Package nfs is a client of NFS version 3 (RFC 1813), over TCP and over RDMA (RFC 8166,
// 8267).
//
// Dial mounts a tree of a server:
//
//	c, err := nfs.Dial(ctx, "nfs://server/export", nfs.Config{})
//	...
//	defer c.Close()
//	data, err := c.ReadFile(ctx, "dir/file")
//
// Over RDMA the same is nfs+rdma://server/export, and Config.Device is the RNIC to use.
//
// Methods of a Client are like the functions of package os. Names are paths below what
// was mounted, with slashes; symbolic links are followed by the client and never lead out
// of it: one that begins with a slash, or has too many ".." in it, ends at its root.
// Client.FS gives the tree to programs that want an io/fs filesystem.
//
// A File reads and writes at offsets, or in sequence. Transfers longer than the server
// takes in one call are cut, with Config.Depth calls outstanding, and their data goes
// straight from and into the caller's memory.
//
// # What is safe, and when
//
// Data that was written is on the server's stable storage once File.Sync or File.Close
// has returned without an error, and not before that, unless Config.Sync is set. Until
// then the server may have it in memory only, and lose it when it restarts. So the client
// keeps what the server has not committed, a copy of up to Config.Hold bytes for all
// files together, and writes it again if the server's write verifier reports that it has
// restarted (RFC 1813 §3.3.21). A write that would exceed that, or take more than a quarter
// of it alone, is committed before it returns, with what the file had before it: nothing
// of it is copied.
//
// Names and attributes are safe when the call that changes them returns.
package nfs
