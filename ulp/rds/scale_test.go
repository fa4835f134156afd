package rds

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"urnic/internal/test/loopback"
)

// What one node must hold within its memory.
const (
	socketsOfPeer = 10
	manySockets   = manyPeers * socketsOfPeer
	memoryOfMany  = 512 << 20
)

// scaleNode is set for the process that has the one node, to its address and its transport.
const scaleNode = "URNIC_RDS_SCALE_NODE"

// One node has 1,000 peers and 10,000 sockets, each of which has received from one of them and
// has answered. It has a process of its own, so that all of its memory counts and nothing
// else: that of Go with the stacks of goroutines, one for each socket among them.
func TestOneNodeHoldsManyPeersAndSockets(t *testing.T) {
	if v := os.Getenv(scaleNode); v != "" {
		addr, over, _ := strings.Cut(v, " ")
		oneOfMany(t, over, netip.MustParseAddr(addr))
		return
	}
	for _, over := range []string{"tcp, 8", "iwarp"} {
		t.Run(over, func(t *testing.T) { holdsMany(t, over) })
	}
}

func holdsMany(t *testing.T, over string) {
	addr := loopback.Of(t).Addr(1)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute) // a hang ends, a busy machine does not fail
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "-test.run=^TestOneNodeHoldsManyPeersAndSockets$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%v %s", scaleNode, addr, over))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	said := func(want string) string {
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), want); ok {
				return rest
			}
			t.Log(lines.Text())
		}
		t.Fatalf("the node has ended before it said %q", want)
		return ""
	}
	said("ready")
	peers := manyOf(t, over)
	var wg sync.WaitGroup
	few := make(chan struct{}, 50) // at once
	for i, p := range peers {
		few <- struct{}{}
		wg.Go(func() {
			defer func() { <-few }()
			if err := talk(ctx, p, i, addr); err != nil {
				t.Errorf("peer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if _, err := in.Write([]byte("weigh\n")); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(said("memory"))
	if len(words) != 3 {
		t.Fatalf("memory: %q", words)
	}
	var n [3]int
	for i, w := range words {
		if n[i], err = strconv.Atoi(w); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d connections: %d MiB of Go, at most %d MiB resident", n[0], n[1]>>20, n[2]>>20)
	if n[0] < manyPeers {
		t.Errorf("%d connections are up", n[0])
	}
	if n[1] > memoryOfMany {
		t.Errorf("%d MiB of memory", n[1]>>20)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// manyTransport returns a transport of one of the nodes. Those of a process share an RNIC.
func manyTransport(t *testing.T, over string, shared *IWARP) Transport {
	if over == "iwarp" {
		return &IWARP{Device: shared.Device}
	}
	return transports[over](t)
}

// manyOf makes the peers.
func manyOf(t *testing.T, over string) (out []*Node) {
	shared := &IWARP{}
	newIWARP(t, shared)
	var net loopback.Net
	for i := range manyPeers {
		if i%200 == 0 {
			net = loopback.Of(t)
		}
		n, err := Open(t.Context(), Config{Addr: net.Addr(byte(1 + i%200)), Transports: []Transport{manyTransport(t, over, shared)}})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	t.Cleanup(func() {
		var wg sync.WaitGroup
		for _, n := range out {
			wg.Go(func() {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
	return out
}

// talk sends a datagram to each socket that is for peer i, and receives the answers. One of
// them is long.
func talk(ctx context.Context, n *Node, i int, to netip.Addr) error {
	s, err := n.Bind(0)
	if err != nil {
		return err
	}
	for j := range socketsOfPeer {
		data := binary.BigEndian.AppendUint64(nil, uint64(i*socketsOfPeer+j))
		if j == 0 {
			data = append(data, make([]byte, 64<<10)...)
		}
		if err := s.SendTo(ctx, data, Addr{Host: to, Port: manyPort(i*socketsOfPeer + j)}); err != nil {
			return err
		}
	}
	got := map[uint64]bool{}
	for range socketsOfPeer {
		msg, err := s.Receive(ctx)
		if err != nil {
			return err
		}
		got[binary.BigEndian.Uint64(msg.Data)] = true
	}
	if len(got) != socketsOfPeer {
		return fmt.Errorf("%d of %d sockets have answered", len(got), socketsOfPeer)
	}
	return s.Flush(ctx)
}

func manyPort(i int) uint16 { return uint16(20_000 + i) }

// oneOfMany is the node, in a process of its own. It says what memory it takes when it is asked.
func oneOfMany(t *testing.T, over string, addr netip.Addr) {
	shared := &IWARP{}
	newIWARP(t, shared)
	n, err := Open(t.Context(), Config{Addr: addr, Transports: []Transport{manyTransport(t, over, shared)}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range manySockets {
		s, err := n.Bind(manyPort(i))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			buf := make([]byte, 128) // a long one loses its rest
			for {
				k, from, err := s.RecvFrom(context.Background(), buf)
				if k < 8 && err != nil {
					return
				}
				if err := s.SendTo(context.Background(), buf[:k], from); err != nil {
					return
				}
			}
		})
	}
	fmt.Println("ready")
	asked := bufio.NewScanner(os.Stdin)
	if asked.Scan() {
		up := 0
		for _, c := range n.Info(0).Connections {
			up += len(c.Paths)
		}
		debug.FreeOSMemory() // what is in use counts, not what the collector has not come to
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println("memory", up, m.Sys-m.HeapReleased, resident())
	}
	asked.Scan() // the parent has done
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// resident returns the most memory that the process has had, or 0 where the system does not tell.
func resident() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "VmHWM:" {
			kib, _ := strconv.Atoi(string(f[1]))
			return kib << 10
		}
	}
	return 0
}
