package rendezvous

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"urnic/mpa"
)

// ask has a process send a request that no program of it has asked for. It returns
// the connection, on which the Reply comes.
func (p *process) ask(to *side, msg Message) net.Conn {
	p.Helper()
	b, err := msg.AppendBinary(nil)
	if err != nil {
		p.Fatal(err)
	}
	return p.askWith(to, b)
}

func (p *process) askWith(to *side, data []byte) net.Conn {
	p.Helper()
	port, _ := to.m.cfg.port(to.num)
	c, err := p.dial(p.Context(), p.host, netip.AddrPortFrom(to.host, port))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = c.Close() })
	block, err := mpa.Enhanced{PeerToPeer: true, RTR: mpa.RTRAll}.AppendBinary(nil)
	if err != nil {
		p.Fatal(err)
	}
	f := mpa.Frame{Revision: mpa.Revision2, CRC: true, Enhanced: true, PrivateData: append(block, data...)}
	b, err := f.AppendBinary(nil)
	if err != nil {
		p.Fatal(err)
	}
	if _, err := c.Write(b); err != nil {
		p.Fatal(err)
	}
	return c
}

// wantRefusal checks that a request is rejected, and why.
func wantRefusal(t testing.TB, c net.Conn, want Reason) {
	t.Helper()
	buf := make([]byte, 512)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	n, err := c.Read(buf)
	if err != nil {
		t.Fatalf("there is no Reply: %v", err)
	}
	f, _, err := mpa.ParseFrame(buf[:n])
	if err != nil || !f.Rejected {
		t.Fatalf("the Reply is %+v, %v", f, err)
	}
	msg, err := Parse(f.ULPData())
	if err != nil || msg.Kind != Refuse || msg.Reason != want {
		t.Errorf("the Reply says %+v, %v; want reason %v", msg, err, want)
	}
}
