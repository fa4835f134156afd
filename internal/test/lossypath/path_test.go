//go:build lossypath

package lossypath

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The addresses of the path: what listens at near is reached at far.
const (
	near = "10.9.0.1"
	far  = "10.9.0.2"
	mtu  = 1500
)

// A path loses and delays packets of IPv4, in both directions alike.
type path struct {
	loss  float64
	delay time.Duration // of one direction
	tun   *os.File
	queue chan packet

	packets, lost atomic.Int64
	late, latest  atomic.Int64 // how much later than they should packets came, the sum and the most, in ns
}

type packet struct {
	due  time.Time
	data []byte
}

// newPath makes the TUN device, and begins to carry packets.
func newPath(t *testing.T, loss float64, delay time.Duration) *path {
	t.Helper()
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal("opening /dev/net/tun:", err)
	}
	request, err := unix.NewIfreq("path")
	if err != nil {
		t.Fatal(err)
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		t.Fatal("making the TUN device:", err)
	}
	// What waits in the device's own queue must not be lost there.
	for _, args := range []string{"addr add " + near + "/24 dev path", fmt.Sprintf("link set path up mtu %d txqueuelen 20000", mtu)} {
		if out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", args, err, out)
		}
	}
	p := &path{loss: loss, delay: delay, tun: os.NewFile(uintptr(fd), "/dev/net/tun"), queue: make(chan packet, 1<<16)}
	done := make(chan struct{}, 2)
	go func() { p.take(); close(p.queue); done <- struct{}{} }()
	go func() { p.give(); done <- struct{}{} }()
	t.Cleanup(func() {
		p.tun.Close() // it ends the loops
		<-done
		<-done
	})
	return p
}

// take takes the packets that leave, until the device is closed.
func (p *path) take() {
	rng := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, mtu)
	for {
		n, err := p.tun.Read(buf)
		if err != nil {
			return
		}
		b := buf[:n]
		if n < 20 || b[0]>>4 != 4 {
			continue
		}
		p.packets.Add(1)
		if rng.Float64() < p.loss {
			p.lost.Add(1)
			continue
		}
		data := append([]byte(nil), b...)
		copy(data[12:16], b[16:20])
		copy(data[16:20], b[12:16])
		p.queue <- packet{time.Now().Add(p.delay), data}
	}
}

// give returns each packet when it is due.
func (p *path) give() {
	for packet := range p.queue {
		time.Sleep(time.Until(packet.due))
		late := int64(time.Since(packet.due))
		p.late.Add(late)
		p.latest.Store(max(p.latest.Load(), late))
		if _, err := p.tun.Write(packet.data); err != nil {
			return
		}
	}
}

// dropped returns how many packets the device's own queue has lost.
func (*path) dropped(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	const sendDrop = 8 + 3 // after the 8 columns of what is received
	for line := range strings.Lines(string(text)) {
		if name, counts, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "path" {
			if f := strings.Fields(counts); len(f) > sendDrop {
				return f[sendDrop]
			}
		}
	}
	t.Fatalf("/proc/self/net/dev does not show the device:\n%s", text)
	return ""
}
