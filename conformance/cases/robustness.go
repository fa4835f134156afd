package cases

import (
	"math/rand/v2"
	"slices"
	"strings"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// robustness is the cases on what a target has to bear: garbage, silence, floods, resets.
//
// None of them is judged by how the target says that something is wrong: other
// cases do. It has to end the connection in whatever way, to keep the memory that
// it has not opened, and to serve another connection.
func robustness() []conformance.Case {
	return slices.Concat(
		crashInitiators(slices.Concat(garbageForFrames(), brokenStartups)),
		garbageForFPDUs(), halfFPDUs, randomSegments(),
		connectionFloods, floods, slowPeers,
	)
}

// A shape is one of garbage.
type shape struct {
	name, what string
	octets     func() []byte
}

// frameGarbage is more than any start-up frame has, and fpduGarbage more than the
// longest FPDU.
const (
	frameGarbage = 1 << 10
	fpduGarbage  = 128 << 10
)

// shapes returns garbage of at least n bytes.
func shapes(n int) []shape {
	text := func(s string) func() []byte {
		return func() []byte { return []byte(strings.Repeat(s, n/len(s)+1)) }
	}
	return []shape{
		{"zeros", "octets of 0", text("\x00")},
		{"ones", "octets of 0xFF", text("\xFF")},
		{"random", "random octets", func() []byte { return noise(1, n) }},
		{"http", "HTTP", text("GET / HTTP/1.1\r\nHost: rdma.example\r\n\r\n")},
		{"tls", "TLS", text("\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03")},
		{"ssh", "SSH", text("SSH-2.0-OpenSSH_9.6\r\n")},
		{"rpc", "ONC RPC over TCP", text("\x80\x00\x00\x28\x12\x34\x56\x78\x00\x00\x00\x00\x00\x00\x00\x02")},
	}
}

// noise returns n bytes that look random, and are the same in each run.
func noise(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// untilEnd reads what the target sends until it ends its half, or is silent.
func untilEnd(t *conformance.T, c *wire.Conn) {
	for {
		if _, err := c.Next(t.Timeout()); err != nil {
			return
		}
	}
}

// severalAtOnce skips a case that wants several connections of a target that is the
// Initiator, and can't be told to connect.
func severalAtOnce(t *conformance.T) {
	if t.Role() == conformance.Initiator {
		t.Service()
	}
}

// renew opens a connection like an earlier one, up to full operation, without
// looking at the target's program.
func renew(t *conformance.T, like *wire.Conn) *conformance.Stream {
	var setup conformance.Setup
	if t.Role() == conformance.Initiator {
		return t.Open(setup)
	}
	c := t.Redial(like)
	request := conformance.RequestFor(setup)
	t.Try(c.SendFrame(request, ""), "sending the Request")
	reply, err := c.ReadFrame(t.Timeout())
	if err != nil {
		t.Fail("that the target still serves connections", "%v", err)
	}
	t.Check(reply.Flags&wire.FlagR == 0, "that the target still serves connections", "%s", reply)
	return operate(t, c, request, reply)
}
