package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/spf13/cobra"

	"urnic/internal/host/printable"
	"urnic/ulp/nfs"
	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
)

// nfsLsFormat is the format of --json.
const nfsLsFormat = "urnic-nfs-ls/1"

// nfsLsOptions are the flags of urnic nfs ls.
type nfsLsOptions struct {
	nfsOptions
	long, recursive, unsorted bool
}

func newNFSLsCommand() *cobra.Command {
	var o nfsLsOptions
	cmd := &cobra.Command{
		Use:   "ls URL...",
		Short: "List directories",
		Long: `Ls lists directories, one name in each line, sorted, and describes other files. Names that
a terminal can't show are quoted as in Go. If the server's root is not exported, ls lists
the exports.

A directory of more than about two million names is too large to sort; list it with -U. Ls
gives up on a directory that never ends: with an error if the server repeats entries, else
after eight million names.

With --json it prints a JSON object in one line for each file or export; see docs/json.md.`,
		Example: `  urnic nfs ls nfs://192.0.2.7
  urnic nfs ls nfs://192.0.2.7/export
  urnic nfs ls -lR nfs+rdma://192.0.2.7/export/dir
  urnic nfs ls --json nfs://192.0.2.7/export`,
		Args: urls(1, 1<<10),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkOutput(false); err != nil {
				return err
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			var errs []error
			for _, address := range args {
				err := o.with(cmd.Context(), address, cmd.OutOrStdout(), cmd.ErrOrStderr(), func(s *nfsSession, name string) error {
					return o.list(cmd.Context(), s.Client, name, out)
				})
				if t, e := nfs.ParseURL(address); e == nil && t.Path == "/" && errors.Is(err, nfs3.MountErrNoEnt) {
					err = o.listExports(cmd.Context(), t, out)
				}
				errs = append(errs, err)
			}
			return errors.Join(append(errs, out.Flush())...)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.long, "long", "l", false, "show type, permissions, links, owner, group, size in bytes and time")
	f.BoolVarP(&o.recursive, "recursive", "R", false, "list directories recursively")
	f.BoolVarP(&o.unsorted, "unsorted", "U", false, "list in the order of the server; needs no memory for names")
	f.BoolVar(&o.json, "json", false, "print a JSON object for each file")
	o.addNFS(f)
	return cmd
}

// listExports lists what a server exports, which is not its root.
func (o *nfsLsOptions) listExports(ctx context.Context, t nfs.Target, out io.Writer) error {
	if t.Transport == nfs.RDMA { // MOUNT is over TCP, whatever NFS is
		t.Transport, t.Port = nfs.TCP, 0
	}
	exports, err := nfs.Exports(ctx, t, nfs.Config{Retry: oncrpc.ClientConfig{Dials: 1, Sends: 1}})
	if err != nil {
		return adviseNFS(err, t)
	}
	for _, e := range exports {
		line := printable.Name(e.Dir)
		if o.json {
			line, err = jsonLine(nfsLsFormat, struct {
				Export string `json:"export"`
			}{e.Dir})
			if err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

// list lists what a path names.
func (o *nfsLsOptions) list(ctx context.Context, c *nfs.Client, name string, out io.Writer) error {
	info, err := c.Stat(ctx, name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return o.print(ctx, c, out, name, path.Base(name), info)
	}
	var failed failures
	l := lister{c: c, unsorted: o.unsorted}
	failed.add(unlessEnded(ctx, o.listDir(ctx, &l, name, "", out, &failed)))
	return failed.err()
}

// listDir lists a directory: below is its path below the URL. What is wrong with files in it
// goes to failed.
func (o *nfsLsOptions) listDir(ctx context.Context, l *lister, name, below string, out io.Writer, failed *failures) error {
	return l.each(ctx, name, func(e *nfs.DirEntry) error {
		full, short := path.Join(name, e.Name()), path.Join(below, e.Name())
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // any more
			return nil
		}
		if err == nil {
			err = o.print(ctx, l.c, out, full, short, info)
		}
		if err == nil && o.recursive && info.IsDir() {
			err = o.listDir(ctx, l, full, short, out, failed)
		}
		failed.add(unlessEnded(ctx, err))
		return ctx.Err()
	})
}

// An nfsEntry is what --json says of a file.
type nfsEntry struct {
	Path   string    `json:"path"`
	Type   string    `json:"type"`
	Mode   string    `json:"mode"`
	Links  uint32    `json:"links"`
	UID    uint32    `json:"uid"`
	GID    uint32    `json:"gid"`
	Size   uint64    `json:"size"`
	Used   uint64    `json:"used"`
	FileID uint64    `json:"file_id"`
	Atime  time.Time `json:"atime"`
	Mtime  time.Time `json:"mtime"`
	Ctime  time.Time `json:"ctime"`
	Target string    `json:"target,omitempty"`
}

var nfsTypes = map[nfs3.FileType]string{
	nfs3.Regular: "file", nfs3.Directory: "dir", nfs3.Symlink: "symlink", nfs3.BlockDevice: "block",
	nfs3.CharDevice: "char", nfs3.Socket: "socket", nfs3.FIFO: "fifo",
}

// print prints a line for a file.
func (o *nfsLsOptions) print(ctx context.Context, c *nfs.Client, out io.Writer, full, name string, info fs.FileInfo) error {
	if !o.long && !o.json {
		_, err := fmt.Fprintln(out, printable.Name(name))
		return err
	}
	attr := info.Sys().(*nfs3.Attr) //nolint:forcetypeassert // FileInfo says so
	target := ""
	if attr.Type == nfs3.Symlink {
		var err error
		if target, err = c.Readlink(ctx, full); err != nil {
			return err
		}
	}
	if o.json {
		line, err := jsonLine(nfsLsFormat, nfsEntry{
			Path: name, Type: nfsTypes[attr.Type], Mode: fmt.Sprintf("%04o", attr.Mode&0o7777), Links: attr.Links, UID: attr.UID, GID: attr.GID,
			Size: attr.Size, Used: attr.Used, FileID: attr.FileID, Atime: attr.Atime.Time(), Mtime: attr.Mtime.Time(), Ctime: attr.Ctime.Time(), Target: target,
		})
		if err == nil {
			_, err = fmt.Fprintln(out, line)
		}
		return err
	}
	if target != "" {
		target = " -> " + printable.Name(target)
	}
	_, err := fmt.Fprintf(out, "%v %3d %5d %5d %12d %s %s%s\n", info.Mode(), attr.Links, attr.UID, attr.GID, attr.Size,
		info.ModTime().Local().Format("2006-01-02 15:04"), printable.Name(name), target)
	return err
}
