//go:build interop

package interop

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"urnic/mpa"
	"urnic/rnic"
)

// pieces is a connection that can cut the end off what is written, and hands it on when the reader has
// read the rest.
type pieces struct {
	net.Conn
	cut atomic.Bool
}

func (c *pieces) Write(b []byte) (int, error) {
	const last = 2
	if !c.cut.Load() || len(b) <= last {
		return c.Conn.Write(b)
	}
	n, err := c.Conn.Write(b[:len(b)-last])
	if err != nil {
		return n, err
	}
	for end := time.Now().Add(patience); ; {
		waits, err := unread(c.RemoteAddr(), c.LocalAddr())
		if err != nil {
			return n, err
		}
		if !waits || time.Now().After(end) {
			break
		}
	}
	m, err := c.Conn.Write(b[len(b)-last:])
	return n + m, err
}

// unread reports whether a socket of this machine, of IPv4, has received what nobody has read, see proc(5).
func unread(local, remote net.Addr) (bool, error) {
	b, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return false, err
	}
	name := func(a net.Addr) string {
		tcp := a.(*net.TCPAddr)
		ip := tcp.IP.To4()
		return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], tcp.Port)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 && f[1] == name(local) && f[2] == name(remote) {
			return !strings.HasSuffix(f[4], ":00000000"), nil
		}
	}
	return false, nil // it is closed
}

// A piecesListener makes the next connection one of pieces.
type piecesListener struct {
	net.Listener
	next *pieces
}

func (l *piecesListener) Accept() (_ net.Conn, err error) {
	l.next.Conn, err = l.Listener.Accept()
	return l.next, err
}

// siw does with a CRC in pieces what its recogniser says, which tells that from other failures.
func TestSIWTakesACRCInPiecesForWrong(t *testing.T) {
	t.Run("of our Writes", func(t *testing.T) {
		mark := theGuest.mark(t)
		u := newULP(t, newDevice(t))
		p := theGuest.start(t, fmt.Sprintf("peerops server -a 10.0.2.15 -p %d", portOps))
		p.expect("listening")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		conn := &pieces{}
		dial := func(ctx context.Context) (_ net.Conn, err error) {
			conn.Conn, err = new(net.Dialer).DialContext(ctx, "tcp", theGuest.address(portOps))
			return conn, err
		}
		if err := u.qp.ConnectVia(ctx, dial, rnic.ConnParam{MPA: settled(mpa.Config{})}); err != nil {
			t.Fatalf("%v\n%s", err, p.end())
		}
		params, _ := u.qp.Params()
		remote := parseRegions(t, params.PrivateData)[regionRW].remote
		const most = 64 // octets, and from one on: of each length of the pad
		mr := u.register(messagePattern(most), 0)
		conn.cut.Store(true)
		writes := 0
		for ; u.qp.State() == rnic.RTS; writes++ { // not each one arrives in pieces
			if err := u.qp.PostSend(rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{mr.SGE(0, writes%most+1)}, Remote: remote}); err != nil {
				break
			}
			if wc := u.next(); wc.Err() != nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("siw has taken %d Writes whose ends were cut", writes)
			}
		}
		t.Logf("the connection has ended after %d Writes", writes)
		p.end()
		wantSplitCRC(t, u, server, mark)
	})
	// This is a Read that fails with GENERAL_ERR (21).
	t.Run("of our answers", func(t *testing.T) {
		mark := theGuest.mark(t)
		u := newULP(t, newDevice(t))
		r := u.offer()
		at, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		conn := &pieces{}
		l, err := u.dev.ListenOn(&piecesListener{at, conn})
		if err != nil {
			t.Fatal(err)
		}
		p := theGuest.start(t, fmt.Sprintf("peerops client -a %s -p %d -b read 1000 100000", hostOfGuest, at.Addr().(*net.TCPAddr).Port))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		req, err := l.Accept(ctx)
		if err != nil {
			t.Fatalf("%v\n%s", err, p.end())
		}
		if err := req.Accept(ctx, u.qp, rnic.ConnParam{PrivateData: r.describe()}); err != nil {
			t.Fatal(err)
		}
		conn.cut.Store(true)
		p.expect("status=GENERAL_ERR")
		p.end()
		wantSplitCRC(t, u, client, mark)
	})
}

// wantSplitCRC checks that this is what is recognised in what a connection has left.
func wantSplitCRC(t *testing.T, u *ulp, siw side, mark string) {
	t.Helper()
	_ = u.dev.Close()
	e := &evidence{siw: siw, kernel: theGuest.since(t, mark)}
	if err := e.read(recording(t)); err != nil {
		t.Fatal(err)
	}
	got, found, ok := recognise(e)
	if !ok || got != splitCRC {
		t.Errorf("recognised: %v, %v, %s; siw's kernel says:\n%s", ok, got, found, e.kernel)
	}
	t.Log(found)
}
