package rxdebug

import (
	"compress/gzip"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"urnic/internal/capture"
	"urnic/ulp/rx/wire"
)

// answers are what a server says to requests, by their type and body.
type answers map[string][]byte

func key(t wire.Type, body []byte) string {
	if t == wire.TypeVersion {
		return "version"
	}
	return string(body[:min(len(body), wire.DebugRequestLen)])
}

// recorded returns the answers that OpenAFS's volserver has given in a capture.
func recorded(t testing.TB, name string) answers {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "rxflow", "testdata", "captures", name+".pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := capture.NewReader(z)
	if err != nil {
		t.Fatal(err)
	}
	const port = 7005
	asked := map[uint32]string{} // by call number
	all := answers{}
	err = capture.ReadDatagrams(t.Context(), r, func(_ capture.At, d *capture.Datagram) error {
		h, err := wire.ParseHeader(d.Data)
		if err != nil || h.Type != wire.TypeDebug && h.Type != wire.TypeVersion {
			return nil
		}
		body := append([]byte(nil), d.Data[wire.HeaderLen:]...)
		switch {
		case h.FromClient() && d.Dst.Port() == port:
			asked[h.Call] = key(h.Type, body)
		case d.Src.Port() == port && asked[h.Call] != "":
			all[asked[h.Call]] = body
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no answers", name)
	}
	return all
}

// A server answers the requests that come by one end of a pipe, on which a write is a
// datagram.
type server struct {
	conn net.Conn
	// answer returns what to answer, in the order in which it is sent.
	answer func(h wire.Header, body []byte) [][]byte
	asked  int
}

func (s *server) run() {
	defer s.conn.Close()
	buf := make([]byte, 1500)
	for {
		n, err := s.conn.Read(buf)
		if err != nil {
			return
		}
		h, err := wire.ParseHeader(buf[:n])
		if err != nil {
			return
		}
		s.asked++
		for _, b := range s.answer(h, append([]byte(nil), buf[wire.HeaderLen:n]...)) {
			if _, err := s.conn.Write(b); err != nil {
				return
			}
		}
	}
}

// reply is an answer to a request.
func reply(h wire.Header, body []byte) []byte {
	h.Flags &^= wire.FlagClient
	return append(h.Append(nil), body...)
}

// ask makes a client whose server gives answers of its own.
func ask(t testing.TB, cfg Config, answer func(h wire.Header, body []byte) [][]byte) (*Client, *server) {
	t.Helper()
	near, far := net.Pipe()
	s := &server{conn: far, answer: answer}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run()
	}()
	c := newClient(near, cfg)
	c.peer = netip.MustParseAddrPort("192.0.2.7:7000")
	t.Cleanup(func() {
		c.Close()
		<-done
	})
	return c, s
}

// askRecorded makes a client whose server says what one has said in a capture.
func askRecorded(t testing.TB, all answers) *Client {
	t.Helper()
	c, _ := ask(t, Config{}, func(h wire.Header, body []byte) [][]byte {
		if b, ok := all[key(h.Type, body)]; ok {
			return [][]byte{reply(h, b)}
		}
		return [][]byte{reply(h, wire.AppendDebugBadType(nil))}
	})
	return c
}
