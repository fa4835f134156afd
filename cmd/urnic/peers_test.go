package main

import (
	"path/filepath"
	"testing"

	"urnic/ulp/rds/rdsinfo"
)

// peers are what the commands of a test that runs them all talk to, and a recording.
type peers struct {
	pcap, rping, perf, conform, file, rpc, rxPort, rdpRecv string
	nfsd                                                   *nfsdProcess
	rds                                                    rdsNet
}

// startPeers starts them, in a runtime directory of the test's own.
func startPeers(t *testing.T) *peers {
	t.Helper()
	ownRuntime(t)
	p := &peers{rds: rdsNetOf(t), pcap: filepath.Join(t.TempDir(), "demo.pcapng"), conform: conformTarget(t), nfsd: startNFSD(t, "--memory", "--squash", "none")}
	ok(t, "demo", "--quiet", "--pcap", p.pcap)
	_, p.rping = serve(t, "127.0.0.1", "-P")
	_, p.perf = servePerf(t)
	p.file = p.nfsd.urls("/memory/file")["tcp"]
	ok(t, "nfs", "put", p.pcap, p.file)
	p.rpc, _ = rpcServer(t)
	node, err := rdsinfo.Serve(rdsPeer(t, p.rds, "tcp"), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	_, p.rxPort = rxPerfServer(t)
	_, p.rdpRecv = startRDP(t, "recv", "-d", t.TempDir())
	return p
}
