package main

import (
	"bufio"
	"encoding/json"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"urnic/ulp/rds"
	"urnic/ulp/rds/rdsinfo"
)

// startRDSNode starts a node that commands are to talk to.
func startRDSNode(t *testing.T, at rdsNet, args ...string) *process {
	t.Helper()
	p := start(t, append([]string{"rds", "node", "--transport-port", at.port}, args...)...)
	p.out.wait(t, "listening")
	return p
}

// Ping and info find the node, from an address below its own and from one above: over TCP, only one of the two may dial.
func TestRDSNode(t *testing.T) {
	for _, transport := range []string{"tcp", "iwarp"} {
		t.Run(transport, func(t *testing.T) {
			ownRuntime(t)
			at := rdsNetOf(t)
			file := filepath.Join(t.TempDir(), "node.pcapng")
			node := startRDSNode(t, at, "--transport", transport, "--pcap", file, at.own)
			for _, source := range []string{at.peer, at.passive} {
				out := ok(t, "rds", "ping", "-c", "2", "-i", "0.001", "--source", source, "--transport", transport, "--transport-port", at.port, at.own)
				if !strings.Contains(out, "\n2 pings, 2 answers, ") {
					t.Errorf("ping prints %s", out)
				}
			}
			ping := start(t, "rds", "ping", "-i", "0.001", "--source", at.peer, "--transport", transport, "--transport-port", at.port, at.own)
			ping.out.wait(t, "\n") // when it has gone, the node does not remember it
			if out := ok(t, "rds", "info", at.own); !strings.Contains(out, "RDS node "+at.own+" over "+transport) || !strings.Contains(out, "\n"+at.peer+" ") {
				t.Errorf("info prints %s", out)
			}
			ping.interrupt()
			ping.end(t)
			node.interrupt()
			node.end(t)
			lines := strings.Split(strings.TrimSpace(node.out.String()), "\n")
			if last := len(lines) - 1; lines[0] != "listening at "+at.own+":"+at.port+" over "+transport || lines[last-1] != "--- "+at.own+" rds node statistics ---" ||
				!strings.Contains(lines[last], " pings (probes included), ") || !strings.HasSuffix(lines[last], " 0 refused, 0 messages without a socket, 0 violations") {
				t.Errorf("it prints %q", lines)
			}
			for _, want := range []string{" " + at.peer + " connected\n", " " + at.peer + " disconnected", " " + at.passive + " connected\n"} {
				if !strings.Contains(node.out.String(), want) {
					t.Errorf("%q is not in %q", want, lines)
				}
			}
			if several := strings.Contains(node.out.String(), " connected, path 7\n"); several != (transport == "tcp") {
				t.Errorf("it prints %q", lines)
			}
			if strings.Contains(node.out.String(), "dials") { // a knock is no refusal
				t.Errorf("it prints %q", lines)
			}
			ok(t, "dissect", file)
			if paths, err := rdsinfo.List(""); err != nil || len(paths) != 0 {
				t.Errorf("it leaves %q, %v", paths, err)
			}
		})
	}
}

// A message to a port without a socket is an event with its port, and is counted.
func TestRDSNodeHasNoSockets(t *testing.T) {
	ownRuntime(t)
	at := rdsNetOf(t)
	node := startRDSNode(t, at, "--json", at.own)
	peer := rdsPeer(t, at, "tcp")
	s, err := peer.Bind(4000)
	do(t, err)
	do(t, s.SendTo(t.Context(), []byte("message"), rds.Addr{Host: netip.MustParseAddr(at.own), Port: 4711}))
	node.out.wait(t, `"port":4711`)
	node.interrupt()
	node.end(t)
	scan := bufio.NewScanner(strings.NewReader(node.out.String()))
	found := map[string]int{}
	for scan.Scan() {
		var e struct {
			rdsNodeEvent
			NoSocket uint64 `json:"no_socket"`
		}
		do(t, json.Unmarshal(scan.Bytes(), &e))
		found[e.Event]++
		switch e.Event {
		case "no_socket":
			if e.Port == nil || *e.Port != 4711 || e.Peer.String() != at.peer || e.Time.IsZero() {
				t.Errorf("%s", scan.Bytes())
			}
		case "end":
			if e.NoSocket != 1 {
				t.Errorf("%s", scan.Bytes())
			}
		}
	}
	if found["listening"] != 1 || found["no_socket"] != 1 || found["connected"] == 0 || found["end"] != 1 {
		t.Errorf("%v", found)
	}
}

// Events that nobody can print are counted, and do not hold up the node.
func TestRDSNodeCountsWhatItCanNotPrint(t *testing.T) {
	v := &rdsNodeView{events: make(chan rdsNodeEvent, 2)}
	for range 5 {
		v.event(rds.Event{Kind: rds.Refused, Err: rds.ErrNotAllowed})
	}
	if len(v.events) != 2 || v.unprinted.Load() != 3 || v.refused.Load() != 5 {
		t.Errorf("%d wait, %d are counted, %d refused", len(v.events), v.unprinted.Load(), v.refused.Load())
	}
}

// A peer that --allow does not include gets no connection to the node of any command.
func TestRDSAllow(t *testing.T) {
	for _, transport := range []string{"tcp", "iwarp"} {
		t.Run(transport, func(t *testing.T) {
			ownRuntime(t)
			at := rdsNetOf(t)
			ping := func(source, timeout string) (int, string) {
				status, out, errOut := urnic(t, nil, "rds", "ping", "-c", "1", "--timeout", timeout, "--source", source, "--transport", transport, "--transport-port", at.port, at.own)
				return status, out + errOut
			}
			node := startRDSNode(t, at, "--transport", transport, "--allow", "192.0.2.0/24", "--allow", at.passive, at.own)
			stranger := start(t, "rds", "ping", "-i", "0.01", "--source", at.peer, "--transport", transport, "--transport-port", at.port, at.own)
			node.out.wait(t, " "+at.peer+" refused: --allow does not include its address\n")
			if status, said := ping(at.passive, hangGuard.String()); status != 0 {
				t.Errorf("a peer that is allowed: status %d, %s", status, said)
			}
			stranger.interrupt()
			stranger.wait(t)
			if stranger.status != 1 || !strings.Contains(stranger.out.String(), ", 0 answers\n") || strings.Contains(stranger.out.String(), "usec") {
				t.Errorf("one that is not: status %d, %s", stranger.status, stranger.out.String())
			}
			node.interrupt()
			node.end(t)
			if out := node.out.String(); strings.Contains(out, at.peer+" connected") || strings.Contains(out, " 0 refused") {
				t.Errorf("the node prints %s", out)
			}
		})
	}
}

// The node of ping refuses others than those that --allow includes, too.
func TestRDSPingAllows(t *testing.T) {
	ownRuntime(t)
	at := rdsNetOf(t)
	rdsPeer(t, at, "tcp") // the only one that is allowed
	p := start(t, "rds", "ping", "-i", "0.01", "--allow", at.peer, "--source", at.own, "--transport-port", at.port, at.peer)
	p.out.wait(t, "   1: ")
	status, out, errOut := urnic(t, nil, "rds", "ping", "-c", "1", "--timeout", "100ms", "--source", at.passive, "--transport-port", at.port, at.own)
	if status != 1 || !strings.Contains(out, "1 ping, 0 answers\n") {
		t.Errorf("status %d, %s, %s", status, out, errOut)
	}
	p.interrupt()
	p.end(t)
}

// A passive side closes control connections of others, and waits on.
func TestRDSStressAllows(t *testing.T) {
	ownRuntime(t)
	at, port := rdsNetOf(t), ownPort(t)
	common := []string{"-p", port, "--transport-port", at.port}
	passive := start(t, append([]string{"rds", "stress", "-r", at.passive, "--allow", at.active}, common...)...)
	passive.out.wait(t, "waiting for incoming connection")
	status, _, errOut := urnic(t, nil, append([]string{"rds", "stress", "-r", at.own, "-s", at.passive, "--requests", "1"}, common...)...)
	if status != 1 || !strings.Contains(errOut, at.passive+" has ended the run before it began: see what it has printed") {
		t.Errorf("status %d, stderr %q", status, errOut)
	}
	passive.out.wait(t, "refused a connection from "+at.own+", which --allow does not include\n")
	ok(t, append([]string{"rds", "stress", "-r", at.active, "-s", at.passive, "--requests", "10", "--allow", at.passive}, common...)...)
	passive.end(t)
}

// A link-local address is one with its zone. Prefixes have none.
func TestRDSAddressesHaveTheirZone(t *testing.T) {
	for _, a := range []net.Addr{&net.UDPAddr{IP: net.ParseIP("fe80::1"), Port: 1, Zone: "eth0"}, &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 1, Zone: "eth0"}} {
		if got := hostOfAddr(a); got != netip.MustParseAddr("fe80::1%eth0") {
			t.Errorf("%v: %v", a, got)
		}
	}
	if got := hostOfAddr(&net.TCPAddr{IP: net.ParseIP("::ffff:192.0.2.1"), Port: 1}); got != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("%v", got)
	}
	o := rdsFlags{allowed: []netip.Prefix{netip.MustParsePrefix("fe80::/64")}}
	if !o.allows(netip.MustParseAddr("fe80::1%eth0")) || o.allows(netip.MustParseAddr("fe80:0:0:1::1%eth0")) {
		t.Error("the prefix of link-local addresses")
	}
}
