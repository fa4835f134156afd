package timeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/rdmap"
)

// A message is an RDMA Message on the wire.
type message struct {
	class       class
	first, last time.Time
}

// A connection is what passed on one.
type connection struct {
	start     time.Time
	messages  [2][]message // by the side that sent them
	side      dissect.Side // which is this process's, once taken
	taken     bool
	rtrIsRead bool // a Read Response to a ready-to-receive indication is still to come
}

// A wire is what a recording has: connections by the addresses of client and server, in their order.
type wire struct {
	all    map[[2]string][]*connection
	number int
}

// readWire reads a recording. One that ends within a packet, as those of programs that were killed do, is read so far.
func readWire(ctx context.Context, name string) (*wire, error) {
	w := &wire{all: map[[2]string][]*connection{}}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	r, err := capture.NewReader(f)
	if err != nil {
		if info, bad := f.Stat(); bad == nil && info.Size() == 0 {
			return w, nil
		}
		return nil, err
	}
	byNumber := map[int]*connection{}
	_, err = dissect.Config{Handler: func(e *dissect.Event) error {
		c := byNumber[e.Conn.Number]
		if c == nil {
			c = &connection{start: e.At.Time}
			byNumber[e.Conn.Number] = c
			addr := [2]string(e.Conn.Addr)
			w.all[addr] = append(w.all[addr], c)
			w.number++
		}
		if e.Kind == dissect.KindMessage {
			c.add(e)
		}
		return nil
	}}.Analyze(ctx, r)
	if err != nil && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, fs.ErrNotExist)) {
		err = nil
	}
	if err != nil {
		return w, fmt.Errorf("%s: %w", name, err)
	}
	return w, nil
}

// add adds a message. What MPA's start-up sends as an indication (RFC 6581 §9.2), and the answer to that, have no class, as
// no request has them.
func (c *connection) add(e *dissect.Event) {
	m := message{classOf(e.Message.Op), e.Message.First().Time, e.At.Time}
	list := &c.messages[e.From]
	switch startup := &e.Conn.MPA; {
	case !startup.P2P || startup.RTR == 0 || len(*list) > 0:
	case e.From == dissect.Client:
		m.class = other
		c.rtrIsRead = e.Message.Op == rdmap.OpReadRequest
	}
	if m.class == readResponse && c.rtrIsRead {
		c.rtrIsRead, m.class = false, other
	}
	*list = append(*list, m)
}

// take returns the first connection between two addresses that no queue pair has yet, or nil.
func (w *wire) take(local, remote string) *connection {
	for side, addr := range [][2]string{{local, remote}, {remote, local}} {
		for _, c := range w.all[addr] {
			if !c.taken {
				c.taken, c.side = true, dissect.Side(side)
				return c
			}
		}
	}
	return nil
}

// sent and received return the messages of this process and of its peer.
func (c *connection) sent() []message     { return c.messages[c.side] }
func (c *connection) received() []message { return c.messages[1-c.side] }

// A class is what messages stand for in the order of a queue.
type class uint8

const (
	other          class = iota
	write                // RDMA Writes
	send                 // Sends and Immediate Data: what takes a receive, or part of one
	readRequest          // Read Requests
	readResponse         // Read Responses
	atomicRequest        // Atomic Requests
	atomicResponse       // Atomic Responses
)

func classOf(op rdmap.Opcode) class {
	switch op {
	case rdmap.OpWrite:
		return write
	case rdmap.OpSend, rdmap.OpSendInvalidate, rdmap.OpSendSE, rdmap.OpSendSEInvalidate, rdmap.OpImmediate, rdmap.OpImmediateSE:
		return send
	case rdmap.OpReadRequest:
		return readRequest
	case rdmap.OpReadResponse:
		return readResponse
	case rdmap.OpAtomicRequest:
		return atomicRequest
	case rdmap.OpAtomicResponse:
		return atomicResponse
	default:
		return other
	}
}

// isRequest reports whether a message is what a work request of the send queue sends.
func (c class) isRequest() bool {
	return c == write || c == send || c == readRequest || c == atomicRequest
}

// indexes returns where in a list the messages are that are wanted.
func indexes(list []message, want func(class) bool) (at []int) {
	for i := range list {
		if want(list[i].class) {
			at = append(at, i)
		}
	}
	return at
}
