package dissect

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"testing"

	"urnic/internal/capture"
)

// A succession is a pcap file of one connection again and again, each time from another
// address.
type succession struct {
	packets [][]byte // with the headers of the file
	left    int      // connections
	number  uint32
	buf     bytes.Buffer
	at      func(left int)
}

func (s *succession) Read(p []byte) (int, error) {
	if s.buf.Len() == 0 {
		if s.left == 0 {
			return 0, io.EOF
		}
		s.left--
		s.number++
		s.at(s.left)
		for _, b := range s.packets {
			ip := b[16+14:]
			mine := ip[12:16]
			if ip[33]&2 != 0 && ip[33]&16 != 0 || binary.BigEndian.Uint16(ip[20:]) == serverAddr.Port() {
				mine = ip[16:20]
			}
			binary.BigEndian.PutUint32(mine, 10<<24|s.number)
			ip[36], ip[37] = 0, 0 // the checksum is left to the network card
			s.buf.Write(b)
		}
	}
	return s.buf.Read(p)
}

// newSuccession plays a connection.
func newSuccession(t *testing.T, n int, at func(left int)) io.Reader {
	sc := newScript(t).start(true, false)
	sc.send(Client, 10)
	sc.send(Server, 10)
	sc.close()
	if err := sc.w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := capture.NewReader(&sc.file)
	if err != nil {
		t.Fatal(err)
	}
	var all []*frame
	for {
		p, err := r.Next()
		if err != nil {
			break
		}
		p.Data = bytes.Clone(p.Data)
		all = append(all, &frame{p})
	}
	file := edited(t, all)
	s := &succession{left: n, at: at}
	s.buf.Write(file[:24])
	for b := file[24:]; len(b) > 0; {
		n := 16 + int(binary.LittleEndian.Uint32(b[8:]))
		s.packets = append(s.packets, b[:n])
		b = b[n:]
	}
	return s
}

func heap() uint64 {
	for range 3 { // what pools and finalizers hold is free after the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// However many connections there are one after the other, all are followed to their end,
// and an analysis that lists none needs no more memory than for the last few thousand.
func TestConnectionsOneAfterTheOtherAreAllFollowed(t *testing.T) {
	for unlisted, total := range map[bool]int{true: 140_000, false: 20_000} {
		var early, late uint64
		in := newSuccession(t, total, func(left int) {
			switch left {
			case total - 10_000:
				early = heap()
			case 0:
				late = heap()
			}
		})
		r, err := capture.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		result, err := Config{Unlisted: unlisted}.Analyze(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if result.Total.Connections != total || result.Stats.Connections != total || result.Verdict() != VerdictOK || len(result.Remarks()) != 0 {
			t.Errorf("unlisted=%t: %d connections, %s, %q", unlisted, result.Total.Connections, result.Verdict(), result.Open())
		}
		if result.Total.Messages.Total() != 2*total {
			t.Errorf("unlisted=%t: %d messages", unlisted, result.Total.Messages.Total())
		}
		// A connection that is listed takes the memory of its summary.
		bound, listed := uint64(2<<20), 0
		if !unlisted {
			bound, listed = uint64(1<<10*(total-10_000)), total
		}
		if len(result.Connections) != listed || result.Unlisted != 0 {
			t.Errorf("unlisted=%t: %d connections are listed, %d are not", unlisted, len(result.Connections), result.Unlisted)
		}
		if late > early+bound {
			t.Errorf("unlisted=%t: %d bytes in use after 10,000 connections, %d after %d", unlisted, early, late, total)
		}
		t.Logf("unlisted=%t: %d KiB in use after 10,000 connections, %d KiB after %d", unlisted, early>>10, late>>10, total)
	}
}
