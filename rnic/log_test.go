package rnic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/rnic"
)

// A logbook keeps what a device logs.
type logbook struct{ bytes.Buffer }

// A logged line is what most of a device's lines have.
type logged struct{ Msg, Device, Peer, Listener, Error string }

// lines returns the lines since the last look.
func (b *logbook) lines(t testing.TB) (all []logged) {
	t.Helper()
	synctest.Wait() // nobody logs meanwhile
	for d := json.NewDecoder(b); d.More(); {
		var line logged
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	return all
}

func (b *logbook) configure(cfg *rnic.Config, _ *rnic.QPAttr) {
	cfg.Name, cfg.Logger = "loggy", slog.New(slog.NewJSONHandler(b, nil))
}

// Whoever runs a listener finds in the log which peers have come to nothing, and why.
func TestPeersThatComeToNothingAreLogged(t *testing.T) {
	for name, tt := range map[string]struct {
		play       func(w *world, h *peer, l *rnic.Listener)
		msg, error string
	}{
		"no Request": {
			func(_ *world, h *peer, _ *rnic.Listener) { h.write([]byte("GET / HTTP/1.1\r\n\r\n")) },
			"start-up failed", "mpa: ",
		},
		"a Request that nobody answers": {
			func(w *world, h *peer, l *rnic.Listener) {
				h.frame(&plainRequest)
				w.request(l)
				time.Sleep(rnic.DefaultAnswerTimeout)
			},
			"request dropped", "not answered in time",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var book logbook
				l := w.listen(w.side(book.configure))
				h := w.dial(l.Addr().String())
				tt.play(w, h, l)
				lines := book.lines(w)
				if len(lines) != 1 {
					w.Fatalf("logged: %+v; want one line", lines)
				}
				line := lines[0]
				if line.Msg != tt.msg || line.Device != "loggy" || line.Peer != h.conn.LocalAddr().String() || !strings.Contains(line.Error, tt.error) {
					w.Errorf("logged: %+v; want %q of %v, with an error that says %q", line, tt.msg, h.conn.LocalAddr(), tt.error)
				}
			})
		})
	}
}

// A relapsing network fails in rows: so many times, then well once, and again.
type relapsing struct {
	*simnet.Network
	rows []int
}

type relapsingListener struct {
	net.Listener
	rows []int
}

func (n *relapsing) Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := n.Network.Listen(ctx, address)
	return &relapsingListener{l, n.rows}, err
}

func (l *relapsingListener) Accept() (net.Conn, error) {
	if len(l.rows) > 0 && l.rows[0] > 0 {
		l.rows[0]--
		return nil, syscall.EMFILE
	}
	if len(l.rows) > 0 {
		l.rows = l.rows[1:]
	}
	return l.Listener.Accept()
}

// An error of the network that comes again and again is logged once: the log does not
// overflow while there are no descriptors left.
func TestErrorsOfAcceptAreLoggedOncePerRow(t *testing.T) {
	inWorld(t, func(w *world) {
		var book logbook
		s := w.side(book.configure, func(cfg *rnic.Config, _ *rnic.QPAttr) {
			cfg.Network = &relapsing{&w.Network, slices.Repeat([]int{5}, 3)}
		})
		l := w.listen(s)
		for row := range 3 {
			time.Sleep(time.Second)
			lines := book.lines(w)
			if len(lines) != 1 || lines[0].Msg != "accept failed" || lines[0].Listener != l.Addr().String() || !strings.Contains(lines[0].Error, syscall.EMFILE.Error()) {
				w.Errorf("row %d of errors: logged %+v; want one line with %v", row, lines, syscall.EMFILE)
			}
			w.ask(l) // ends the row
			if err := w.request(l).Close(); err != nil {
				w.Error(err)
			}
		}
	})
}
