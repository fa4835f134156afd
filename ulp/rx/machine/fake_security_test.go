package machine

import (
	"encoding/binary"
	"errors"
	"time"

	"urnic/ulp/rx/secure"
)

// fakeIndex is the security index of a class for tests: it adds a constant to each byte, and
// proves nothing. Its bodies have a length in front, and their sum is the checksum.
const fakeIndex = 7

const (
	fakeHead  = 4
	fakeMulti = 4
	fakeLeast = 8
)

type fakeError int32

func (e fakeError) Error() string    { return "the fake class refuses" }
func (e fakeError) AbortCode() int32 { return int32(e) }

const (
	fakeSealed  = fakeError(8010)
	fakeRefused = fakeError(8007)
	fakeExpired = fakeError(8009)
)

type fakeProtection struct{ opened, sealed int }

func (*fakeProtection) Overhead() int { return fakeHead }
func (*fakeProtection) Multiple() int { return fakeMulti }
func (*fakeProtection) Least() int    { return fakeLeast }

func fakeSum(p secure.Packet, body []byte) uint16 {
	sum := uint16(p.Call)*31 + uint16(p.Channel)*7 + uint16(p.Seq)
	for _, b := range body {
		sum = sum<<1 | sum>>15
		sum += uint16(b)
	}
	return sum
}

func (f *fakeProtection) Seal(p secure.Packet, body []byte, data int) (uint16, error) {
	if len(body) < fakeLeast || len(body)%fakeMulti != 0 || fakeHead+data > len(body) {
		return 0, errors.New("a body of a wrong length")
	}
	f.sealed++
	binary.BigEndian.PutUint32(body, uint32(data))
	for i := range body {
		body[i] += 101
	}
	return fakeSum(p, body), nil
}

func (f *fakeProtection) Open(p secure.Packet, checksum uint16, body []byte) ([]byte, error) {
	if len(body) < fakeLeast || len(body)%fakeMulti != 0 || fakeSum(p, body) != checksum {
		return nil, fakeSealed
	}
	f.opened++
	for i := range body {
		body[i] -= 101
	}
	n := int(binary.BigEndian.Uint32(body))
	if n > len(body)-fakeHead {
		return nil, fakeSealed
	}
	return body[fakeHead : fakeHead+n], nil
}

// fakeClient is a client's credentials; wrong ones give a wrong answer.
type fakeClient struct{ wrong bool }

func (fakeClient) Index() uint8 { return fakeIndex }

func (f fakeClient) NewConn(secure.Conn) (secure.ClientConn, error) {
	return &fakeClientConn{wrong: f.wrong}, nil
}

type fakeClientConn struct {
	fakeProtection
	wrong bool
}

func (f *fakeClientConn) Respond(challenge []byte, calls secure.Calls) ([]byte, error) {
	if len(challenge) != 4 {
		return nil, fakeRefused
	}
	nonce := binary.BigEndian.Uint32(challenge)
	if !f.wrong {
		nonce++
	}
	b := binary.BigEndian.AppendUint32(nil, nonce)
	for _, n := range calls {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b, nil
}

// fakeServer accepts connections, whose tickets are good until a time.
type fakeServer struct{ until time.Time }

func (fakeServer) Index() uint8 { return fakeIndex }

func (f fakeServer) NewConn(c secure.Conn) (secure.ServerConn, error) {
	if c.Epoch == 0xbad {
		return nil, fakeRefused
	}
	return &fakeServerConn{nonce: c.ID ^ c.Epoch, until: f.until}, nil
}

type fakeServerConn struct {
	fakeProtection
	nonce uint32
	ok    bool
	until time.Time
}

func (f *fakeServerConn) Authenticated(now time.Time) (bool, error) {
	if f.ok && !f.until.IsZero() && now.After(f.until) {
		return false, fakeExpired
	}
	return f.ok, nil
}

func (f *fakeServerConn) Challenge() ([]byte, error) {
	return binary.BigEndian.AppendUint32(nil, f.nonce), nil
}

func (f *fakeServerConn) Verify(response []byte, _ time.Time) (calls secure.Calls, err error) {
	if len(response) != 20 || binary.BigEndian.Uint32(response) != f.nonce+1 {
		return calls, fakeRefused
	}
	for i := range calls {
		calls[i] = binary.BigEndian.Uint32(response[4+4*i:])
	}
	f.ok = true
	return calls, nil
}

func (f *fakeServerConn) Caller() secure.Caller {
	return secure.Caller{Name: "fake", Verified: f.ok}
}
