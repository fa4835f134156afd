package rpc

import (
	"context"
	"encoding/binary"
	"io"
	"maps"
	"net/netip"
	"slices"

	"urnic/ulp/rx/secure"
)

// A Mux serves the operations of an interface. All are added before it serves.
type Mux struct {
	name string
	ops  map[uint32]operation
}

type operation struct {
	name  string
	serve func(ctx context.Context, c io.ReadWriter) error
}

// NewMux returns a Mux without operations. Its name is the interface's, for errors.
func NewMux(name string) *Mux { return &Mux{name: name, ops: make(map[uint32]operation)} }

// Opcodes returns the opcodes in ascending order.
func (m *Mux) Opcodes() []uint32 { return slices.Sorted(maps.Keys(m.ops)) }

// Name returns the name of an operation, or "" if there is none.
func (m *Mux) Name(opcode uint32) string { return m.ops[opcode].name }

// Serve serves a call: it reads the request from c and writes the reply. It ignores what
// follows the arguments of a simple operation, as OpenAFS's servers do. When it returns nil,
// the caller ends the reply; otherwise it aborts the call with the error's code. If c has a
// method Caller() secure.Caller or Peer() netip.AddrPort, handlers see them by [Caller] and [Peer].
func (m *Mux) Serve(ctx context.Context, c io.ReadWriter) error {
	var opcode [4]byte
	if n, err := io.ReadFull(c, opcode[:]); err == io.EOF || err == io.ErrUnexpectedEOF {
		return &Error{Op: m.name, Code: ErrNoOpcode}
	} else if n < len(opcode) {
		return err
	}
	op, ok := m.ops[binary.BigEndian.Uint32(opcode[:])]
	if !ok {
		return &Error{Op: m.name, Code: ErrOpcode}
	}
	if called, ok := c.(interface{ Caller() secure.Caller }); ok {
		if who := called.Caller(); who != (secure.Caller{}) {
			ctx = WithCaller(ctx, who)
		}
	}
	if from, ok := c.(interface{ Peer() netip.AddrPort }); ok {
		ctx = context.WithValue(ctx, peerKey{}, from.Peer())
	}
	return op.serve(ctx, c)
}

// Handle adds a simple operation, in place of one with the same opcode.
func (o *Op[A, R]) Handle(m *Mux, h func(ctx context.Context, a *A) (R, error)) {
	name := m.name + "." + o.Name
	m.ops[o.Opcode] = operation{o.Name, func(ctx context.Context, c io.ReadWriter) error {
		var a A
		k := codecs.Get().(*codec)
		defer k.free()
		var err error
		if k.in, err = readAll(k.in[:0], c, o.maxArgs); err == nil {
			err = k.decode(k.in, o.args(&a), false)
			if err != nil {
				return &Error{Op: name, Code: ErrServerUnmarshal, Err: err}
			}
		} else {
			return argsFailure(name, err)
		}
		r, err := h(ctx, &a)
		if err != nil {
			return &Error{Op: name, Err: err}
		}
		return k.reply(name, c, o.results(&r))
	}}
}

// HandleStream adds a split operation, in place of one with the same opcode. The handler
// reads the request's data up to io.EOF, or as far as it wants, then writes the reply's.
func (o *Op[A, R]) HandleStream(m *Mux, h func(ctx context.Context, a *A, data io.ReadWriter) (R, error)) {
	name := m.name + "." + o.Name
	m.ops[o.Opcode] = operation{o.Name, func(ctx context.Context, c io.ReadWriter) error {
		var a A
		k := codecs.Get().(*codec)
		defer k.free()
		rest, err := k.decodePrefix(c, o.args(&a), min(o.maxArgs, maxPrefix))
		if err != nil {
			return argsFailure(name, err)
		}
		r, err := h(ctx, &a, &data{rest: rest, ReadWriter: c})
		if err != nil {
			return &Error{Op: name, Err: err}
		}
		return k.reply(name, c, o.results(&r))
	}}
}

// reply sends results.
func (k *codec) reply(name string, c io.Writer, results Value) error {
	var err error
	if k.out, err = k.encode(k.out[:0], results); err != nil {
		return &Error{Op: name, Code: ErrServerMarshal, Err: err}
	}
	if len(k.out) == 0 {
		return nil
	}
	_, err = c.Write(k.out)
	return err
}
