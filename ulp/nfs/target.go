package nfs

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// The ports of NFS: over TCP (RFC 1813 §2.1) and over RDMA (RFC 8267 §5.1).
const (
	PortTCP  = 2049
	PortRDMA = 20049
)

// A Transport carries the calls of NFS.
type Transport string

// The transports.
const (
	TCP  Transport = "tcp"
	RDMA Transport = "rdma"
)

// A Target says where a tree is.
type Target struct {
	Transport Transport
	Host      string
	Port      int    // of NFS; 0 for that of the transport
	MountPort int    // of MOUNT over TCP; 0: see Dial
	Path      string // on the server, absolute
}

// ParseURL reads nfs://HOST[:PORT]/PATH, which goes over TCP, or
// nfs+rdma://HOST[:PORT]/PATH. A parameter, ?mountport=PORT, says where MOUNT is.
func ParseURL(s string) (Target, error) {
	u, err := url.Parse(s)
	if err != nil {
		return Target{}, fmt.Errorf("nfs: %w: give nfs://HOST/PATH or nfs+rdma://HOST/PATH", err)
	}
	t := Target{Host: u.Hostname()}
	switch u.Scheme {
	case "nfs":
		t.Transport = TCP
	case "nfs+rdma":
		t.Transport = RDMA
	default:
		return Target{}, fmt.Errorf("nfs: %q is no address of files: give nfs://HOST/PATH or nfs+rdma://HOST/PATH", s)
	}
	switch {
	case t.Host == "":
		return Target{}, fmt.Errorf("nfs: %q names no host: give %s://HOST/PATH", s, u.Scheme)
	case u.User != nil || u.Fragment != "":
		return Target{}, fmt.Errorf("nfs: %q: only a host, a port, a path and parameters stand in an address; write # as %%23 and @ as %%40", s)
	case strings.ContainsRune(u.Path, 0):
		return Target{}, fmt.Errorf("nfs: %q: no path has a NUL", s)
	}
	if p := u.Port(); p != "" {
		if t.Port, err = parsePort(p); err != nil {
			return Target{}, fmt.Errorf("nfs: %q: %w", s, err)
		}
	}
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Target{}, fmt.Errorf("nfs: %q: %w", s, err)
	}
	for name, values := range parameters {
		if name != "mountport" || len(values) != 1 {
			return Target{}, fmt.Errorf("nfs: %q: the only parameter is mountport, once; write ? of a path as %%3F", s)
		}
		if t.MountPort, err = parsePort(values[0]); err != nil {
			return Target{}, fmt.Errorf("nfs: %q: mountport: %w", s, err)
		}
	}
	t.Path = path.Clean("/" + u.Path)
	return t, nil
}

func parsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no port: give 1 to 65535", s)
	}
	return int(n), nil
}

// String returns the URL.
func (t Target) String() string {
	u := url.URL{Scheme: "nfs", Host: t.Host, Path: t.Path}
	if t.Transport == RDMA {
		u.Scheme = "nfs+rdma"
	}
	switch {
	case t.Port != 0:
		u.Host = net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
	case strings.Contains(t.Host, ":"):
		u.Host = "[" + t.Host + "]"
	}
	if t.MountPort != 0 {
		u.RawQuery = "mountport=" + strconv.Itoa(t.MountPort)
	}
	return u.String()
}

// port returns the port of NFS.
func (t Target) port() int {
	switch {
	case t.Port != 0:
		return t.Port
	case t.Transport == RDMA:
		return PortRDMA
	}
	return PortTCP
}

// address returns where a port of the host is.
func (t Target) address(port int) string { return net.JoinHostPort(t.Host, strconv.Itoa(port)) }

// check finds what is wrong with a target.
func (t Target) check() error {
	switch {
	case t.Transport != TCP && t.Transport != RDMA:
		return fmt.Errorf("nfs: there is no transport %q: must be tcp or rdma", string(t.Transport))
	case t.Host == "":
		return fmt.Errorf("nfs: no host is given")
	case t.Port < 0 || t.Port > 65535:
		return fmt.Errorf("nfs: %d is no port", t.Port)
	case t.MountPort < 0 || t.MountPort > 65535:
		return fmt.Errorf("nfs: %d is no port of MOUNT", t.MountPort)
	case !strings.HasPrefix(t.Path, "/"):
		return fmt.Errorf("nfs: %q is no absolute path", t.Path)
	}
	return nil
}
