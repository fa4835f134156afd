package rdsflow

import (
	"hash/maphash"
	"net/netip"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/rdmap"
	"urnic/stag"
	"urnic/ulp/rds/wire"
)

// The ports of RDS: over TCP, where it is that of RDMA over IPv6 as well, and over RDMA.
const (
	Port     = 16385
	PortRDMA = 18634
)

// An Analyzer finds RDS in a capture: dissect.ULP, dissect.StreamULP and dissect.RoCEULP.
type Analyzer struct {
	// All takes all iWARP connections for RDS, and all TCP connections that begin with a header of
	// RDS. Otherwise an iWARP connection needs the port or the private data of RDS.
	All bool

	seed  maphash.Seed
	made  bool // seed is
	pairs map[pairKey]*pair
	sent  int // messages that are remembered
	pings int
	dests int
	roce  roce
}

// init makes what the zero value lacks.
func (a *Analyzer) init() {
	if !a.made {
		a.seed, a.made = maphash.MakeSeed(), true
	}
}

// An iwarp follows a connection of iWARP.
type iwarp struct {
	conn
	private [2]wire.Private // by sender
	found   [2]bool
	at      [2]capture.At
	frames  int
	greeted bool // what the private data report generations was taken
}

// New returns what follows a connection of iWARP.
func (a *Analyzer) New(r *dissect.Reporter) dissect.Upper {
	a.init()
	return &iwarp{conn: conn{a: a, r: r, transport: dissect.IWARP}}
}

// Frame takes the private data of a start-up frame.
func (c *iwarp) Frame(from dissect.Side, at capture.At, private []byte) {
	c.frames++
	if c.r.Connection().MPA.Rejected {
		if c.found[dissect.Client] || c.port() {
			c.r.Emit(from, at, &Reject{append([]byte(nil), private...)})
		}
		return
	}
	ipv6 := c.r.Addr(from).Addr().Unmap().Is6()
	v, err := wire.ParsePrivate(private, ipv6)
	// On any port, what says its own address and the other's is RDS.
	ours := err == nil && c.addresses(from, &v)
	if !ours && !c.port() && !c.a.All && !c.found[1-from] {
		return
	}
	if err != nil {
		c.blame(rulePrivate, from, at, "%s", reason(err))
		return
	}
	c.private[from], c.found[from], c.at[from] = v, true, at
	c.r.Emit(from, at, &Private{v})
	c.offers(from, at, &v, ours)
}

// port reports whether the server has a port of RDS.
func (c *iwarp) port() bool { return c.r.Port() == Port || c.r.Port() == PortRDMA }

// addresses reports whether private data name the addresses that the connection has.
func (c *iwarp) addresses(from dissect.Side, v *wire.Private) bool {
	return v.Source == c.r.Addr(from).Addr().Unmap() && v.Dest == c.r.Addr(1-from).Addr().Unmap()
}

// Follows reports whether the connection carries RDS.
func (c *iwarp) Follows() bool {
	mid := c.frames == 0 && c.r.Port() == PortRDMA
	if !c.found[0] && !c.found[1] && !mid && !c.a.All {
		return false
	}
	nodes := [2]netip.Addr{c.r.Addr(dissect.Client).Addr(), c.r.Addr(dissect.Server).Addr()}
	var tos uint8
	for s := range c.found {
		if c.found[s] {
			nodes[s], nodes[1-s], tos = c.private[s].Source, c.private[s].Dest, c.private[s].TOS
		}
	}
	c.a.begin(&c.conn, nodes, tos)
	c.sum.Rejected = c.r.Connection().MPA.Rejected
	c.whole = c.r.Whole() && c.frames == 2
	if !c.whole {
		c.lose(dissect.Client)
		c.lose(dissect.Server)
	} else if c.found[0] && c.found[1] {
		c.agreed(&c.private)
	}
	return true
}

// greet takes the generations that the private data tell. A connection that carries nothing
// need not have come about in the order in which the capture reports its end.
func (c *iwarp) greet() {
	if c.greeted {
		return
	}
	c.greeted = true
	for s, v := range c.private {
		if c.found[s] && v.Generation != 0 {
			c.introduced(dissect.Side(s), c.at[s], &wire.Extensions{Has: 1 << wire.ExtGeneration, Generation: v.Generation})
		}
	}
}

// Send takes a Send: a header, and a message or a fragment of one.
func (c *iwarp) Send(from dissect.Side, at capture.At, m *dissect.Sent) {
	c.greet()
	if !m.Whole {
		c.lose(from)
		return
	}
	c.fragment(from, at, m.Octets)
}

// Write takes a part of an RDMA Write.
func (c *iwarp) Write(from dissect.Side, _ capture.At, tag stag.STag, _ uint64, _ []byte) string {
	return c.touch(from, uint32(tag))
}

// Read takes a Read Request.
func (c *iwarp) Read(from dissect.Side, _ capture.At, tag stag.STag, _ uint64, _ uint32) (any, string) {
	return nil, c.touch(from, uint32(tag))
}

// Atomic takes an Atomic Request.
func (c *iwarp) Atomic(from dissect.Side, _ capture.At, r *rdmap.AtomicRequest) string {
	return c.touch(from, uint32(r.STag))
}

// ReadData takes what answers a Read, which is of no interest.
func (c *iwarp) ReadData(dissect.Side, capture.At, any, uint64, []byte) {}

// Lost takes notice that not all is known of what a side has sent.
func (c *iwarp) Lost(from dissect.Side) { c.lose(from) }

// End takes leave of the connection.
func (c *iwarp) End(capture.At) { c.end() }
