package mpa

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"urnic/internal/host/memfault"
	"urnic/internal/test/simnet"
)

// losable returns n bytes, and a function after which they can't be touched.
func losable(t *testing.T, n int) (mem []byte, lose func()) {
	t.Helper()
	memfault.Guard()
	p, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(p); err != nil {
			t.Error(err)
		}
	})
	for i := range p {
		p[i] = byte(i / 7)
	}
	return p, func() {
		if err := unix.Mprotect(p, unix.PROT_NONE); err != nil {
			t.Error(err)
		}
	}
}

// What Post can't read it does not take, and the connection continues.
func TestPayloadThatCannotBeReadIsNotTaken(t *testing.T) {
	for _, crc := range []CRCPolicy{CRCPrefer, CRCOff} {
		for _, markers := range []bool{false, true} {
			for _, stable := range []bool{false, true} {
				t.Run(fmt.Sprintf("crc=%v markers=%v stable=%v", crc, markers, stable), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						cfg := Config{CRC: crc, Markers: markers}
						a, b := simnet.Pipe(simnet.Options{})
						ini, res := connect(t, a, b, cfg, cfg)
						bad, lose := losable(t, 40000)
						lose()
						good := bytes.Repeat([]byte("good"), 2000)
						var want [][]byte
						for _, n := range []int{8, 100, 4096, 40000} {
							for _, payload := range [][][]byte{{bad[:n]}, {good, bad[:n]}} {
								before := ini.Posted()
								ok, err := ini.Post([]byte("header"), payload, stable)
								if ok || !errors.As(err, new(*memfault.Error)) || ini.Posted() != before {
									t.Fatalf("%d bytes that can't be read: %v, %v, %d bytes posted", n, ok, err, ini.Posted()-before)
								}
								if ini.out.octets == 0 && ini.out.arena != nil {
									t.Error("an empty batch holds an arena")
								}
								if ok, err := ini.Post([]byte("header"), [][]byte{good}, stable); !ok || err != nil {
									t.Fatal(ok, err)
								}
								want = append(want, slices.Concat([]byte("header"), good))
							}
						}
						go func() {
							for {
								if done, err := ini.Flush(true); done || err != nil {
									if err != nil {
										t.Error(err)
									}
									return
								}
							}
						}()
						for i, got := range receive(t, res, len(want)) {
							if !bytes.Equal(got, want[i]) {
								t.Errorf("ULPDU %d of %d bytes is not what was posted", i, len(got))
							}
						}
						synctest.Wait()
					})
				})
			}
		}
	}
}

// A plain is a TCP connection that sockio does not know as one.
type plain struct{ net.Conn }

// Payload that is lost after Post ends the connection: what precedes it is sent, and
// the error says where it was.
func TestPayloadThatIsLostBeforeFlushEndsSending(t *testing.T) {
	for _, crc := range []CRCPolicy{CRCPrefer, CRCOff} {
		for name, over := range map[string]func(c net.Conn) net.Conn{
			"socket":    func(c net.Conn) net.Conn { return c },
			"goroutine": func(c net.Conn) net.Conn { return plain{c} },
		} {
			t.Run(fmt.Sprintf("%s crc=%v", name, crc), func(t *testing.T) {
				a, b := sockets(t, "127.0.0.1:0")
				cfg := Config{CRC: crc}
				ini, res := connect(t, over(a), b, cfg, cfg)
				bad, lose := losable(t, 8192)
				good := bytes.Repeat([]byte("good"), 2000)
				var want [][]byte
				posted := uint64(0)
				for _, payload := range [][][]byte{{good}, {good[:50]}, {good[:4096], bad}, {good}} {
					if ok, err := ini.Post([]byte("header"), payload, true); !ok || err != nil {
						t.Fatal(ok, err)
					}
					if len(payload) == 1 && posted == 0 {
						want = append(want, slices.Concat([]byte("header"), payload[0]))
					} else if posted == 0 {
						posted = ini.Posted()
					}
				}
				lose()
				for range 3 { // it stays so
					done, err := ini.Flush(false)
					var lost *MemoryError
					if done || !errors.As(err, &lost) || !errors.As(err, new(*memfault.Error)) {
						t.Fatalf("%v, %v", done, err)
					}
					if lost.Position != ini.Accepted() || lost.Position >= posted || lost.Position < posted-uint64(len(bad))-8 {
						t.Errorf("it was lost at %d; %d were accepted, and the FPDU ends at %d", lost.Position, ini.Accepted(), posted)
					}
					if ok, err := ini.Post(nil, [][]byte{good}, true); ok || err != nil {
						t.Errorf("one more is posted: %v, %v", ok, err)
					}
				}
				if len(ini.out.kept)+len(ini.out.foreign)+len(ini.out.pieces) != 0 || ini.out.arena != nil {
					t.Errorf("the batch holds memory: %+v", &ini.out)
				}
				for i, got := range receive(t, res, len(want)) {
					if !bytes.Equal(got, want[i]) {
						t.Errorf("ULPDU %d of %d bytes is not what was posted", i, len(got))
					}
				}
				_ = ini.Abort()
				if err := res.Receive(each(func(u []byte, _ uint64) { t.Errorf("a ULPDU of %d bytes that lacks some", len(u)) })); err == nil {
					t.Error("the connection goes on")
				}
			})
		}
	}
}

// A losing is a stream that takes some bytes, and then memory is lost.
type losing struct {
	*simnet.Conn
	most int
	lose func()
}

func (l *losing) Writev(pieces [][]byte, wait bool) (int, error) {
	if l.lose == nil {
		return l.Conn.Writev(pieces, wait)
	}
	if l.most == 0 {
		l.lose()
		return 0, nil
	}
	taken := 0
	for _, p := range pieces {
		p = p[:min(len(p), l.most)]
		if n, err := l.Conn.Writev([][]byte{p}, wait); n != len(p) || err != nil {
			return taken, errors.Join(err, errors.New("the network does not take it"))
		}
		l.most -= len(p)
		if taken += len(p); l.most == 0 {
			break
		}
	}
	return taken, nil
}

// What the stream does not take at once is copied; payload may be lost until then.
func TestPayloadThatIsLostBeforeItIsCopiedEndsSending(t *testing.T) {
	for _, most := range []int{0, 10, 5000, 9000, 20000, 50000} { // of 8 FPDUs of some 8 KiB; the fourth is bad
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				stream := &losing{Conn: conn}
				c := initiated(t, stream, p, plainConfig, plainReply)
				good := bytes.Repeat([]byte("good"), 2000)
				bad, lose := losable(t, 8192)
				var want []byte
				stream.most = most
				lost := false
				stream.lose = func() { lose(); lost = true }
				var begin, end uint64
				for i := range 8 {
					payload := good
					if i == 3 {
						payload, begin = bad, c.Posted()
					}
					want = append(want, fpdus(&Framer{}, slices.Concat([]byte("header"), payload))...)
					if ok, err := c.Post([]byte("header"), [][]byte{payload}, true); !ok || err != nil {
						t.Fatal(ok, err)
					}
					if i == 3 {
						end = c.Posted()
					}
				}
				for !lost {
					if done, err := c.Flush(false); done || err != nil {
						t.Fatal(done, err)
					}
				}
				stream.lose = nil
				if uint64(most) > end { // it was out before
					flush(t, c)
					p.expects(want)
					return
				}
				done, err := c.Flush(false)
				var gone *MemoryError
				if done || !errors.As(err, &gone) {
					t.Fatal(done, err)
				}
				if gone.Position < begin || gone.Position >= end || gone.Position != c.Accepted() {
					t.Errorf("it was lost at %d of %d to %d; %d were accepted", gone.Position, begin, end, c.Accepted())
				}
				p.expects(want[:gone.Position])
				if len(c.out.kept)+len(c.out.foreign)+len(c.out.pieces) != 0 || c.out.arena != nil {
					t.Errorf("the batch holds memory: %+v", &c.out)
				}
			})
		})
	}
}

// Memory that is lost when it is to be copied takes no arena, nor one that others are in.
func TestLostMemoryIsNotKept(t *testing.T) {
	bad, lose := losable(t, 4096)
	lose()
	for _, good := range []int{0, 10} {
		b := &batch{}
		b.own(5)
		if good > 0 {
			b.refer(make([]byte, good))
		}
		b.refer(bad)
		b.keep()
		var lost *MemoryError
		if !errors.As(b.lost, &lost) || lost.Position != uint64(5+good) {
			t.Errorf("lost: %v; want at %d", b.lost, 5+good)
		}
		if want := min(good, 1); len(b.kept) != want || b.octets != 5+good {
			t.Errorf("%d arenas are kept for %d octets; %d octets are left", len(b.kept), good, b.octets)
		}
		if want := "mpa: payload was lost before it was sent: "; !strings.HasPrefix(b.lost.Error(), want) || !strings.Contains(b.lost.Error(), lost.Err.Error()) {
			t.Errorf("%q; want %q and the cause", b.lost, want)
		}
	}
}
