package profile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// Rping gets at a target that runs rdma-core's rping: rping -s -P at the target's
// address, or rping -c again and again to the listener's.
type Rping struct {
	Raw
	size int // that the caller has named

	mu   sync.Mutex
	room *room // of rping -s, when it is known
}

// NewRping returns a profile as NewRaw does. The size, if not 0, is how many bytes the
// buffer of rping -s has, its -S; else the profile finds out what it can.
func NewRping(target string, listener Listener, timeout time.Duration, size int) *Rping {
	return &Rping{Raw: Raw{target: target, listener: listener, timeout: timeout}, size: size}
}

// OverRDP is that of Raw.
func (r *Rping) OverRDP() *Rping {
	r.Raw.OverRDP()
	return r
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
func (r *Rping) Begin(ctx context.Context, _ *wire.Tape) (conformance.Session, error) {
	s := &rpingSession{rawSession: rawSession{raw: &r.Raw}}
	if s.unknown = r.learn(ctx); s.unknown == nil && r.room != nil {
		s.room = *r.room
	}
	return s, nil
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

// The tester's buffer of which rping -s is told.
const (
	ourSTag = 0x52504E47
	ourTO   = 0x10000
)

type rpingSession struct {
	rawSession
	theirs  *advert // of rping -c, which tells of its buffer first
	room    room    // of rping -s
	unknown error   // why that is not known
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

func awaitAdvert(l link, timeout time.Duration) (advert, error) {
	a, err := l.Next(timeout)
	if err != nil {
		return advert{}, fmt.Errorf("waiting for rping's advertisement: %w", err)
	}
	if a.Opcode == wire.Terminate {
		return advert{}, fmt.Errorf("waiting for rping's advertisement: %w", errTerminated)
	}
	if a.Opcode != wire.Send && a.Opcode != wire.SendSE {
		return advert{}, fmt.Errorf("waiting for rping's advertisement: there came %s", a.Segment)
	}
	return parseAdvert(a.Payload)
}

var errRpingBuffer = errors.New("rping has one buffer, open for reads and writes")

// Buffer returns the buffer of rping that the spec requires. That of rping -s is the sink
// of its Read of our buffer. The rest of that round is done before the case continues, so
// that rping waits, with a receive posted.
func (s *rpingSession) Buffer(_ context.Context, stream *conformance.Stream, spec conformance.BufferSpec) (*conformance.Buffer, error) {
	if spec.Access != nil || spec.PD != 0 || spec.Base != 0 || spec.ZeroBased || spec.OtherQP != 0 {
		return nil, errRpingBuffer
	}
	if s.theirs != nil {
		return part(*s.theirs, spec)
	}
	switch {
	case s.unknown != nil:
		return nil, s.unknown
	case s.room.err != nil:
		return nil, s.room.err
	case spec.AtEnd && s.room.end != nil:
		return nil, s.room.end
	}
	sink, advertised, err := firstHalf(stream, uint32(min(s.room.size, rpingSize)), s.raw.timeout)
	if err != nil {
		return nil, err
	}
	whole := advert{to: sink.SinkTO, stag: sink.SinkSTag, size: uint32(s.room.size)}
	if advertised > 0 {
		whole.size = uint32(advertised)
	}
	return part(whole, spec)
}

// part returns the first bytes of rping's buffer, or the last ones.
func part(whole advert, spec conformance.BufferSpec) (*conformance.Buffer, error) {
	if uint64(spec.Length) > uint64(whole.size) {
		return nil, fmt.Errorf("rping's buffer has %d octets, and the case needs %d: start it with -S %d or more", whole.size, spec.Length, rpingSize)
	}
	b := &conformance.Buffer{STag: whole.stag, TO: whole.to, Length: spec.Length}
	if spec.AtEnd {
		b.TO += uint64(whole.size) - uint64(spec.Length)
	}
	return b, nil
}
