package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/internal/host/listen"
	"urnic/ulp/nfs"
	"urnic/ulp/oncrpc"
)

const nfsLong = `Nfs is a client of NFS version 3. It mounts nothing and needs no privileges.

URL is nfs://HOST[:PORT]/PATH for TCP (port 2049), or nfs+rdma://HOST[:PORT]/PATH for RDMA
(port 20049). PATH begins with a directory that the server exports. The MOUNT service is
called over TCP, at the port of ?mountport=PORT. Without that, its port comes from the
host's rpcbind, or is that of NFS. Write %20 for a space in a path, and %3F for a question
mark.

The exit status is 0 only if everything succeeded.`

// nfsOptions are the flags of urnic nfs and its commands.
type nfsOptions struct {
	deviceFlags
	uid, gid     int
	rsize, wsize string
	depth        int
	hard         bool
	json         bool
}

func newNFSCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "nfs",
		Short: "List, read and write files of NFS servers, over TCP and RDMA",
		Long:  nfsLong,
		Example: `  urnic nfs ls -l nfs://192.0.2.7/export
  urnic nfs cat nfs+rdma://192.0.2.7/export/file
  urnic nfs put -R dir nfs+rdma://192.0.2.7/export
  urnic nfs get nfs://192.0.2.7:2050/export/file copy
  urnic nfs bench nfs+rdma://192.0.2.7/export`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNFSLsCommand(), newNFSCatCommand(), newNFSGetCommand(), newNFSPutCommand(), newNFSBenchCommand())
	return cmd
}

// addNFS adds the flags of all commands of urnic nfs.
func (o *nfsOptions) addNFS(f *pflag.FlagSet) {
	f.IntVar(&o.uid, "uid", -1, "call as this `USER` (-1: the user of the process)")
	f.IntVar(&o.gid, "gid", -1, "call as this `GROUP` (-1: the groups of the process)")
	f.BoolVar(&o.hard, "hard", false, "retry for ever if the server is lost")
	o.add(f)
	o.addCRC(f)
	o.addSettle(f)
}

// addSizes adds those of commands that move data.
func (o *nfsOptions) addSizes(f *pflag.FlagSet) {
	f.StringVar(&o.rsize, "rsize", "1M", "largest READ in `BYTES`, with K or M")
	f.StringVar(&o.wsize, "wsize", "1M", "largest WRITE in `BYTES`, with K or M")
	f.IntVar(&o.depth, "depth", 4, "most `CALLS` outstanding at a time")
}

// How long commands try to reach a server that is lost.
const (
	nfsDials    = 8
	nfsBackoff  = 2 * time.Second
	nfsPatience = 30 * time.Second
)

// client returns the configuration that the flags ask for.
func (o *nfsOptions) client() (cfg nfs.Config, err error) {
	for _, size := range []struct {
		flag, text string
		n          *int
	}{{"rsize", o.rsize, &cfg.ReadSize}, {"wsize", o.wsize, &cfg.WriteSize}} {
		if size.text == "" { // of a command that has no such flag
			continue
		}
		if *size.n, err = parseTransfer(size.text); err != nil {
			return cfg, fmt.Errorf("--%s %s: %w", size.flag, size.text, err)
		}
	}
	if o.depth < 0 || o.depth > 1024 {
		return cfg, fmt.Errorf("--depth %d: must be 1 to 1024", o.depth)
	}
	cfg.Depth = o.depth
	if !o.hard {
		cfg.Retry = oncrpc.ClientConfig{Dials: nfsDials, BackoffMost: nfsBackoff, Patience: nfsPatience}
	}
	if cfg.Credential, err = o.credential(); err != nil {
		return cfg, err
	}
	return cfg, nil
}

// credential returns who calls, or nil for the process.
func (o *nfsOptions) credential() (*oncrpc.Sys, error) {
	if o.uid == -1 && o.gid == -1 {
		return nil, nil
	}
	if o.uid < -1 || o.gid < -1 || int64(o.uid) > 1<<32-1 || int64(o.gid) > 1<<32-1 {
		return nil, fmt.Errorf("--uid %d --gid %d: must be 0 or more", o.uid, o.gid)
	}
	s := nfs.ProcessCredential()
	if o.uid >= 0 {
		s.UID = uint32(o.uid)
	}
	if o.gid >= 0 {
		s.GID, s.Groups = uint32(o.gid), nil
	}
	return s, nil
}

// parseTransfer parses the size of a READ or WRITE.
func parseTransfer(s string) (int, error) {
	digits, shift := s, 0
	switch {
	case strings.HasSuffix(s, "K"), strings.HasSuffix(s, "k"):
		digits, shift = s[:len(s)-1], 10
	case strings.HasSuffix(s, "M"), strings.HasSuffix(s, "m"):
		digits, shift = s[:len(s)-1], 20
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n<<shift < 512 || n<<shift > 16<<20 {
		return 0, errors.New("give bytes, 512 to 16M, with K or M")
	}
	return int(n << shift), nil
}

// A reservedNetwork dials from a privileged port, if it may.
type reservedNetwork struct{}

func (reservedNetwork) Dial(ctx context.Context, address string) (net.Conn, error) {
	return nfs.DialReserved(ctx, address)
}

func (reservedNetwork) Listen(ctx context.Context, address string) (net.Listener, error) {
	return listen.TCP(ctx, address)
}

// A nfsSession is what commands of urnic nfs work with.
type nfsSession struct {
	*nfs.Client
	dev *device
}

// dial mounts what a URL is in, and returns its path there.
func (o *nfsOptions) dial(ctx context.Context, address string, stdout, stderr io.Writer) (s *nfsSession, name string, err error) {
	cfg, err := o.client()
	if err != nil {
		return nil, "", err
	}
	t, err := nfs.ParseURL(address)
	if err != nil {
		return nil, "", err
	}
	s = &nfsSession{}
	if t.Transport == nfs.RDMA {
		if s.dev, err = o.open(reservedNetwork{}, stdout, stderr); err != nil {
			return nil, "", err
		}
		cfg.Device = s.dev.Device
	} else if o.pcap != "" || o.trace {
		return nil, "", fmt.Errorf("--pcap and --trace show RDMA, and %s goes over TCP: give nfs+rdma://", t)
	}
	if s.Client, name, err = nfs.DialFile(ctx, address, cfg); err != nil {
		return nil, "", errors.Join(adviseNFS(err, t), s.closeDevice())
	}
	return s, name, nil
}

func (s *nfsSession) closeDevice() error {
	if s.dev == nil {
		return nil
	}
	return s.dev.Close()
}

// Close ends the session.
func (s *nfsSession) Close() error { return errors.Join(s.Client.Close(), s.closeDevice()) }

// with does something with the file that a URL names.
func (o *nfsOptions) with(ctx context.Context, address string, stdout, stderr io.Writer, do func(s *nfsSession, name string) error) (err error) {
	s, name, err := o.dial(ctx, address, stdout, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(s, name)
}

// checkOutput finds flags that want standard output for themselves.
func (o *nfsOptions) checkOutput(data bool) error {
	if o.pcap != "-" {
		return nil
	}
	if data {
		return errors.New("--pcap - and the file would both go to standard output: record into a file")
	}
	if o.json {
		return errJSONAndPcap
	}
	return nil
}

// urls takes as many URLs as a command wants.
func urls(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("give %s: see `%s --help`", strings.TrimPrefix(cmd.Use, cmd.Name()+" "), cmd.CommandPath())
		}
		return nil
	}
}
