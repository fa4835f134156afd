package capture

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

const (
	// writeBuffer is how much a Writer collects before it writes to its file.
	writeBuffer = 256 << 10
	// blockExtra is more than what pcapng adds to a packet.
	blockExtra = 64
)

// FlushAfter bounds how long a Writer keeps a packet in its buffer.
const FlushAfter = 200 * time.Millisecond

// A Writer records connections into a pcapng file. It is safe for concurrent
// use. Packets go through a buffer. It is written to the file when FlushAfter
// has passed, at the end of a Stream and by Flush and Close, and always up to
// the end of a packet: what a program leaves that is killed can be read.
type Writer struct {
	mu      sync.Mutex
	ng      *pcapgo.NgWriter
	out     *bufio.Writer // that of ng
	timer   *time.Timer   // flushes what is in out; nil if there is nothing
	err     error         // the first error of the file; after it, nothing is written
	closed  bool
	buf     []byte // the packet in the making
	streams uint32 // how many there were
	inUse   map[tuple]struct{}
}

// A tuple names a connection whichever way its packets go.
type tuple [2]netip.AddrPort

func newTuple(a, b netip.AddrPort) tuple {
	if b.Compare(a) < 0 {
		a, b = b, a
	}
	return tuple{a, b}
}

// NewWriter writes the head of a pcapng file to w and returns a Writer that
// appends to it, with one Write at a time, from goroutines of its own too. Close
// does not close w.
func NewWriter(w io.Writer) (*Writer, error) {
	iface := pcapgo.NgInterface{
		Name:        "urnic",
		Description: "recorded by urnic: synthetic headers around what urnic sent and received",
		LinkType:    layers.LinkTypeEthernet,
	}
	options := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "urnic"}}
	out := bufio.NewWriterSize(w, writeBuffer)
	ng, err := pcapgo.NewNgWriterInterface(out, iface, options)
	if err == nil {
		err = ng.Flush()
	}
	if err != nil {
		return nil, fmt.Errorf("capture: starting the recording: %w", err)
	}
	return &Writer{ng: ng, out: out, inUse: make(map[tuple]struct{})}, nil
}

// Flush writes what is buffered. It returns the first error that this or
// earlier writes met.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

func (w *Writer) flush() error {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	if w.err == nil && !w.closed {
		w.keep(w.ng.Flush())
	}
	return w.err
}

// Close ends the recording: it writes what is buffered and ignores whatever is
// still recorded. It returns the first error that the Writer met.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.err
	}
	_ = w.flush() // the error is kept
	w.closed = true
	return w.err
}

func (w *Writer) keep(err error) {
	if w.err == nil && err != nil {
		w.err = fmt.Errorf("capture: recording: %w", err)
	}
}

// stopped reports whether there is no point in making packets.
func (w *Writer) stopped() bool { return w.closed || w.err != nil }

// write puts the packet in w.buf into the file.
func (w *Writer) write() {
	if w.out.Available() < len(w.buf)+blockExtra {
		w.keep(w.out.Flush())
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(FlushAfter, func() { _ = w.Flush() }) // the error is kept
	}
	w.keep(w.ng.WritePacket(gopacket.CaptureInfo{
		Timestamp:     time.Now(),
		CaptureLength: len(w.buf),
		Length:        len(w.buf),
	}, w.buf))
}
