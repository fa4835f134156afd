package server

import (
	"context"
	"log/slog"
	"net"

	"urnic/internal/host/listen"
	"urnic/rnic"
)

// A network is that of a session's device. It notes which listener a peer has
// come to, so that a start-up that fails can be told there.
type network struct {
	session *session
	inner   rnic.Network // nil: TCP
}

// Dial implements rnic.Network.
func (n network) Dial(ctx context.Context, address string) (net.Conn, error) {
	if n.inner != nil {
		return n.inner.Dial(ctx, address)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// Listen implements rnic.Network.
func (n network) Listen(ctx context.Context, address string) (l net.Listener, err error) {
	if n.inner != nil {
		l, err = n.inner.Listen(ctx, address)
	} else {
		l, err = listen.TCP(ctx, address)
	}
	if err != nil {
		return nil, err
	}
	return &noting{Listener: l, session: n.session, whose: ctx.Value(listenerKey{}).(*listener)}, nil
}

// listenerKey is under which a context says whose listener is opened.
type listenerKey struct{}

// noting is a net.Listener that notes who has come.
type noting struct {
	net.Listener
	session *session
	whose   *listener
}

// Accept implements net.Listener.
func (n *noting) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err == nil {
		n.session.comes(conn.RemoteAddr(), n.whose)
	}
	return conn, err
}

// comes notes to which listener a peer has come.
func (c *session) comes(peer net.Addr, to *listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting[addrPort(peer)] = to
}

// A lowerLayer is a session's lower layer in place of MPA over a network, and notes what that would.
type lowerLayer struct {
	rnic.LowerLayer
	session *session
}

// Listen implements rnic.LowerLayer.
func (l lowerLayer) Listen(ctx context.Context, address string) (rnic.LLPListener, error) {
	n, err := l.LowerLayer.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	return &lowerListener{LLPListener: n, session: l.session, whose: ctx.Value(listenerKey{}).(*listener)}, nil
}

// A lowerListener notes who has come.
type lowerListener struct {
	rnic.LLPListener
	session *session
	whose   *listener
}

// Accept implements rnic.LLPListener.
func (l *lowerListener) Accept() (rnic.LLPArrival, error) {
	a, err := l.LLPListener.Accept()
	if err == nil {
		l.session.comes(a.RemoteAddr(), l.whose)
	}
	return a, err
}

// watchStartups returns a logger that also tells the session of start-ups that
// have failed before there was a request that a program could see.
func watchStartups(c *session, log *slog.Logger) *slog.Logger {
	return slog.New(&startupWatch{Handler: log.Handler(), session: c})
}

// A startupWatch looks for what package rnic logs of such start-ups.
type startupWatch struct {
	slog.Handler
	session *session
}

// Enabled implements slog.Handler.
func (h *startupWatch) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *startupWatch) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "start-up failed" || r.Message == "request dropped" {
		h.tell(r)
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h *startupWatch) tell(r slog.Record) {
	var peer string
	var err error
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "peer":
			peer = a.Value.String()
		case "error":
			err, _ = a.Value.Any().(error)
		}
		return true
	})
	if a, bad := net.ResolveTCPAddr("tcp", peer); bad == nil && err != nil {
		h.session.startupFailed(addrPort(a), nil, err)
	}
}
