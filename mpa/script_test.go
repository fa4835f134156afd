package mpa

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

// A script is a stream whose peer says fixed bytes, in pieces that a seed
// decides, and then ends its half. What is written to it is kept.
type script struct {
	pieces [][]byte // not yet read
	wrote  bytes.Buffer
	ended  int // how often CloseWrite, Close or Abort was called
}

// newScript cuts bytes into pieces.
func newScript(octets []byte, seed uint64) *script {
	s := new(script)
	rng := rand.New(rand.NewPCG(seed, 1))
	for len(octets) > 0 {
		k := len(octets)
		if seed != 0 { // 0: one piece
			k = 1 + rng.IntN(min(k, 1+rng.IntN(600)))
		}
		s.pieces = append(s.pieces, octets[:k])
		octets = octets[k:]
	}
	return s
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

// TryRead finds something only while a piece is read in part.
func (s *script) TryRead(p []byte) (int, error) {
	if len(s.pieces) == 0 || len(s.pieces)%3 != 0 {
		return 0, nil
	}
	return s.Read(p)
}

func (s *script) Polls() bool { return true }

func (s *script) ReadInto(get func() []byte, unget func()) (int, error) {
	get()
	unget() // as if nothing had been there at first
	return s.Read(get())
}

func (s *script) Write(p []byte) (int, error) { return s.wrote.Write(p) }

func (s *script) Writev(pieces [][]byte, _ bool) (int, error) { return s.wrote.Write(join(pieces...)) }

func (s *script) end() error {
	s.ended++
	return nil
}

func (s *script) CloseWrite() error                { return s.end() }
func (s *script) Close() error                     { return s.end() }
func (s *script) Abort() error                     { return s.end() }
func (s *script) MSS() int                         { return 0 }
func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
