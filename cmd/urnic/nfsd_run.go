package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"urnic/internal/host/listen"
	"urnic/internal/program/perf"
	"urnic/rnic"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/dirfs"
	"urnic/ulp/nfs/vfs/memfs"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/rpcbind"
	"urnic/ulp/rpcrdma"
)

// nfsdPatience is how long calls may take to be carried out once the server is to end.
const nfsdPatience = 5 * time.Second

// A nfsServer is what urnic nfsd runs.
type nfsServer struct {
	o         *nfsdOptions
	rpc       *oncrpc.Server
	tcp       []net.Listener
	dev       *device
	rdma      []*rnic.Listener
	responder *rpcrdma.Server
	close     []func() error // in reverse order
	serving   chan error

	registered []rpcbind.Mapping // with rpcbind
}

// runNFSD serves until it is interrupted.
func runNFSD(ctx context.Context, o *nfsdOptions, stdout, stderr io.Writer) (err error) {
	s := &nfsServer{o: o, serving: make(chan error, 4)}
	defer func() {
		for _, c := range slices.Backward(s.close) {
			err = errors.Join(err, alwaysTell(c()))
		}
	}()
	if err := s.open(ctx, stdout, stderr); err != nil {
		return err
	}
	if o.registerRpcbind {
		if err := s.register(ctx); err != nil {
			return errors.Join(err, alwaysTell(s.unregister(context.WithoutCancel(ctx))))
		}
	}
	out := &lines{w: stdout}
	if o.pcap == "-" {
		out.w = stderr
	}
	s.tell(out)
	serving := len(s.tcp) + len(s.rdma)
	for _, l := range s.tcp {
		go func() { s.serving <- s.rpc.ServeTCP(context.WithoutCancel(ctx), l) }()
	}
	for _, l := range s.rdma {
		go func() { s.serving <- s.responder.Serve(context.WithoutCancel(ctx), l) }()
	}
	select {
	case <-ctx.Done():
	case err = <-s.serving: // a listener has failed
		serving--
	}
	err = errors.Join(err, s.unregister(context.WithoutCancel(ctx)))
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), nfsdPatience)
	defer cancel()
	if s.responder != nil {
		err = errors.Join(err, s.responder.Shutdown(limited))
	}
	err = errors.Join(err, s.rpc.Shutdown(limited))
	for range serving {
		if e := <-s.serving; !errors.Is(e, oncrpc.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(alwaysTell(err), out.failed) // none is because the server was interrupted
}

// open opens all that the server is made of.
func (s *nfsServer) open(ctx context.Context, stdout, stderr io.Writer) error {
	o := s.o
	device, err := o.config(stderr)
	if err != nil {
		return err
	}
	cfg, err := o.server(device.Logger)
	if err != nil {
		return err
	}
	if cfg.Key, err = o.handleKey(stderr); err != nil {
		return err
	}
	program, err := nfsd.New(cfg)
	if err != nil {
		return err
	}
	for _, t := range o.trees {
		tree, err := s.tree(t)
		if err != nil {
			return err
		}
		if err := warnOfRights(stderr, t, os.Geteuid(), tree.Features()); err != nil {
			return err
		}
		if err := program.AddExport(o.export(t, tree, os.Geteuid())); err != nil {
			return err
		}
	}
	s.rpc = oncrpc.NewServer(oncrpc.ServerConfig{Logger: device.Logger, TCP: oncrpc.ServeTCPConfig{Admit: program.Admit}})
	s.close = append(s.close, s.rpc.Close)
	if err := program.Register(s.rpc); err != nil {
		return err
	}
	s.tcp, err = listenAll(o.addresses(o.tcp, o.givenTCP), func(address string) (net.Listener, error) {
		l, err := listen.TCP(ctx, address)
		if err == nil {
			s.close = append(s.close, func() error { // if it was never served
				if err := l.Close(); !errors.Is(err, net.ErrClosed) {
					return err
				}
				return nil
			})
		}
		return l, err
	})
	if err != nil {
		return adviseNFSDListen(err, "tcp", o.tcp)
	}
	if o.rdma == "off" {
		if o.pcap != "" || o.trace {
			return errors.New("--pcap and --trace show RDMA, which is off")
		}
		return nil
	}
	if s.dev, err = o.open(admittingNetwork{program}, stdout, stderr); err != nil {
		return err
	}
	s.close = append(s.close, s.dev.Close)
	s.rdma, err = listenAll(o.addresses(o.rdma, o.givenRDMA), func(address string) (*rnic.Listener, error) {
		l, err := s.dev.Listen(ctx, address)
		if err == nil {
			s.close = append(s.close, l.Close)
		}
		return l, err
	})
	if err != nil {
		return adviseNFSDListen(err, "rdma", o.rdma)
	}
	s.responder, err = rpcrdma.NewServer(s.rpc, rpcrdma.Config{Logger: device.Logger, Admit: program.Admit, MaxMessage: 4<<20 + max(cfg.ReadMax, cfg.WriteMax)})
	return err
}

// tree opens what is exported.
func (s *nfsServer) tree(t nfsdTree) (tree vfs.FS, err error) {
	if t.dir == "" {
		most, err := perf.ParseMemory(s.o.maxMemory)
		if err != nil {
			return nil, fmt.Errorf("--max-memory %s: %w", s.o.maxMemory, err)
		}
		tree = memfs.New(memfs.Options{MaxBytes: most, Mode: 0o1777})
	} else if tree, err = dirfs.New(t.dir, dirfs.Options{ReadOnly: s.o.readOnly, Async: s.o.async}); err != nil {
		return nil, fmt.Errorf("%s can't be served: %w", t.dir, err)
	}
	s.close = append(s.close, tree.Close)
	return tree, nil
}

// warnOfRights warns of a server of root's that can't act as its callers: it does all to a
// directory with its own rights, and checks modes itself.
func warnOfRights(w io.Writer, t nfsdTree, uid int, f vfs.Features) error {
	if t.dir == "" || uid != 0 || f.Callers {
		return nil
	}
	_, err := fmt.Fprintf(w, "warning: %s: this process is root and can't act as other users (CAP_SETUID, CAP_SETGID), so calls are carried out "+
		"with its own rights: give it these capabilities, or serve as an ordinary user\n", t.dir)
	return err
}

// tell says where it listens, and how to mount what it serves.
func (s *nfsServer) tell(out *lines) {
	tcp, rdma := s.tcp[0].Addr().String(), ""
	if len(s.rdma) > 0 {
		rdma = s.rdma[0].Addr().String()
	}
	var paths []string
	for _, t := range s.o.trees {
		paths = append(paths, t.path)
	}
	if s.o.json {
		line, err := jsonLine("urnic-nfsd/1", struct {
			TCP     string   `json:"tcp"`
			RDMA    string   `json:"rdma,omitempty"`
			Exports []string `json:"exports"`
		}{tcp, rdma, paths})
		if err != nil { // of strings: it can't be
			line = err.Error()
		}
		out.print(line)
		return
	}
	_, port, _ := net.SplitHostPort(tcp)
	host := hostOf(tcp)
	six := "" // proto=tcp means IPv4 to mount.nfs(8)
	if strings.HasPrefix(host, "[") {
		six = "6"
	}
	for _, t := range s.o.trees {
		what := t.dir
		if what == "" {
			what = "a tree in memory"
		}
		out.print(fmt.Sprintf("exporting %s: %s", t.path, what))
	}
	example := paths[0]
	out.print("mount on Linux, as root, with one of:")
	out.print(fmt.Sprintf("  mount -t nfs -o vers=3,nolock,proto=tcp%s,port=%s,mountproto=tcp%[1]s,mountport=%[2]s %s:%s /mnt", six, port, host, example))
	if rdma != "" {
		_, rport, _ := net.SplitHostPort(rdma)
		out.print(fmt.Sprintf("  mount -t nfs -o vers=3,nolock,proto=rdma%s,port=%s,mountproto=tcp%[1]s,mountport=%[3]s %s:%s /mnt", six, rport, port, host, example))
	}
	if rdma != "" {
		out.print(fmt.Sprintf("listening at %s (TCP) and %s (RDMA)", all(s.tcp), all(s.rdma)))
		return
	}
	out.print(fmt.Sprintf("listening at %s (TCP)", all(s.tcp)))
}

// all returns the addresses of listeners.
func all[L interface{ Addr() net.Addr }](listeners []L) string {
	var text []string
	for _, l := range listeners {
		text = append(text, l.Addr().String())
	}
	return strings.Join(text, ", ")
}

// hostOf returns by what name clients may reach who listens at an address.
func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address)
	a, err := netip.ParseAddr(host)
	switch {
	case err == nil && a.IsUnspecified():
		if name, err := os.Hostname(); err == nil {
			return name
		}
		return "HOST"
	case err == nil && a.Is6():
		return "[" + host + "]"
	}
	return host
}

// adviseNFSDListen says what to do about an address that can't be listened at.
func adviseNFSDListen(err error, flag, address string) error {
	var unresolved *net.DNSError
	switch {
	case errors.As(err, &unresolved):
		return fmt.Errorf("--%s %s: there is no address for the name %q: give an IP address (%s)", flag, address, unresolved.Name, unresolved.Err)
	case errors.Is(err, syscall.EADDRINUSE):
		return advise(err, "another program, such as the kernel's NFS server, listens at %s%s: give another port with --%s", address, errno(err), flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return advise(err, "--%s %s: that is no address of this machine: give one of its own%s", flag, address, errno(err))
	case errors.Is(err, syscall.EACCES):
		return advise(err, "--%s %s: that port is for privileged programs: give one from 1024 on%s", flag, address, errno(err))
	}
	return fmt.Errorf("--%s %s: %w", flag, address, err)
}
