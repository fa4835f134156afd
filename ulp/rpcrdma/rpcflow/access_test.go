package rpcflow

import (
	"bytes"
	"slices"
	"testing"

	"urnic/rdmap"
	"urnic/ulp/rpcrdma"
)

// Read chunks are to be read, the others to be written to.
func TestChunksAreTouchedInTheirDirection(t *testing.T) {
	head := writeCall(5, 8)
	p := newPlayer(t, Port).start(linux)
	p.send(client, rpcrdma.Header{
		XID: 5, Read: []rpcrdma.ReadSegment{readSegment(len(head), 0, 8)}, Write: [][]rpcrdma.Segment{{segment(100, 8)}},
		HasReply: true, Reply: []rpcrdma.Segment{segment(200, 8)},
	}, head)
	p.read(tag, 0, octets(8))
	p.write(0, octets(8))
	p.read(tag, 100, octets(8))
	p.read(tag, 200, octets(8))
	p.tagged(client, rdmap.OpWrite, tag, 100, octets(8)) // into the memory of the server, which has named none
	f := analyze(t, p.recording(), &Analyzer{})
	f.want(t, "rpc-memory by server", "rpc-memory by server", "rpc-memory by server", "rpc-memory by client")
}

// Calls may be made of the same memory.
func TestCallsThatShareMemory(t *testing.T) {
	data := octets(8)
	p := newPlayer(t, Port).start(linux)
	p.send(client, rpcrdma.Header{XID: 1}, nfsCall(1, 0))
	p.send(server, rpcrdma.Header{XID: 1}, answer(1))
	for xid := range uint32(3) {
		head := writeCall(xid, 8)
		p.send(client, rpcrdma.Header{XID: xid, Read: []rpcrdma.ReadSegment{readSegment(len(head), 0, 8)}}, head)
	}
	for range 3 {
		p.read(tag, 0, data)
	}
	for xid := range uint32(3) {
		p.send(server, rpcrdma.Header{XID: xid}, answer(xid, words(0)))
	}
	f := analyze(t, p.recording(), &Analyzer{})
	f.want(t)
	for i := range 3 {
		if m := f.one(t, 2+i); !m.Whole || m.Moved != 8 || !bytes.HasSuffix(m.Octets, data) || len(f.notes) > 0 {
			t.Errorf("%v, notes %q", m, f.notes)
		}
	}
}

// What is known of a message ends where something is missing.
func TestNothingIsShownBehindAGap(t *testing.T) {
	data := octets(1100)
	head := writeCall(5, len(data))
	p := newPlayer(t, Port).start(linux)
	p.send(client, rpcrdma.Header{XID: 5, Read: []rpcrdma.ReadSegment{readSegment(len(head), 0, 1000), readSegment(len(head), 1000, 100)}}, head)
	p.read(tag, 0, data[:1000])
	p.read(tag, 1000, data[1000:])
	p.send(server, rpcrdma.Header{XID: 5}, answer(5, words(0)))
	f := play(t, p, &Analyzer{kept: maxKept - 600})
	f.want(t)
	whole := slices.Concat(head, data)
	if m := f.one(t, 0); m.Whole || m.Length != uint64(len(whole)) || len(m.Octets) < len(head) || !bytes.HasPrefix(whole, m.Octets) {
		t.Errorf("%v\n%x", m, m.Octets)
	}
}

// A READ of NFSv3 has one data item: nobody knows what else is in a second Write chunk.
func TestWriteChunksThatNoItemFits(t *testing.T) {
	p := newPlayer(t, Port).start(linux)
	h := rpcrdma.Header{XID: 5, Write: [][]rpcrdma.Segment{{segment(0, 8)}, {segment(100, 8)}}}
	p.send(client, h, nfsCall(5, nfs3Read, opaque([]byte("file")), words(0, 0, 8)))
	p.write(0, octets(8))
	p.write(100, octets(8))
	p.send(server, h, answer(5, words(0, 0, 8, 1, 8)))
	f := analyze(t, p.recording(), &Analyzer{})
	f.want(t)
	if m := f.one(t, 1); m.Whole || m.Moved != 16 || !bytes.HasSuffix(m.Octets, octets(8)) {
		t.Errorf("%v\n%x", m, m.Octets)
	}
}
