//go:build linux

package dropin

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/internal/dropin/datagram"
)

// plainUDP is a pair of UDP sockets that their user polls.
type plainUDP struct {
	b    testing.TB
	fds  [2]int
	at   [2]unix.Sockaddr
	data []byte
}

func newPlainUDP(b testing.TB, size int) *plainUDP {
	b.Helper()
	p := &plainUDP{b: b, data: make([]byte, size)}
	for i := range p.fds {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
		}
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { unix.Close(fd) })
		p.fds[i] = fd
		p.at[i], err = unix.Getsockname(fd)
		if err != nil {
			b.Fatal(err)
		}
	}
	return p
}

func (p *plainUDP) pass(from, n int) {
	for range n {
		if err := unix.Sendto(p.fds[from], p.data, 0, p.at[1-from]); err != nil {
			p.b.Fatal(err)
		}
	}
	for range n {
		for {
			// Not unix.Recvfrom, which makes a second system call.
			_, _, err := unix.Syscall6(unix.SYS_RECVFROM, uintptr(p.fds[1-from]), uintptr(unsafe.Pointer(&p.data[0])), uintptr(len(p.data)), unix.MSG_DONTWAIT, 0, 0)
			if err == 0 {
				break
			}
		}
	}
}

// datagramPair is the same with UD queue pairs of two processes.
type datagramPair struct {
	ends  [2]*end
	sends [2][16]SendWR
	recvs [2]RecvWR
	sges  [4]SGE
	wcs   [32]WC
}

func newDatagramPair(b testing.TB, size int) *datagramPair {
	b.Helper()
	p := new(datagramPair)
	for i := range p.ends {
		p.ends[i] = newLab(b, ethernetSetting).udEnd()
	}
	for i, e := range p.ends {
		p.sges[i], p.sges[2+i] = e.sge(0, size), e.sge(0, datagram.GRHLen+size)
		ah := e.ah(AHAttr{})
		for j := range p.sends[i] {
			p.sends[i][j] = SendWR{SGL: &p.sges[i], NumSGE: 1, Opcode: wrSend}
			p.sends[i][j].at(ah, p.ends[1-i].init.QPN, testKey)
		}
		p.recvs[i] = RecvWR{SGL: &p.sges[2+i], NumSGE: 1}
		for range 64 {
			e.lab.must("post receive", e.lab.QPPostRecv(e.qp, &p.recvs[i], nil))
		}
	}
	return p
}

// pass sends n datagrams, up to list of them with one call.
func (p *datagramPair) pass(from, n, list int) {
	a, b := p.ends[from], p.ends[1-from]
	wrs := &p.sends[from]
	for i := range list - 1 {
		wrs[i].Next = &wrs[i+1]
	}
	wrs[list-1].Next = nil
	for i := 0; i < n; i += list {
		a.lab.must("post send", a.lab.QPPostSend(a.qp, &wrs[0], nil))
	}
	for got := 0; got < n; {
		k := int(b.lab.CQPoll(b.cq, int32(len(p.wcs)), &p.wcs[0]))
		for range k {
			b.lab.must("post receive", b.lab.QPPostRecv(b.qp, &p.recvs[1-from], nil))
		}
		if got += k; k == 0 {
			a.lab.CQPoll(a.cq, int32(len(p.wcs)), &p.wcs[0]) // it may wait for an answer
		}
	}
}

// BenchmarkDatagramsBesideUDP measures round trips, and the rate of datagrams that are posted one at a time and in lists of
// 16, by turns with plain UDP by sendto and recvfrom. One thread does the work of both sides. ratio is the time of UDP to that of
// the queue pairs.
func BenchmarkDatagramsBesideUDP(b *testing.B) {
	for _, size := range []int{64, 1024, 4096} {
		for _, kind := range []struct {
			name    string
			n, list int
		}{{"latency", 1, 1}, {"rate", 16, 1}, {"rate-of-lists", 16, 16}} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, size), func(b *testing.B) {
				plain, ours := newPlainUDP(b, size), newDatagramPair(b, size)
				const round = 64
				var spent [2]time.Duration
				each := func(i int, pass func(from, n int)) {
					began := time.Now()
					for range round / kind.n {
						pass(0, kind.n)
						if kind.n == 1 {
							pass(1, 1)
						}
					}
					spent[i] += time.Since(began)
				}
				for b.Loop() {
					each(0, plain.pass)
					each(1, func(from, n int) { ours.pass(from, n, kind.list) })
				}
				per := float64(b.N * round)
				b.ReportMetric(float64(spent[0])/per, "udp-ns")
				b.ReportMetric(float64(spent[1])/per, "ours-ns")
				b.ReportMetric(float64(spent[0])/float64(spent[1]), "ratio")
			})
		}
	}
}
