package profile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// Rping gets at a target that runs rdma-core's rping: rping -s -P at the target's
// address, or rping -c again and again to the listener's. Both with the size that
// rping has by default.
type Rping struct {
	Raw
}

// NewRping returns a profile as NewRaw does.
func NewRping(target string, listener *net.TCPListener, timeout time.Duration) *Rping {
	return &Rping{Raw{target: target, listener: listener, timeout: timeout}}
}

// Name returns "rping".
func (*Rping) Name() string { return "rping" }

// Offers returns the roles, rping's buffer, and the one receive that it posts.
func (r *Rping) Offers() (conformance.Needs, conformance.Roles) {
	return conformance.NeedBuffer | conformance.NeedRecv, roles(r.target, r.listener)
}

// Serial returns true: rping -s -P mixes up connections that come at once.
func (*Rping) Serial() bool { return true }

// Begin makes ready for one case.
func (r *Rping) Begin(context.Context, *wire.Tape) (conformance.Session, error) {
	return &rpingSession{rawSession: rawSession{raw: &r.Raw}}, nil
}

// An advert is rping's one kind of message: where its sender has a buffer. All of
// it goes over the wire in network byte order.
type advert struct {
	to   uint64
	stag uint32
	size uint32
}

const advertLen = conformance.RecvLen

func (a advert) octets() []byte {
	b := binary.BigEndian.AppendUint64(nil, a.to)
	b = binary.BigEndian.AppendUint32(b, a.stag)
	return binary.BigEndian.AppendUint32(b, a.size)
}

func parseAdvert(b []byte) (advert, error) {
	if len(b) != advertLen {
		return advert{}, fmt.Errorf("a message of %d octets came: it is not rping's", len(b))
	}
	return advert{
		to: binary.BigEndian.Uint64(b), stag: binary.BigEndian.Uint32(b[8:]), size: binary.BigEndian.Uint32(b[12:]),
	}, nil
}

// rpingSize is how many octets rping's buffers have, if nobody says otherwise, and
// the tester's buffer of which rping -s is told.
const (
	rpingSize = 64
	ourSTag   = 0x52504E47
	ourTO     = 0x10000
)

type rpingSession struct {
	rawSession
	theirs *advert // of rping -c, which tells of its buffer first
}

// Attach takes the advertisement that rping -c begins with.
func (s *rpingSession) Attach(_ context.Context, stream *conformance.Stream) error {
	if stream.Role != conformance.Initiator {
		return nil
	}
	a, err := awaitAdvert(stream, s.raw.timeout)
	s.theirs = &a
	return err
}

func awaitAdvert(stream *conformance.Stream, timeout time.Duration) (advert, error) {
	a, err := stream.Next(timeout)
	if err != nil {
		return advert{}, fmt.Errorf("waiting for rping's advertisement: %w", err)
	}
	if a.Opcode != wire.Send && a.Opcode != wire.SendSE {
		return advert{}, fmt.Errorf("waiting for rping's advertisement: there came %s", a.Segment)
	}
	return parseAdvert(a.Payload)
}

var errRpingBuffer = errors.New("rping has one buffer of 64 octets, open for reads and writes")

// Buffer returns rping's buffer. That of rping -s is the sink of the Read that it
// does when it is told of ours; the rest of that round is done before the case goes
// on, so that rping waits, with a receive posted.
func (s *rpingSession) Buffer(_ context.Context, stream *conformance.Stream, spec conformance.BufferSpec) (*conformance.Buffer, error) {
	if spec.Length > rpingSize || spec.Access != nil || spec.PD != 0 || spec.Base != 0 || spec.OtherQP != 0 {
		return nil, errRpingBuffer
	}
	if s.theirs != nil {
		return &conformance.Buffer{STag: s.theirs.stag, TO: s.theirs.to, Length: int(s.theirs.size)}, nil
	}
	ours := advert{to: ourTO, stag: ourSTag, size: rpingSize}
	stream.Post(wire.Untagged(wire.Send, ours.octets()))
	a, err := stream.Next(s.raw.timeout)
	if err != nil {
		return nil, fmt.Errorf("waiting for the Read of rping -s: %w", err)
	}
	h, err := wire.ParseReadHeader(a.Payload)
	if a.Opcode != wire.ReadRequest || err != nil {
		return nil, fmt.Errorf("waiting for the Read of rping -s: there came %s", a.Segment)
	}
	if h.Length != rpingSize {
		return nil, fmt.Errorf("rping -s reads %d octets of %d", h.Length, rpingSize)
	}
	ping := make([]byte, rpingSize)
	copy(ping, "rdma-ping-0: conformance")
	stream.Post(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, ping))
	if _, err := awaitAdvert(stream, s.raw.timeout); err != nil {
		return nil, err
	}
	return &conformance.Buffer{STag: h.SinkSTag, TO: h.SinkTO, Length: int(h.Length)}, nil
}
