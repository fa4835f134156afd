package main

import (
	"net"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/rpcbind"
	"urnic/ulp/oncrpc/rpcbind/rpcbindtest"
)

// The distribution's rpcbind knows of the server while it serves, and those who ask it
// find NFS and MOUNT over TCP, and NFS over RDMA.
func TestNFSDIsRegisteredWithTheServiceOfTheDistribution(t *testing.T) {
	if !rpcbindtest.Alone(t, "rpcbind", "rpcinfo") {
		return
	}
	serve := []string{"nfsd", "--memory", "--squash", "none", "--tcp", ":2049", "--rdma", ":20049", "--register-rpcbind"}
	status, out, errOut := urnic(t, nil, serve...)
	wantError(t, serve, status, errOut, "--register-rpcbind: no rpcbind runs on this host: start it")
	if out != "" {
		t.Errorf("it serves nevertheless: %q", out)
	}

	rpcbindtest.Start(t)
	here := rpcbind.NewClient(oncrpc.NewClient(rpcbind.Here(), oncrpc.ClientConfig{}))
	defer here.Close()
	six := false
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		six = l.Close() == nil
	}
	for _, left := range []rpcbind.Mapping{{}, {Program: nfs3.Program, Version: 3, Netid: rpcbind.TCP, Addr: "0.0.0.0.8.1", Owner: "urnic"}} {
		if left.Netid != "" { // of a server that could not say that it has ended
			if err := here.Set(t.Context(), left); err != nil {
				t.Fatal(err)
			}
		}
		p := start(t, serve...)
		p.out.wait(t, "listening at ")
		info := rpcinfo(t)
		for netid, want := range map[string]string{
			"tcp":  `100003 +3 +tcp +0\.0\.0\.0\.8\.1 +nfs +(superuser|\d+)\n(.*\n)* +100005 +3 +tcp +0\.0\.0\.0\.8\.1 +mountd`,
			"rdma": `100003 +3 +rdma +0\.0\.0\.0\.78\.81 +nfs`,
			"tcp6": `100003 +3 +tcp6 +::\.8\.1 +nfs .*\n(.*\n)* +100005 +3 +tcp6 +::\.8\.1 +mountd`, "rdma6": `100003 +3 +rdma6 +::\.78\.81 +nfs`,
		} {
			if !regexp.MustCompile(want).MatchString(info) && (six || !strings.HasSuffix(netid, "6")) {
				t.Errorf("no %s in\n%s", want, info)
			}
		}
		for args, want := range map[string]string{
			"rpc call 127.0.0.1 nfs 3":        "at 127.0.0.1:2049 over tcp",
			"rpc call 127.0.0.1 mountd 3":     "at 127.0.0.1:2049 over tcp",
			"rpc call 127.0.0.1 nfs 3 --rdma": "at 127.0.0.1:20049 over rdma",
			"nfs ls nfs+rdma://127.0.0.1":     "/memory\n", // the port of MOUNT is asked for
		} {
			if out := ok(t, strings.Fields(args)...); !strings.Contains(out, want) {
				t.Errorf("urnic %s: %q; want %q", args, out, want)
			}
		}
		again := []string{"nfsd", "--memory", "--tcp", "127.0.0.1:0", "--rdma", "off", "--register-rpcbind"}
		status, _, errOut = urnic(t, nil, again...)
		wantError(t, again, status, errOut, "rpcbind knows of another server already", "is at 0.0.0.0.8.1.", "rpcinfo -d 100003 3")
		p.interrupt()
		p.end(t)
		if info := rpcinfo(t); strings.Contains(info, "nfs") || strings.Contains(info, "mountd") {
			t.Errorf("after the end:\n%s", info)
		}
	}
}

// rpcinfo returns what the distribution's rpcinfo says of this host.
func rpcinfo(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), rpcbindtest.Find("rpcinfo"), "127.0.0.1").CombinedOutput()
	if err != nil {
		t.Fatalf("rpcinfo: %v\n%s", err, out)
	}
	return string(out)
}
