package rxdebug

import (
	"context"
	"errors"

	"urnic/ulp/rx/wire"
)

// A Want says what a report is to have.
type Want struct {
	Version, Basic, Stats, Conns, Peers bool
	AllConns                            bool // with Conns: those too that do nothing
}

// A Report is what a server tells. Parts that were not asked for, or that the server does
// not know, are nil.
type Report struct {
	Server   string  `json:"server"`             // address and port
	Version  *string `json:"version,omitempty"`  // of the software, as the server has written it
	Protocol string  `json:"protocol,omitempty"` // version of the debug protocol, a letter
	Basic    *Basic  `json:"basic,omitempty"`
	Stats    *Stats  `json:"stats,omitempty"`
	Conns    []Conn  `json:"connections"`
	Peers    []Peer  `json:"peers"`

	// Missing names the parts that the server does not know.
	Missing []string `json:"missing,omitempty"`

	asked Want
}

// missingAll is missing where a server tells only of connections that do something.
const missingAll = "all connections"

// Ask asks for several things. The report has what came before an error, too.
func (c *Client) Ask(ctx context.Context, w Want) (*Report, error) {
	r := &Report{Server: c.peer.String(), asked: w}
	for _, part := range []struct {
		name   string
		wanted bool
		ask    func(*Report) error
	}{
		{"version", w.Version, func(r *Report) error {
			v, err := c.Version(ctx)
			if err == nil {
				r.Version = &v
			}
			return err
		}},
		{"basic", w.Basic || w.Stats || w.Conns || w.Peers, func(r *Report) error {
			d, err := c.Basic(ctx)
			if err == nil {
				r.Protocol = string(rune(d.Version))
				r.Basic = newBasic(&d)
			}
			return err
		}},
		{"stats", w.Stats, func(r *Report) error {
			d, err := c.Stats(ctx)
			if err == nil {
				r.Stats = newStats(&d)
			}
			return err
		}},
		{"connections", w.Conns, func(r *Report) error {
			list, err := c.Conns(ctx, w.AllConns)
			r.Conns = make([]Conn, len(list))
			for i := range list {
				r.Conns[i] = newConn(&list[i])
			}
			return err
		}},
		{"peers", w.Peers, func(r *Report) error {
			list, err := c.Peers(ctx)
			r.Peers = make([]Peer, len(list))
			for i := range list {
				r.Peers[i] = newPeer(&list[i])
			}
			return err
		}},
	} {
		if !part.wanted {
			continue
		}
		if err := part.ask(r); errors.Is(err, ErrUnsupported) {
			r.Missing = append(r.Missing, part.name)
		} else if err != nil {
			return r, err
		}
	}
	if c.letterBefore(wire.DebugVersionAllConns) && w.Conns && w.AllConns {
		r.Missing = append(r.Missing, missingAll)
	}
	return r, nil
}

// letterBefore reports whether the server's version is known, and before another one.
func (c *Client) letterBefore(v byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.letter != 0 && c.letter < v
}

// Empty reports whether nothing was answered.
func (r *Report) Empty() bool { return r.Version == nil && r.Basic == nil }
