package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/rpcbind"
)

// nfsdOptions are the flags of urnic nfsd.
type nfsdOptions struct {
	deviceFlags
	dir              string
	rdma, tcp        string
	readOnly         bool
	allow            []string
	squash           string
	anonUID, anonGID uint32
	memory           bool
	maxMemory        string
	exports          []string
	rsize, wsize     string
	async            bool
	registerRpcbind  bool
	insecure, unsafe bool
	givenTCP         bool // --tcp was given
	givenRDMA        bool
	stateDir         string
	json             bool

	binder  oncrpc.Dial // reaches this host's rpcbind
	allowed []netip.Prefix
	squashs nfsd.Squash
	trees   []nfsdTree
}

// A nfsdTree is a directory that is exported, or a tree in memory without one.
type nfsdTree struct{ path, dir string }

func newNFSDCommand() *cobra.Command {
	o := nfsdOptions{binder: rpcbind.Here()}
	cmd := &cobra.Command{
		Use:   "nfsd [DIR]",
		Short: "Serve files by NFS, over TCP and RDMA, until interrupted",
		Long: `Nfsd serves a directory by NFS version 3, over TCP and over RDMA at the same time. It needs
no privileges: the ports are above 1023. The MOUNT service is at the TCP port, too.

DIR is exported under its own absolute path. --export PATH=DIR exports a directory under
another path, and can be given several times. --memory exports an empty tree in memory as
/memory, or under PATH with --export PATH=.

NFS has no authentication: a client says which user calls. So nfsd serves and listens on
this machine only, unless --allow names other clients. A user of this machine can call only
as that user, whom the kernel reports for the socket; root can call as anybody. Calls from
other machines are accepted from ports below 1024 only, which need root there. --insecure
accepts calls from all ports, and believes what they say. Linux's client uses a port below
1024 over TCP, and none over RDMA.

Root's calls are carried out as nobody, unless --squash none is given. A server that does
not run as root creates files as its own user. So for a directory only that user's calls
are carried out as that user, and all others as nobody, unless --squash says otherwise.

With --json it prints a JSON object in one line when it listens; see docs/json.md.`,
		Example: `  urnic nfsd /srv/data
  urnic nfsd /srv/data --allow 192.0.2.0/24 --ro
  urnic nfsd --memory --tcp 127.0.0.1:0 --rdma off --json
  urnic nfsd --export /a=/srv/a --export /b=/srv/b`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("only one DIR can be given: export others with --export PATH=DIR; see `%s --help`", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.dir = args[0]
			}
			for flag, id := range map[string]uint32{"anonuid": o.anonUID, "anongid": o.anonGID} {
				if id == 0 && cmd.Flags().Changed(flag) {
					return fmt.Errorf("--%s 0: the anonymous user must not be root: give 1 or more, or --squash none", flag)
				}
			}
			o.givenTCP, o.givenRDMA = cmd.Flags().Changed("tcp"), cmd.Flags().Changed("rdma")
			if err := o.check(); err != nil {
				return err
			}
			return served(cmd.Context(), runNFSD(cmd.Context(), &o, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *nfsdOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.rdma, "rdma", ":20049", "`ADDRESS` and port to listen at for RDMA, or off; 0.0.0.0 is IPv4 alone, [::] IPv6 alone")
	f.StringVar(&o.tcp, "tcp", ":2049", "`ADDRESS` and port to listen at for TCP; likewise")
	f.BoolVar(&o.readOnly, "ro", false, "export read-only")
	f.StringArrayVar(&o.allow, "allow", nil, "allow clients with addresses in this `CIDR`, or all (default 127.0.0.0/8 and ::1); can be given several times")
	f.BoolVar(&o.insecure, "insecure", false, "accept calls from ports above 1023, and let users of this machine call as anybody")
	f.BoolVar(&o.unsafe, "unsafe", false, "allow --squash none with --insecure or --allow all, so that anybody can act as root on directories")
	f.StringVar(&o.squash, "squash", "", "`WHOSE` calls are carried out as the anonymous user: root, all or none (default root; if the server is not root, for directories all but its own user's)")
	f.Uint32Var(&o.anonUID, "anonuid", 0, "the anonymous `USER` (default 65534)")
	f.Uint32Var(&o.anonGID, "anongid", 0, "the anonymous `GROUP` (default 65534)")
	f.BoolVar(&o.memory, "memory", false, "export an empty tree in memory, which is lost when the server ends")
	f.StringVar(&o.maxMemory, "max-memory", "1G", "most `BYTES` that a tree in memory holds, with K, M or G")
	f.StringArrayVar(&o.exports, "export", nil, "export a directory under a path: `PATH=DIR`; can be given several times")
	f.StringVar(&o.rsize, "rsize", "1M", "largest READ in `BYTES`, with K or M")
	f.StringVar(&o.wsize, "wsize", "1M", "largest WRITE in `BYTES`, with K or M")
	f.BoolVar(&o.async, "async", false, "reply before new, changed and removed names are on disk")
	f.BoolVar(&o.registerRpcbind, "register-rpcbind", false, "register the ports with this host's rpcbind while it runs")
	f.StringVar(&o.stateDir, "state-dir", "", "keep the key of file handles in this `DIR` (default $STATE_DIRECTORY, /var/lib/urnic for root, or ~/.local/state/urnic)")
	f.BoolVar(&o.json, "json", false, "print the addresses as a JSON object")
	o.add(f)
	o.addCRC(f)
}

// check finds what is wrong with the flags.
func (o *nfsdOptions) check() (err error) {
	if o.json && o.pcap == "-" {
		return errJSONAndPcap
	}
	for _, a := range []struct{ flag, address string }{{"tcp", o.tcp}, {"rdma", o.rdma}} {
		if _, _, err := net.SplitHostPort(a.address); err != nil && (a.flag != "rdma" || a.address != "off") {
			return fmt.Errorf("--%s %s: give ADDRESS:PORT, such as 127.0.0.1:2049", a.flag, a.address)
		}
	}
	squashs := map[string]nfsd.Squash{"": nfsd.SquashRoot, "root": nfsd.SquashRoot, "all": nfsd.SquashAll, "none": nfsd.SquashNone}
	var ok bool
	if o.squashs, ok = squashs[o.squash]; !ok {
		return fmt.Errorf("--squash %s: must be one of root, all, none", o.squash)
	}
	if err := o.parseAllow(); err != nil {
		return err
	}
	if err := o.parseExports(); err != nil {
		return err
	}
	return o.checkSafe()
}

// checkSafe refuses to give directories to everybody, unless that is said.
func (o *nfsdOptions) checkSafe() error {
	directories := slices.ContainsFunc(o.trees, func(t nfsdTree) bool { return t.dir != "" })
	if o.unsafe || !directories || o.squashs != nfsd.SquashNone {
		return nil
	}
	switch {
	case o.insecure:
		return errors.New("--squash none --insecure: anybody who reaches the server could act as root on its directories: leave one of them out, or add --unsafe if you want that")
	case len(o.allowed) == 0, slices.ContainsFunc(o.allowed, func(p netip.Prefix) bool { return p.Bits() == 0 }):
		return errors.New("--squash none --allow all: root of any machine could act as root on the directories: allow the addresses of machines that you trust, or add --unsafe if you want that")
	}
	return nil
}

func (o *nfsdOptions) parseAllow() (err error) {
	if len(o.allow) == 0 {
		o.allow = []string{"127.0.0.0/8", "::1"}
	}
	o.allowed, err = parseAllow(o.allow)
	return err
}

func (o *nfsdOptions) parseExports() error {
	if o.dir != "" {
		dir, err := filepath.Abs(o.dir)
		if err != nil {
			return err
		}
		o.trees = append(o.trees, nfsdTree{path.Clean("/" + strings.TrimPrefix(filepath.ToSlash(dir), filepath.VolumeName(dir))), dir})
	}
	memory := o.memory
	for _, e := range o.exports {
		p, dir, ok := strings.Cut(e, "=")
		switch {
		case !ok || !path.IsAbs(p) || path.Clean(p) != p:
			return fmt.Errorf("--export %s: give PATH=DIR, such as /data=/srv/data", e)
		case dir == "" && !o.memory:
			return fmt.Errorf("--export %s: give a directory, or --memory", e)
		case dir == "":
			memory = false
		}
		o.trees = append(o.trees, nfsdTree{p, dir})
	}
	if memory {
		o.trees = append(o.trees, nfsdTree{path: "/memory"})
	}
	if len(o.trees) == 0 {
		return errors.New("give a directory to serve, or --memory: see `urnic nfsd --help`")
	}
	return nil
}

// export returns how a tree is exported by a process of this user. One that is not root
// can't give files away: what others made would be its own.
func (o *nfsdOptions) export(t nfsdTree, tree vfs.FS, uid int) nfsd.Export {
	e := nfsd.Export{
		Path: t.path, FS: tree, ReadOnly: o.readOnly, Allowed: o.allowed, Squash: o.squashs,
		AnonUID: nfsd.Nobody, AnonGID: nfsd.Nobody, Insecure: o.insecure,
	}
	if o.squash == "" && t.dir != "" && uid > 0 { // less than 0 on systems without users
		e.Squash, e.User = nfsd.SquashOthers, uint32(uid)
	}
	e.AnonUID, e.AnonGID = cmp.Or(o.anonUID, e.AnonUID), cmp.Or(o.anonGID, e.AnonGID)
	return e
}

// server returns the server's configuration, but for the key.
func (o *nfsdOptions) server(log *slog.Logger) (cfg nfsd.Config, err error) {
	cfg.Identify = identify
	cfg.Log = log
	if cfg.ReadMax, err = parseTransfer(o.rsize); err != nil {
		return cfg, fmt.Errorf("--rsize %s: %w", o.rsize, err)
	}
	if cfg.WriteMax, err = parseTransfer(o.wsize); err != nil {
		return cfg, fmt.Errorf("--wsize %s: %w", o.wsize, err)
	}
	return cfg, nil
}
