// Package fs is AFS's file interface: files, directories and symbolic links of volumes, and
// promises to call back when they change.
//
// A file is named by an afs.FID. The content of a directory is in the format of package dir. A
// [Client] asks any file server:
//
//	status, err := files.Status(ctx, fid)
//	n, err := files.Fetch(ctx, fid, 0, status.Length, w)
//
// [NewMux] serves a [Server], whose volumes are in memory: enough for Linux's kAFS to mount
// and use them. All of a volume's files have the same rights for everybody but administrators.
package fs
