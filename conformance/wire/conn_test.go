package wire

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"urnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// pair returns two ends of a TCP connection: a Conn and a plain one.
func pair(t *testing.T) (*Conn, *net.TCPConn, *Tape) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	tape := NewTape()
	c := NewConn(ours, tape, nil)
	t.Cleanup(func() {
		c.Close()
		theirs.Close()
	})
	return c, theirs.(*net.TCPConn), tape
}

const soon = time.Minute

func TestFramesAreReadWhole(t *testing.T) {
	c, peer, tape := pair(t)
	want := Frame{Key: ReplyKey, Flags: FlagC | FlagS, Rev: 2, Private: append(Enhanced{IRD: 3, ORD: 4}.Octets(), "data"...)}
	if _, err := peer.Write(append(want.Octets(), 0xAA)); err != nil {
		t.Fatal(err)
	}
	got, err := c.ReadFrame(soon)
	if err != nil || !bytes.Equal(got.Octets(), want.Octets()) {
		t.Fatalf("%v, %v", got, err)
	}
	if e, ulp, ok := got.Enhanced(); !ok || e.IRD != 3 || e.ORD != 4 || string(ulp) != "data" {
		t.Errorf("the block is %v, %q, %v", e, ulp, ok)
	}
	events, _ := tape.Events()
	if len(events) != 1 || events[0].By != Target || !bytes.Equal(events[0].Octets, want.Octets()) {
		t.Errorf("on the tape: %+v", events)
	}
}

func TestWhatIsSentTogetherLeavesByOneWrite(t *testing.T) {
	ours, theirs := net.Pipe() // where one Read returns what one Write has
	c := NewConn(ours, NewTape(), nil)
	t.Cleanup(func() {
		c.Close()
		theirs.Close()
	})
	failed := make(chan error, 1)
	go func() {
		err := c.Together(func() {
			for _, piece := range []string{"all ", "at ", "once"} {
				if err := c.SendRaw([]byte(piece), piece, ""); err != nil {
					t.Error(err)
				}
			}
		})
		failed <- errors.Join(err, c.SendRaw([]byte("and then"), "more", ""))
	}()
	for _, want := range []string{"all at once", "and then"} {
		b := make([]byte, 100)
		if n, err := theirs.Read(b); err != nil || string(b[:n]) != want {
			t.Errorf("one write was %q, %v, want %q", b[:n], err, want)
		}
	}
	if err := <-failed; err != nil {
		t.Error(err)
	}
}

func TestReadingTellsHowTheTargetEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(peer *net.TCPConn) error
		want End
	}{
		{"FIN", (*net.TCPConn).CloseWrite, Finished},
		{"RST", func(peer *net.TCPConn) error {
			if err := peer.SetLinger(0); err != nil {
				return err
			}
			return peer.Close()
		}, Reset},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, peer, tape := pair(t)
			if c.want == Finished {
				if _, err := peer.Write([]byte("half")); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.end(peer); err != nil {
				t.Fatal(err)
			}
			_, err := conn.ReadFrame(soon)
			var end *EndError
			if !errors.As(err, &end) || end.End != c.want {
				t.Fatalf("%v", err)
			}
			events, _ := tape.Events()
			if !strings.Contains(events[0].What, c.name) {
				t.Errorf("on the tape: %+v", events)
			}
			if c.want == Finished && (end.Rest != 4 || len(events) != 2 || string(events[1].Octets) != "half") {
				t.Errorf("of what makes nothing whole: %d octets, %+v", end.Rest, events)
			}
		})
	}
}

func TestSilenceIsToldAndLosesNothing(t *testing.T) {
	c, peer, _ := pair(t)
	c.Operate(false, false, true)
	f := framer{crc: true}
	b := f.frame(Tagged(Write, 1, 2, []byte("some data")).Octets(), Flaw{})
	if _, err := peer.Write(b[:10]); err != nil {
		t.Fatal(err)
	}
	if err := c.fill(10, time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(time.Millisecond); !errors.Is(err, ErrSilence) {
		t.Fatalf("%v", err)
	}
	if _, err := peer.Write(b[10:]); err != nil {
		t.Fatal(err)
	}
	a, err := c.Next(soon)
	if err != nil || string(a.Payload) != "some data" || len(a.Faults) > 0 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestFaultsOfTheTargetAreTaped(t *testing.T) {
	c, peer, tape := pair(t)
	c.Operate(false, false, true)
	f := framer{crc: true}
	s := Untagged(Send, nil)
	s.MSN = 5
	if _, err := peer.Write(f.frame(s.Octets(), Flaw{Pad: 1, BigEndian: true})); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(soon); err != nil {
		t.Fatal(err)
	}
	if len(c.Faults()) != 2 {
		t.Errorf("%+v", c.Faults())
	}
	events, _ := tape.Events()
	if !strings.Contains(events[0].Wrong, "CRC") || !strings.Contains(events[0].Wrong, "MSN") {
		t.Errorf("on the tape: %+v", events[0])
	}
}
