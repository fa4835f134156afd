package rxdebug

import (
	"bytes"
	"context"
	"fmt"

	"urnic/ulp/rx/wire"
)

// Version asks for the version of the server's software. It is as the server has written
// it: it may have control characters.
func (c *Client) Version(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, err := c.ask(ctx, wire.TypeVersion, []byte{0}) // Linux wants a zero byte
	if err != nil {
		return "", err
	}
	return string(wire.ParseVersion(body[:min(len(body), wire.VersionLen)])), nil
}

// Basic asks for what every server tells. It learns the version of the debug protocol.
func (c *Client) Basic(ctx context.Context) (wire.DebugBasic, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.basic(ctx)
}

func (c *Client) basic(ctx context.Context) (wire.DebugBasic, error) {
	body, err := c.debug(ctx, wire.DebugGetBasic, 0)
	if err != nil {
		return wire.DebugBasic{}, err
	}
	const least = 16 // up to the version; what follows came with later versions
	if len(body) >= least && len(body) < wire.DebugBasicLen {
		body = append(bytes.Clone(body), make([]byte, wire.DebugBasicLen-len(body))...)
	}
	d, err := wire.ParseDebugBasic(body)
	switch {
	case err != nil:
		return d, err
	case d.Version < wire.DebugVersionMin:
		return d, &VersionError{d.Version}
	}
	c.letter = d.Version
	return d, nil
}

// learn learns the version of the debug protocol, unless it is known.
func (c *Client) learn(ctx context.Context) error {
	if c.letter != 0 {
		return nil
	}
	_, err := c.basic(ctx)
	return err
}

// Stats asks for statistics.
func (c *Client) Stats(ctx context.Context) (wire.DebugStats, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.learn(ctx); err != nil {
		return wire.DebugStats{}, err
	}
	if c.letter < wire.DebugVersionAllConns {
		return wire.DebugStats{}, ErrUnsupported
	}
	body, err := c.debug(ctx, wire.DebugGetStats, 0)
	if err != nil {
		return wire.DebugStats{}, err
	}
	if c.letter < wire.DebugVersionTypes {
		body = withAllTypes(body)
	}
	return wire.ParseDebugStats(body)
}

// withAllTypes makes statistics that count packets of 11 types into those of 13.
func withAllTypes(body []byte) []byte {
	const (
		read, sent = 11 * 4, (11 + 11 + 4) * 4 // where the packets that were read and sent are counted
		types      = 11 * 4
	)
	if len(body) < sent+types {
		return body // too short, as will be found
	}
	var two [2 * 4]byte
	all := append([]byte(nil), body[:read+types]...)
	all = append(all, two[:]...)
	all = append(all, body[read+types:sent+types]...)
	all = append(all, two[:]...)
	return append(all, body[sent+types:]...)
}

// Conns asks for the connections that do something, or for all. Servers before version M
// report the former only. If an error ends the list, the connections before it are
// returned with it.
func (c *Client) Conns(ctx context.Context, all bool) ([]wire.DebugConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.learn(ctx); err != nil {
		return nil, err
	}
	t := wire.DebugGetConn
	if all && c.letter >= wire.DebugVersionAllConns {
		t = wire.DebugGetAllConns
	}
	return list(ctx, c, t, func(b []byte) (wire.DebugConn, bool, error) {
		d, err := wire.ParseDebugConn(b, c.letter)
		return d, d.End(), err
	})
}

// Peers asks for the peers. If an error ends the list, the peers before it are returned
// with it.
func (c *Client) Peers(ctx context.Context) ([]wire.DebugPeer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.learn(ctx); err != nil {
		return nil, err
	}
	if c.letter < wire.DebugVersionPeer {
		return nil, ErrUnsupported
	}
	return list(ctx, c, wire.DebugGetPeer, func(b []byte) (wire.DebugPeer, bool, error) {
		d, err := wire.ParseDebugPeer(b)
		return d, d.End(), err
	})
}

// list asks for index after index until the end mark comes.
func list[T any](ctx context.Context, c *Client, t wire.DebugType, parse func([]byte) (v T, end bool, err error)) ([]T, error) {
	var all []T
	for i := range c.cfg.MaxEntries {
		body, err := c.debug(ctx, t, int32(i))
		if err != nil {
			return all, err
		}
		v, end, err := parse(body)
		switch {
		case err != nil:
			return all, err
		case end:
			return all, nil
		}
		all = append(all, v)
	}
	body, err := c.debug(ctx, t, int32(c.cfg.MaxEntries)) // just as many as there may be
	if err != nil {
		return all, err
	}
	if _, end, err := parse(body); end || err != nil {
		return all, err
	}
	return all, fmt.Errorf("%w: %d entries of type %v, and there are more", ErrUnended, len(all), t)
}

// debug sends a debug request and returns the body of the answer.
func (c *Client) debug(ctx context.Context, t wire.DebugType, index int32) ([]byte, error) {
	body, err := c.ask(ctx, wire.TypeDebug, wire.DebugRequest{Type: t, Index: index}.Append(nil))
	switch {
	case err != nil:
		return nil, err
	case wire.IsDebugBadType(body):
		return nil, ErrUnsupported
	}
	return body, nil
}
