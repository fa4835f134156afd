package rdsflow

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rds/wire"
)

// What there is of InfiniBand in a packet of RoCEv2 (IBA, volume 1, chapters 9 and 12): as much as RDS needs.
const (
	bthLen  = 12
	icrcLen = 4
	rethLen = 16
	madAt   = bthLen + 8 // behind the datagram header
	madData = madAt + 24 // what is the connection manager's
	madLen  = madAt + 256

	opUDSend   = 0x64
	serviceTCP = 0x0106 // the port space of the RDMA CM, in front of the port
)

// The messages of the connection manager.
const (
	cmREQ  = 0x10
	cmREJ  = 0x12
	cmREP  = 0x13
	cmRTU  = 0x14
	cmDREQ = 0x15
	cmDREP = 0x16
)

var cmNames = map[uint16]string{cmREQ: "REQ", cmREJ: "REJ", cmREP: "REP", cmRTU: "RTU", cmDREQ: "DREQ", cmDREP: "DREP"}

// maxIDs bounds what is remembered of connections of RoCEv2.
const maxIDs = 1 << 16

// A roce knows the connections of RoCEv2.
type roce struct {
	ids map[endID]*roceConn // by the connection manager's identifiers
	qps map[endID]*roceConn
}

// An endID is a number that one end has given a connection.
type endID struct {
	addr netip.Addr
	n    uint32
}

// A roceConn follows a connection of RoCEv2.
type roceConn struct {
	iwarp
	qpn   [2]uint32 // of each side
	state [2]rocePart
}

// A rocePart is what there is of a side's requests.
type rocePart struct {
	known bool   // psn is
	psn   uint32 // of the last request
	read  bool   // that was a Read, which takes several numbers
	send  []byte // a Send on its way
	open  bool
}

// An Operation is a message of RoCEv2 or of its connection manager.
type Operation struct {
	Op       string
	Memory   bool // there are Key, VA and Length
	Key      uint32
	VA       uint64
	Length   uint32
	Use      string // what the memory was offered for, if that is known
	Repeated bool   // it was sent before
}

// Name returns the event's name in JSON.
func (o *Operation) Name() string { return "roce" }

func (o *Operation) String() string {
	s := "RoCE " + o.Op
	if o.Memory {
		s += fmt.Sprintf(" key=0x%08x va=0x%x len=%d", o.Key, o.VA, o.Length)
	}
	if o.Use != "" {
		s += " (" + o.Use + ")"
	}
	if o.Repeated {
		s += " (repeated)"
	}
	return s
}

// MarshalJSON writes the operation as an object.
func (o *Operation) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Op       string `json:"operation"`
		Key      string `json:"key"`
		VA       string `json:"va"`
		Length   uint32 `json:"length"`
		Use      string `json:"use,omitempty"`
		Repeated bool   `json:"repeated"`
	}{o.Op, fmt.Sprintf("0x%08x", o.Key), fmt.Sprintf("0x%016x", o.VA), o.Length, o.Use, o.Repeated})
}

// Packet takes a packet of RoCEv2.
func (a *Analyzer) Packet(at capture.At, src, dst netip.Addr, b []byte, open func(client, server netip.AddrPort) *dissect.Reporter) {
	a.init()
	if len(b) < bthLen+icrcLen {
		return
	}
	b = b[:len(b)-icrcLen]
	if b[0] == opUDSend {
		if len(b) >= madLen {
			a.manager(at, src, dst, b, open)
		}
		return
	}
	c := a.roce.qps[endID{dst, binary.BigEndian.Uint32(b[4:]) & 0xffffff}]
	pad := int(b[1] >> 4 & 3)
	if c == nil || pad > len(b)-bthLen {
		return
	}
	from := dissect.Client
	if dst == c.r.Addr(dissect.Client).Addr() {
		from = dissect.Server
	}
	c.request(from, at, b[:len(b)-pad])
}

// manager takes a message of the connection manager.
func (a *Analyzer) manager(at capture.At, src, dst netip.Addr, b []byte, open func(client, server netip.AddrPort) *dissect.Reporter) {
	kind, p := binary.BigEndian.Uint16(b[madAt+16:]), b[madData:madLen]
	local, remote := endID{src, binary.BigEndian.Uint32(p)}, endID{dst, binary.BigEndian.Uint32(p[4:])}
	c := a.roce.ids[local]
	if c == nil && kind != cmREQ {
		c = a.roce.ids[remote]
	}
	if c == nil && kind == cmREQ {
		c = a.request(at, local, dst, p, open)
	}
	if c == nil || cmNames[kind] == "" {
		return
	}
	from := dissect.Client
	if src == c.r.Addr(dissect.Server).Addr() {
		from = dissect.Server
	}
	first := kind == cmREQ && c.frames == 0 || kind == cmREP && c.frames == 1
	c.r.Emit(from, at, &Operation{Op: "CM " + cmNames[kind], Repeated: !first && (kind == cmREQ || kind == cmREP)})
	switch {
	case kind == cmREQ && first:
		c.Frame(from, at, p[176:232]) // behind the RDMA CM's own header
	case kind == cmREP && first:
		c.Frame(from, at, p[36:232])
		c.qpn[from] = binary.BigEndian.Uint32(p[12:]) >> 8
		if len(a.roce.ids) < maxIDs {
			a.roce.ids[local] = c
		}
		c.established()
	case kind == cmREJ && c.frames == 1:
		c.frames++
		c.r.Emit(from, at, &Reject{append([]byte(nil), p[84:88]...)})
	}
}

// request takes a request for a connection, if it is for RDS.
func (a *Analyzer) request(_ capture.At, local endID, dst netip.Addr, p []byte, open func(client, server netip.AddrPort) *dissect.Reporter) *roceConn {
	service := binary.BigEndian.Uint64(p[8:])
	port := uint16(service)
	if service>>16 != serviceTCP || port != Port && port != PortRDMA || len(a.roce.ids) >= maxIDs {
		return nil
	}
	r := open(netip.AddrPortFrom(local.addr, 0), netip.AddrPortFrom(dst, port))
	if r == nil {
		return nil
	}
	c := &roceConn{iwarp: iwarp{conn: conn{a: a, r: r, transport: dissect.RoCEv2}}}
	c.qpn[dissect.Client] = binary.BigEndian.Uint32(p[32:]) >> 8
	if a.roce.ids == nil {
		a.roce.ids, a.roce.qps = map[endID]*roceConn{}, map[endID]*roceConn{}
	}
	a.roce.ids[local] = c
	return c
}

// established takes notice that both sides have said who they are.
func (c *roceConn) established() {
	if !c.Follows() || len(c.a.roce.qps) >= maxIDs {
		return
	}
	for side, n := range c.qpn {
		c.a.roce.qps[endID{c.r.Addr(dissect.Side(side)).Addr(), n}] = c
	}
}

// request takes a packet of a connection.
func (c *roceConn) request(from dissect.Side, at capture.At, b []byte) {
	op, body := b[0], b[bthLen:]
	s := &c.state[from]
	switch op {
	case 13, 16: // the first packet of what answers a Read, or the only one
		c.operation(from, at, &Operation{Op: "Read Response"})
		return
	case 14, 15, 17, 18: // the rest of it, and acknowledgements
		return
	}
	psn := binary.BigEndian.Uint32(b[8:]) & 0xffffff
	if s.known && (s.psn-psn)&0xffffff < 1<<23 {
		c.operation(from, at, &Operation{Op: fmt.Sprintf("request %d", op), Repeated: true})
		return
	}
	if s.known && psn != (s.psn+1)&0xffffff && !s.read {
		c.lose(from)
		s.send, s.open = s.send[:0], false
	}
	s.known, s.psn, s.read = true, psn, op == 12
	switch op {
	case 0, 1, 2, 4:
		c.part(from, at, b, op)
	case 6, 10:
		c.memory(from, at, "Write", body)
	case 12:
		c.memory(from, at, "Read Request", body)
	case 19, 20:
		if len(body) >= 28 {
			c.operation(from, at, &Operation{Op: "Atomic", Key: binary.BigEndian.Uint32(body[8:]), VA: binary.BigEndian.Uint64(body), Length: 8, Memory: true})
		}
	}
}

// part takes a packet of a Send.
func (c *roceConn) part(from dissect.Side, at capture.At, b []byte, op byte) {
	s := &c.state[from]
	if op == 0 || op == 4 {
		s.send, s.open = s.send[:0], true
	}
	if !s.open {
		c.lose(from)
		return
	}
	s.send = append(s.send, b[bthLen:]...)
	switch {
	case len(s.send) > wire.HeaderLen+wire.FragmentLen+1024: // of no fragment
		s.open = false
	case op == 2 || op == 4:
		name := "Send"
		if b[1]&0x80 != 0 {
			name = "Send with Solicited Event"
		}
		s.open = false
		c.operation(from, at, &Operation{Op: name})
		c.fragment(from, at, s.send)
	}
}

// memory takes a packet with the header of an RDMA operation.
func (c *roceConn) memory(from dissect.Side, at capture.At, name string, body []byte) {
	if len(body) < rethLen {
		return
	}
	c.operation(from, at, &Operation{
		Op: name, VA: binary.BigEndian.Uint64(body), Key: binary.BigEndian.Uint32(body[8:]), Length: binary.BigEndian.Uint32(body[12:]), Memory: true,
	})
}

func (c *roceConn) operation(from dissect.Side, at capture.At, o *Operation) {
	if o.Memory {
		o.Use = c.touch(from, o.Key)
	}
	c.r.Emit(from, at, o)
}
