package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/internal/host/plural"
	"urnic/internal/host/printable"
)

// nfsCopyOptions are the flags of urnic nfs get and put.
type nfsCopyOptions struct {
	nfsOptions
	recursive, verbose bool
}

func (o *nfsCopyOptions) addCopy(f *pflag.FlagSet) {
	f.BoolVarP(&o.recursive, "recursive", "R", false, "copy directories with what is below")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print each file that was copied")
	f.BoolVar(&o.json, "json", false, "print a JSON object for each file")
	o.addSizes(f)
	o.addNFS(f)
}

const nfsCopyLong = `

Symbolic links below a directory are copied as links. Devices, sockets and FIFOs are not
copied, which counts as a failure. Permissions are copied as far as the umask allows;
owners and times are not. On a terminal, the progress of files is shown that take more than
two seconds.

With --json it prints a JSON object in one line for each file; see docs/json.md.`

func newNFSCatCommand() *cobra.Command {
	var o nfsOptions
	cmd := &cobra.Command{
		Use:   "cat URL...",
		Short: "Write files to standard output",
		Example: `  urnic nfs cat nfs://192.0.2.7/export/file
  urnic nfs cat nfs+rdma://192.0.2.7/export/file > copy`,
		Args: urls(1, 1<<10),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkOutput(true); err != nil {
				return err
			}
			for _, address := range args {
				if err := o.with(cmd.Context(), address, cmd.OutOrStdout(), cmd.ErrOrStderr(), func(s *nfsSession, name string) error {
					return cat(cmd.Context(), s, name, cmd.OutOrStdout())
				}); err != nil {
					return err
				}
			}
			return nil
		},
	}
	o.addSizes(cmd.Flags())
	o.addNFS(cmd.Flags())
	return cmd
}

func cat(ctx context.Context, s *nfsSession, name string, out io.Writer) error {
	f, err := s.Open(ctx, name)
	if err != nil {
		return err
	}
	_, err = f.WithContext(ctx).WriteTo(out)
	return errors.Join(err, f.Close())
}

func newNFSGetCommand() *cobra.Command {
	var o nfsCopyOptions
	cmd := &cobra.Command{
		Use:   "get URL [LOCAL]",
		Short: "Copy files from a server",
		Long: `Get copies a file of a server to LOCAL, or into LOCAL if that is a directory. The default is
the current directory. A file is written under a temporary name, and renamed when it is
complete.` + nfsCopyLong,
		Example: `  urnic nfs get nfs://192.0.2.7/export/file
  urnic nfs get -R nfs+rdma://192.0.2.7/export/dir backup`,
		Args: urls(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			local := "."
			if len(args) == 2 {
				local = args[1]
			}
			return o.copy(cmd, args[0], func(c *copier, name string) error { return c.get(name, local) })
		},
	}
	o.addCopy(cmd.Flags())
	return cmd
}

func newNFSPutCommand() *cobra.Command {
	var o nfsCopyOptions
	cmd := &cobra.Command{
		Use:   "put LOCAL URL",
		Short: "Copy files to a server",
		Long: `Put copies LOCAL, or standard input if LOCAL is -, to URL, or into URL if that is a
directory. When put succeeds, the data is on the server's stable storage. If put fails or
is interrupted, a partial file remains there.` + nfsCopyLong,
		Example: `  urnic nfs put file nfs://192.0.2.7/export
  urnic nfs put -R dir nfs+rdma://192.0.2.7/export/dir
  tar c dir | urnic nfs put - nfs+rdma://192.0.2.7/export/dir.tar`,
		Args: urls(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.copy(cmd, args[1], func(c *copier, name string) error {
				if err := c.checkSlash(args[0], args[1], name); err != nil {
					return err
				}
				if args[0] == "-" {
					return c.putStream(cmd.InOrStdin(), "standard input", name, 0o666, 0)
				}
				return c.put(args[0], name)
			})
		},
	}
	o.addCopy(cmd.Flags())
	return cmd
}

// A copier copies files for a command, and reports them.
type copier struct {
	*nfsCopyOptions
	ctx      context.Context //nolint:containedctx // of the command
	s        *nfsSession
	out      *lines
	terminal io.Writer
	lister   lister
	skipped  failures
}

// copy does the work of a command.
func (o *nfsCopyOptions) copy(cmd *cobra.Command, address string, do func(c *copier, name string) error) error {
	if err := o.checkOutput(false); err != nil {
		return err
	}
	return o.with(cmd.Context(), address, cmd.OutOrStdout(), cmd.ErrOrStderr(), func(s *nfsSession, name string) error {
		c := &copier{nfsCopyOptions: o, ctx: cmd.Context(), s: s, out: &lines{w: cmd.OutOrStdout()}, terminal: cmd.ErrOrStderr(), lister: lister{c: s.Client}}
		if o.pcap == "-" {
			c.out.w = cmd.ErrOrStderr()
		}
		err := do(c, name)
		return errors.Join(err, c.out.failed, alwaysTell(c.skipped.err()))
	})
}

// skip notes a file that can't be copied, in spite of which the others are. That it was
// interrupted is none of the reasons.
func (c *copier) skip(err error) { c.skipped.add(err) }

// A nfsCopy is what --json says of a file.
type nfsCopy struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// did reports a file that was copied.
func (c *copier) did(from, to string, n int64, took time.Duration) {
	switch {
	case c.json:
		line, err := jsonLine("urnic-nfs-copy/1", nfsCopy{from, to, n, took.Seconds()})
		if err != nil { // of strings and numbers: it can't be
			line = err.Error()
		}
		c.out.print(line)
	case c.verbose:
		c.out.print(fmt.Sprintf("%s -> %s: %s", printable.Name(from), printable.Name(to), plural.Count(n, "byte")))
	}
}

// progress begins to show how much of a file was copied.
func (c *copier) progress(name string, size int64) *progress {
	w := c.terminal
	if c.trace { // whose lines would be in the way
		w = io.Discard
	}
	return newProgress(w, size, progressbar.OptionSetDescription(printable.Name(name)), progressbar.OptionShowBytes(true))
}

// A progressWriter tells a progress of what is written.
type progressWriter struct {
	io.Writer
	progress *progress
}

func (w progressWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.progress.add(int64(n))
	return n, err
}
