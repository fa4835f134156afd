// Package recorded takes Rx calls out of capture files, for tests: what the client has sent
// and what the server has answered, put together by sequence numbers.
package recorded

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"urnic/internal/capture"
	"urnic/ulp/rx/wire"
)

// A Call is what a capture has of a call.
type Call struct {
	File     string
	Port     uint16 // of the server
	Service  uint16
	Security uint8
	Opcode   uint32
	Args     []byte // the request without the opcode
	Reply    []byte
	Whole    bool  // request and reply are complete
	Aborted  bool  // by either side
	Code     int32 // of the abort
}

type key struct{ epoch, cid, call uint32 }

type direction struct {
	bodies map[uint32][]byte
	last   uint32 // sequence number of the last packet; 0 if it was not seen
}

// stream returns the bodies in order, and whether they are all there.
func (d *direction) stream() (p []byte, whole bool) {
	for seq := uint32(1); ; seq++ {
		body, ok := d.bodies[seq]
		if !ok {
			return p, d.last != 0 && seq == d.last+1
		}
		p = append(p, body...)
	}
}

type call struct {
	Call
	request, reply direction
}

// InFile returns the calls of a file of the directory of captures, in the order in which they
// begin.
func InFile(tb testing.TB, name string) []Call {
	tb.Helper()
	f, err := os.Open(filepath.Join(directory(tb), name+".gz"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	r, err := capture.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	var order []*call
	calls := make(map[key]*call)
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			tb.Fatal(err)
		}
		udp, ok := gopacket.NewPacket(p.Data, p.Link, gopacket.Default).Layer(layers.LayerTypeUDP).(*layers.UDP)
		if !ok {
			continue
		}
		h, err := wire.ParseHeader(udp.Payload)
		if err != nil || h.Call == 0 || h.Type != wire.TypeData && h.Type != wire.TypeAbort {
			continue
		}
		k := key{h.Epoch, h.CID, h.Call}
		c := calls[k]
		if c == nil {
			if h.Type != wire.TypeData || !h.FromClient() {
				continue
			}
			c = &call{Call: Call{File: name, Port: uint16(udp.DstPort), Service: h.Service, Security: h.Security}}
			c.request.bodies, c.reply.bodies = make(map[uint32][]byte), make(map[uint32][]byte)
			calls[k] = c
			order = append(order, c)
		}
		c.add(h, udp.Payload[wire.HeaderLen:])
	}
	all := make([]Call, 0, len(order))
	for _, c := range order {
		request, whole1 := c.request.stream()
		reply, whole2 := c.reply.stream()
		if len(request) < 4 {
			continue
		}
		c.Opcode, c.Args, c.Reply = binary.BigEndian.Uint32(request), request[4:], reply
		c.Whole = whole1 && whole2 && !c.Aborted
		all = append(all, c.Call)
	}
	return all
}

// add adds a packet.
func (c *call) add(h wire.Header, body []byte) {
	if h.Type == wire.TypeAbort {
		c.Aborted, c.Code = true, wire.ParseAbort(body)
		return
	}
	d := &c.reply
	if h.FromClient() {
		d = &c.request
	}
	packets := wire.SplitData(h, body)
	for {
		h, body, ok := packets.Next()
		if !ok {
			return
		}
		d.bodies[h.Seq] = slices.Clone(body)
		if h.Flags&wire.FlagLast != 0 {
			d.last = h.Seq
		}
	}
}

// Files are the captures' names.
func Files(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(directory(tb), "*.pcap.gz"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("%d captures: %v", len(files), err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".gz")
	}
	return files
}

// directory finds the captures from the directory of whichever package is tested.
func directory(tb testing.TB) string {
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for ; filepath.Base(dir) != "rx"; dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			tb.Fatal("not within ulp/rx")
		}
	}
	return filepath.Join(dir, "rxflow", "testdata", "captures")
}
