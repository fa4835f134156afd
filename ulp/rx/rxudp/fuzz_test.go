package rxudp_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxref"
	"urnic/ulp/rx/rxudp"
	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// datagrams cuts an input into datagrams: a length of two bytes in front of each.
func datagrams(b []byte) (all [][]byte) {
	for len(b) >= 2 && len(all) < 64 {
		n := min(int(binary.BigEndian.Uint16(b))&0x3fff, len(b)-2)
		all = append(all, b[2:2+n])
		b = b[2+n:]
	}
	return all
}

// packet is a packet in the form that datagrams takes.
func packet(h wire.Header, body ...byte) []byte {
	b := make([]byte, wire.HeaderLen, wire.HeaderLen+len(body))
	h.Put(b)
	b = append(b, body...)
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
}

// seeds are packets of each type, of a call to the service.
func seeds(client bool) (all [][]byte) {
	flags := wire.Flags(0)
	if client {
		flags = wire.FlagClient
	}
	var exchange []byte
	for t := range wire.Type(14) {
		for _, security := range []uint8{0, 2} {
			h := wire.Header{
				Epoch: 0x80000001, CID: 4, Call: 1, Seq: 1, Serial: 1, Type: t, Flags: flags | wire.FlagRequestAck | wire.FlagLast,
				Security: security, Service: rxref.ID,
			}
			p := packet(h, make([]byte, 64)...)
			all = append(all, p)
			exchange = append(exchange, p...)
		}
	}
	return append(all, exchange)
}

// FuzzServer gives a live server any datagrams. Then it serves an honest client.
func FuzzServer(f *testing.F) {
	for _, s := range seeds(true) {
		f.Add(s)
	}
	r := newRealm(f)
	server := open(f, rxudp.Config{Addr: loopback, MaxConns: 50, Memory: 1 << 20, Services: []rx.Service{{
		ID: rxref.ID, Handler: rxref.Handler(), Security: []secure.Server{r.server(f, 0)}, Queue: 10,
	}}})
	hostile, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(server.Addr()))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { hostile.Close() })
	honest := open(f, rxudp.Config{Addr: loopback})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, d := range datagrams(b) {
			_, _ = hostile.Write(d) // what it can't send is no test
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a hang ends
		defer cancel()
		c, err := honest.Dial(ctx, server.Addr(), rxref.ID, rx.DialConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := rxref.NewClient(c).Null(ctx); err != nil && rx.AbortCode(err) != busy {
			t.Error(err)
		}
	})
}

const busy = -100 // the hostile client's calls have taken all workers

// FuzzClient has a live client call a server that answers with any datagrams. The call ends,
// and a later one at an honest server succeeds.
func FuzzClient(f *testing.F) {
	for _, s := range seeds(false) {
		f.Add(s)
	}
	hostile, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(loopback))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { hostile.Close() })
	honest := serve(f, echo)
	client := open(f, rxudp.Config{Addr: loopback, Memory: 1 << 20})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := client.Dial(t.Context(), hostile.LocalAddr().(*net.UDPAddr).AddrPort(), 7, rx.DialConfig{})
		if err != nil {
			t.Fatal(err)
		}
		k, err := c.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Write([]byte("request")); err != nil {
			t.Fatal(err)
		}
		if err := k.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		h, from := request(t, hostile, client.Addr())
		for _, d := range datagrams(b) {
			if len(d) >= wire.HeaderLen { // of this connection, or it would be nobody's
				d = append([]byte(nil), d...)
				binary.BigEndian.PutUint32(d, h.Epoch)
				binary.BigEndian.PutUint32(d[4:], h.CID)
			}
			_, _ = hostile.WriteToUDPAddrPort(d, from) // the same
		}
		if got, err := exchange(t.Context(), dialAt(t, client, honest), []byte("honest")); err != nil || string(got) != "honest" {
			t.Errorf("the honest server answered %q, %v", got, err)
		}
		k.Close()
		if _, err := k.Read(make([]byte, 1)); err == nil {
			t.Error("a call that has ended can be read")
		}
		c.Close()
	})
}

// request returns the header of the first packet of the call that is new.
func request(t *testing.T, at *net.UDPConn, client netip.AddrPort) (wire.Header, netip.AddrPort) {
	t.Helper()
	b := make([]byte, 1<<16)
	for {
		if err := at.SetReadDeadline(time.Now().Add(time.Minute)); err != nil { // a hang ends
			t.Fatal(err)
		}
		n, from, err := at.ReadFromUDPAddrPort(b)
		if err != nil {
			t.Fatal(err)
		}
		h, err := wire.ParseHeader(b[:n])
		if err == nil && from == client && h.Type == wire.TypeData && h.Seq == 1 {
			return h, from
		}
	}
}

func dialAt(t *testing.T, from, to rx.Endpoint) rx.Conn {
	t.Helper()
	c, err := from.Dial(t.Context(), to.Addr(), 7, rx.DialConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
