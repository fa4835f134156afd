package mpa

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"urnic/internal/test/simnet"
)

// late is a stream whose time is up before anybody has read from it.
type late struct{ *simnet.Conn }

func (late) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestRequestThatIsThereWhenTheTimeIsUpCounts(t *testing.T) {
	request := frame(reqKey, 0x40, 1, 'h', 'e', 'y')
	for n := range len(request) + 1 {
		a, b := simnet.Pipe(simnet.Options{})
		if _, err := a.Write(request[:n]); err != nil {
			t.Fatal(err)
		}
		r, err := ReceiveRequest(context.Background(), late{b}, Config{})
		switch whole := n == len(request); {
		case whole != (err == nil):
			t.Errorf("%d octets of %d: %v", n, len(request), err)
		case whole && string(r.PrivateData()) != "hey":
			t.Errorf("private data %q", r.PrivateData())
		}
		_ = a.Close()
		_ = b.Close()
	}
}

// A slow is late once; then its stream is read as usual.
type slow struct {
	*simnet.Conn
	looked bool
}

func (s *slow) Read(b []byte) (int, error) {
	if !s.looked {
		s.looked = true
		return 0, os.ErrDeadlineExceeded
	}
	return s.Conn.Read(b)
}

// Part of a Request gives its sender no more time.
func TestLastLookIsTheLast(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		p.says(frame(reqKey, 0x40, 1)[:10])
		begun := time.Now()
		if _, err := ReceiveRequest(t.Context(), &slow{Conn: conn}, Config{}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(begun); d != 0 {
			t.Errorf("it took %v more", d)
		}
	})
}

// Of an Initiator nobody else takes the time: a Reply that comes too late is too late.
func TestInitiatorTakesNoLastLook(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		p.says(plainReply)
		if _, err := Initiate(t.Context(), late{conn}, plainConfig); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestPeerThatDoesNotSpeakMPAIsToldApart(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		p.says([]byte("GET / HTTP/1.1\r\n\r\n"))
		_, err := ReceiveRequest(t.Context(), conn, Config{})
		if e := wantCode(t, "Responder", err, CodeStartup); !strings.Contains(e.Reason, "Key") {
			t.Errorf("got %v; want the Key named", err)
		}
	})
}

func TestRequestShowsItsEnhancedData(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		p.says(frame(reqKey, 0x50, 2, 0x80, 3, 0x40, 4))
		r, err := ReceiveRequest(t.Context(), conn, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if e := r.Enhanced; !e.PeerToPeer || e.IRD != 3 || e.ORD != 4 {
			t.Errorf("it has %+v", e)
		}
	})
}
