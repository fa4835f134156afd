package rds

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"urnic/mpa"
	"urnic/rnic"
	"urnic/ulp/rds/wire"
)

// byteConn is a hostileConn over TCP.
type byteConn struct{ net.Conn }

func dialBytes(ctx context.Context) (hostileConn, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(hostileAddr, 0))}
	c, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(victimAddr, 26385).String())
	return byteConn{c}, err
}

func (c byteConn) write(b []byte) error {
	_, err := c.Write(b)
	return err
}

func (c byteConn) read() (wire.Header, []byte, error) {
	var b [wire.HeaderLen]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return wire.Header{}, nil, err
	}
	h, err := wire.ParseHeader(b[:])
	if err != nil {
		return h, nil, err
	}
	data := make([]byte, h.Len)
	_, err = io.ReadFull(c, data)
	return h, data, err
}

func (c byteConn) close() { _ = c.Close() }

// verbConn is a hostileConn over iWARP.
type verbConn struct {
	pd          *rnic.PD
	cq          *rnic.CQ // of receives
	sent        *rnic.CQ
	qp          *rnic.QP
	mr          *rnic.MR
	mem         []byte // slots of receives, and one of Sends
	slots, size int
	ctx         context.Context
	stop        context.CancelFunc
	mu          sync.Mutex // of who writes
}

func dialVerbs(ctx context.Context, dev *rnic.Device, private wire.Private) (_ hostileConn, err error) {
	raw, err := private.AppendTo(nil)
	if err != nil {
		return nil, err
	}
	return dialPrivate(ctx, dev, raw)
}

// dialPrivate connects with any private data.
func dialPrivate(ctx context.Context, dev *rnic.Device, private []byte) (hostileConn, error) {
	return connectVerbs(ctx, dev, 256, private, func(ctx context.Context) (net.Conn, error) {
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(hostileAddr, 0))}
		return d.DialContext(ctx, "tcp", net.JoinHostPort(victimAddr.String(), strconv.Itoa(RDMAPort4)))
	})
}

// connectVerbs connects with so many receives over a byte stream.
func connectVerbs(ctx context.Context, dev *rnic.Device, receives int, private []byte, open mpa.DialFunc) (_ hostileConn, err error) {
	c := &verbConn{slots: receives, size: 16 << 10}
	c.mem = make([]byte, (c.slots+1)*c.size)
	c.ctx, c.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.pd, err = dev.AllocPD(); err != nil {
		return nil, err
	}
	if c.cq, err = dev.CreateCQ(rnic.CQAttr{Entries: c.slots}); err != nil {
		return nil, err
	}
	if c.sent, err = dev.CreateCQ(rnic.CQAttr{Entries: 16}); err != nil {
		return nil, err
	}
	if c.qp, err = c.pd.CreateQP(rnic.QPAttr{SendCQ: c.sent, RecvCQ: c.cq, MaxSendWR: 16, MaxRecvWR: c.slots, MaxSGE: 1}); err != nil {
		return nil, err
	}
	if c.mr, err = c.pd.Register(c.mem, rnic.LocalWrite); err != nil {
		return nil, err
	}
	for i := range c.slots {
		if err := c.post(i); err != nil {
			return nil, err
		}
	}
	var w IWARP
	return c, c.qp.ConnectVia(ctx, open, w.conn(private))
}

func (c *verbConn) post(slot int) error {
	return c.qp.PostRecv(rnic.RecvWR{ID: uint64(slot), SGL: []rnic.SGE{c.mr.SGE(slot*c.size, c.size)}})
}

// write makes one Send, and waits until it is done.
func (c *verbConn) write(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.slots * c.size
	n := copy(c.mem[at:], b)
	wr := rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagSolicited, SGL: []rnic.SGE{c.mr.SGE(at, n)}}
	if err := c.qp.PostSend(wr); err != nil {
		return err
	}
	var wc [1]rnic.WC
	if _, err := c.sent.Wait(c.ctx, wc[:]); err != nil {
		return err
	}
	return wc[0].Err()
}

func (c *verbConn) read() (wire.Header, []byte, error) {
	var wc [1]rnic.WC
	if _, err := c.cq.Wait(c.ctx, wc[:]); err != nil {
		return wire.Header{}, nil, err
	}
	if err := wc[0].Err(); err != nil {
		return wire.Header{}, nil, err
	}
	slot := int(wc[0].ID)
	b := bytes.Clone(c.mem[slot*c.size:][:wc[0].ByteLen])
	h, err := wire.ParseHeader(b)
	if err != nil {
		return h, nil, err
	}
	return h, b[wire.HeaderLen:], c.post(slot)
}

func (c *verbConn) close() {
	c.stop()
	if c.qp != nil {
		c.qp.Abort()
		_ = c.qp.Close()
	}
	for _, r := range []io.Closer{c.mr, c.cq, c.sent, c.pd} {
		_ = r.Close() // those that were made
	}
}
