//go:build interop

package interop

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"

	"urnic/mpa"
	"urnic/pd"
	"urnic/rnic"
)

// held returns what of a device's resources is held by connections and queues.
func held(d *rnic.Device) map[string]uint64 {
	out := map[string]uint64{}
	for _, r := range []pd.Resource{pd.QueuePairs, pd.CompletionQueues, pd.CQEntries, pd.SendWRs, pd.RecvWRs, pd.InboundReads, pd.OutboundReads, pd.HalfOpen} {
		if n := d.Held(r); n != 0 {
			out[r.String()] = n
		}
	}
	return out
}

// rdma_client sends 16 octets, and rdma_server answers with 16 octets.
const toolMessage = 16

func TestRdmaServerOfSIWWithAClientOfOurs(t *testing.T) {
	withSIW(t, server, func(t testing.TB) {
		p := theGuest.start(t, fmt.Sprintf("rdma_server -p %d", portTools))
		theGuest.listens(t, portTools)
		u := newULP(t, newDevice(t))
		buf := make([]byte, toolMessage)
		mr := u.register(buf, rnic.LocalWrite)
		if err := u.qp.PostRecv(rnic.RecvWR{ID: 1, SGL: []rnic.SGE{mr.SGE(0, toolMessage)}}); err != nil {
			t.Fatal(err)
		}
		if err := u.qp.Connect(t.Context(), theGuest.address(portTools), rnic.ConnParam{MPA: settled(mpa.Config{})}); err != nil {
			t.Fatal(err)
		}
		u.do(rnic.SendWR{ID: 2, Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: make([]byte, toolMessage)})
		if wc := u.next(); wc.Err() != nil || wc.ByteLen != toolMessage {
			t.Errorf("the answer: %+v", wc)
		}
		u.disconnect()
		p.expect("rdma_server: end 0")
		p.wait()
		_ = u.dev.Close()
		checkRecording(t, recording(t), server)
	})
}

func TestRdmaClientOfSIWWithAServerOfOurs(t *testing.T) {
	withSIW(t, client, func(t testing.TB) {
		u := newULP(t, newDevice(t))
		mr := u.register(make([]byte, toolMessage), rnic.LocalWrite)
		if err := u.qp.PostRecv(rnic.RecvWR{ID: 1, SGL: []rnic.SGE{mr.SGE(0, toolMessage)}}); err != nil {
			t.Fatal(err)
		}
		l, err := u.dev.Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p := theGuest.start(t, fmt.Sprintf("rdma_client -s %s -p %d", hostOfGuest, l.Addr().(*net.TCPAddr).Port))
		req, err := l.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := req.Accept(t.Context(), u.qp, rnic.ConnParam{}); err != nil {
			t.Fatal(err)
		}
		if wc := u.next(); wc.Err() != nil || wc.ByteLen != toolMessage {
			t.Errorf("the client's message: %+v", wc)
		}
		u.do(rnic.SendWR{ID: 2, Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: make([]byte, toolMessage)})
		p.expect("rdma_client: end 0")
		p.wait()
		_ = u.dev.Close()
		checkRecording(t, recording(t), client)
	})
}

// ucmatose opens connections, and on each of them both sides send messages.
const (
	ucmatoseConnections = 3
	ucmatoseCount       = 10
	ucmatoseSize        = 3000
)

// ucmatoseLoad is what tells ucmatose of them.
var ucmatoseLoad = fmt.Sprintf("-c %d -C %d -S %d", ucmatoseConnections, ucmatoseCount, ucmatoseSize)

// exchange is one side of ucmatose on one connection.
func (u *ulp) exchange() error {
	msg := u.register(make([]byte, ucmatoseSize), 0)
	for i := range ucmatoseCount {
		if err := u.qp.PostSend(rnic.SendWR{ID: uint64(i), Op: rnic.OpSend, SGL: []rnic.SGE{msg.SGE(0, ucmatoseSize)}}); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	var wcs [1]rnic.WC
	for range 2 * ucmatoseCount {
		if _, err := u.cq.Wait(ctx, wcs[:]); err != nil {
			return err
		}
		if err := wcs[0].Err(); err != nil {
			return err
		}
	}
	return nil
}

func (u *ulp) postReceives() {
	u.t.Helper()
	mr := u.register(make([]byte, ucmatoseCount*ucmatoseSize), rnic.LocalWrite)
	for i := range ucmatoseCount {
		if err := u.qp.PostRecv(rnic.RecvWR{ID: uint64(i), SGL: []rnic.SGE{mr.SGE(i*ucmatoseSize, ucmatoseSize)}}); err != nil {
			u.t.Fatal(err)
		}
	}
}

func TestUcmatoseOfSIWWithClientsOfOurs(t *testing.T) {
	withSIW(t, server, func(t testing.TB) {
		p := theGuest.start(t, fmt.Sprintf("ucmatose %s -p %d", ucmatoseLoad, portTools))
		theGuest.listens(t, portTools)
		dev := newDevice(t)
		var us []*ulp
		for range ucmatoseConnections {
			u := newULP(t, dev)
			u.postReceives()
			if err := u.qp.Connect(t.Context(), theGuest.address(portTools), rnic.ConnParam{MPA: settled(mpa.Config{})}); err != nil {
				t.Fatal(err)
			}
			us = append(us, u)
		}
		var wg sync.WaitGroup
		for i, u := range us {
			wg.Go(func() {
				if err := u.exchange(); err != nil {
					t.Errorf("connection %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		p.expect("data transfers complete")
		for _, u := range us {
			u.disconnect()
		}
		p.wait()
		_ = dev.Close()
		checkRecording(t, recording(t), server)
	})
}

// ucmatose's server speaks first. As MPA Responder it may do so only in the
// peer-to-peer model, which siw asks for if told.
func TestUcmatoseOfSIWWithAServerOfOurs(t *testing.T) {
	withSIW(t, client, func(t testing.TB) {
		theGuest.peerToPeer(t, true)
		defer theGuest.peerToPeer(t, false)
		dev := newDevice(t)
		l, err := dev.Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		p := theGuest.start(t, fmt.Sprintf("ucmatose %s -s %s -p %d", ucmatoseLoad, hostOfGuest, n))
		var (
			wg   sync.WaitGroup
			ulps []*ulp
		)
		for i := range ucmatoseConnections {
			u := newULP(t, dev)
			ulps = append(ulps, u)
			u.postReceives()
			req, err := l.Accept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := req.Accept(t.Context(), u.qp, rnic.ConnParam{}); err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				if err := u.exchange(); err != nil {
					t.Errorf("connection %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		for _, u := range ulps {
			u.disconnect() // ucmatose's client leaves that to the server
		}
		p.wait()
		_ = dev.Close()
		checkRecording(t, recording(t), client)
	})
}
