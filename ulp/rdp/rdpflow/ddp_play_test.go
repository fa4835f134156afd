package rdpflow

import (
	"encoding/binary"
	"slices"
	"testing"

	"urnic/internal/program/dissect"
	"urnic/rdmap"
	"urnic/ulp/rdp/rdpllp/llpwire"
	"urnic/ulp/rdp/wire"
)

// A ddpPlayer plays the two sides of DDP over RDP into a recording.
type ddpPlayer struct {
	*player
	next  [2]uint32  // the number of RDP that comes next
	acked [2]uint32  // what each side acknowledges: all that came
	held  []ddpEvent // segments that wait to be played in another order
	hold  bool
	count [2]uint32 // segments
}

type ddpEvent struct {
	from   dissect.Side
	number uint32
	data   []byte
}

func newDDPPlayer(t testing.TB) *ddpPlayer {
	return &ddpPlayer{player: newPlayer(t), next: [2]uint32{clientISS + 1, serverISS + 1}, acked: [2]uint32{serverISS, clientISS}}
}

// ports puts the ports of DDP over RDP into a header.
func ports(from dissect.Side) func(h *wire.Header) {
	return func(h *wire.Header) {
		h.Source, h.Dest = 7000, llpwire.Port
		if h.Version == 1 {
			h.Source = 70
		}
		if from == server {
			h.Source, h.Dest = h.Dest, h.Source
		}
	}
}

// connect opens the connection of RDP.
func (p *ddpPlayer) connect(sizes ...uint16) {
	size := uint16(1400)
	if len(sizes) > 0 {
		size = sizes[0]
	}
	s, a := syn(clientISS, 64), synAck(serverISS, clientISS, 64)
	s.Sequenced, a.Sequenced, s.MaxSegment, a.MaxSegment = false, false, 1400, size
	p.segment(client, s, "", ports(client))
	p.segment(server, a, "", ports(server))
	p.segment(client, wire.Header{Flags: wire.ACK, Seq: clientISS + 1, Ack: serverISS}, "", ports(client))
}

// data plays a message of RDP.
func (p *ddpPlayer) data(from dissect.Side, b []byte) {
	e := ddpEvent{from, p.next[from], b}
	p.next[from]++
	if p.hold {
		p.held = append(p.held, e)
		return
	}
	p.put(e)
}

// put plays a message under its number.
func (p *ddpPlayer) put(e ddpEvent) {
	p.segment(e.from, wire.Header{Flags: wire.ACK, Seq: e.number, Ack: p.acked[e.from]}, string(e.data), ports(e.from))
	if !p.hold {
		p.acked[1-e.from] = p.next[e.from] - 1
	}
}

// release plays what was held, the last one first.
func (p *ddpPlayer) release() {
	for _, e := range slices.Backward(p.held) {
		p.put(e)
	}
	p.hold, p.held = false, nil
	for side := range p.acked {
		p.acked[1-side] = p.next[side] - 1
	}
}

// message plays a message of DDP over RDP.
func (p *ddpPlayer) message(from dissect.Side, k llpwire.Kind, number uint32, body []byte) {
	p.data(from, sealed(k, number, body))
}

func sealed(k llpwire.Kind, number uint32, body []byte) []byte {
	b := make([]byte, llpwire.HeaderLen)
	llpwire.PutHeader(b, k, number)
	return llpwire.Seal(append(b, body...))
}

// offer is the body of a message of start-up.
func offer(ird, ord uint16, private string) []byte {
	b := binary.BigEndian.AppendUint16(nil, ird)
	return append(binary.BigEndian.AppendUint16(b, ord), private...)
}

// start plays start-up.
func (p *ddpPlayer) start() {
	p.connect()
	p.message(client, llpwire.Request, 0, offer(2, 2, "ask"))
	p.message(server, llpwire.Accept, 0, offer(2, 2, "answer"))
}

// seg plays a segment of DDP with its right number.
func (p *ddpPlayer) seg(from dissect.Side, ulpdu []byte) {
	p.message(from, llpwire.Segment, p.count[from], ulpdu)
	p.count[from]++
}

// stop plays the ends of both sides, and the end of the connection.
func (p *ddpPlayer) stop() {
	p.message(client, llpwire.End, p.count[client], nil)
	p.message(server, llpwire.End, p.count[server], nil)
	p.segment(client, wire.Header{Flags: wire.ACK, Seq: p.next[client], Ack: p.acked[client]}, "", ports(client))
	p.segment(client, wire.Header{Flags: wire.RST, Seq: p.next[client]}, "", ports(client))
}

const lastFlag = 0x40

// untagged is an untagged segment: control says whether it is the last one of its message.
func untagged(last bool, op rdmap.Opcode, msn, mo uint32, payload string) []byte {
	b := []byte{1, 0x40 | byte(op), 0, 0, 0, 0}
	if last {
		b[0] |= lastFlag
	}
	b = binary.BigEndian.AppendUint32(b, op.Queue())
	b = binary.BigEndian.AppendUint32(b, msn)
	b = binary.BigEndian.AppendUint32(b, mo)
	return append(b, payload...)
}

// tagged is a tagged segment.
func tagged(last bool, op rdmap.Opcode, stag uint32, to uint64, payload string) []byte {
	b := []byte{0x81, 0x40 | byte(op)}
	if last {
		b[0] |= lastFlag
	}
	b = binary.BigEndian.AppendUint32(b, stag)
	b = binary.BigEndian.AppendUint64(b, to)
	return append(b, payload...)
}

// readRequest is a Read Request for size bytes.
func readRequest(msn, sink uint32, size uint32) []byte {
	var h []byte
	h = binary.BigEndian.AppendUint32(h, sink)
	h = binary.BigEndian.AppendUint64(h, 0)
	h = binary.BigEndian.AppendUint32(h, size)
	h = binary.BigEndian.AppendUint32(h, 99)
	h = binary.BigEndian.AppendUint64(h, 0)
	return untagged(true, rdmap.OpReadRequest, msn, 0, string(h))
}

// playedDDP has a message of each kind, some of them in another order, sent again, damaged or malformed.
func playedDDP(t testing.TB) []byte {
	p := newDDPPlayer(t)
	p.start()
	p.hold = true
	p.seg(client, untagged(false, rdmap.OpSend, 1, 0, "half, "))
	p.seg(client, untagged(true, rdmap.OpSend, 1, 6, "half"))
	p.seg(client, tagged(true, rdmap.OpWrite, 0x77, 8, "data"))
	p.seg(client, readRequest(1, 0x55, 6))
	p.release()
	again := p.next[client] - 1
	p.seg(server, tagged(false, rdmap.OpReadResponse, 0x55, 0, "ans"))
	p.put(ddpEvent{client, again, sealed(llpwire.Segment, 3, readRequest(1, 0x55, 6))})
	p.seg(server, tagged(true, rdmap.OpReadResponse, 0x55, 3, "wer"))
	p.message(server, 9, 0, nil)
	b := sealed(llpwire.Segment, p.count[client], untagged(true, rdmap.OpSend, 2, 0, "damaged"))
	b[30] ^= 1
	p.data(client, b)
	p.count[client]++
	p.seg(server, untagged(true, rdmap.OpTerminate, 1, 0, "\x20\x02\x00\x00"))
	p.stop()
	return p.recording()
}
