package rxperf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"urnic/ulp/rx/wire"
)

// Numbers of the protocol.
const (
	ServiceID = 147
	Port      = 7009

	version = 3
	magic   = 0x4711

	maxSize = 512 << 10 // of read size and write size: OpenAFS takes no more
	maxList = 1 << 16   // words of a file
)

// A Command says what a call does.
type Command uint32

// The commands.
const (
	Send    Command = 0 // bytes go to the server
	Receive Command = 1 // bytes come back
	RPC     Command = 3 // both, one after the other
	File    Command = 4 // as a list says
)

// ParseCommand returns the command of a name: send, receive or rpc.
func ParseCommand(name string) (Command, error) {
	for _, c := range []Command{Send, Receive, RPC} {
		if c.String() == name {
			return c, nil
		}
	}
	return 0, fmt.Errorf("rxperf: no command %q: must be one of send, receive, rpc", name)
}

func (c Command) String() string {
	switch c {
	case Send:
		return "send"
	case Receive:
		return "receive"
	case RPC:
		return "rpc"
	case File:
		return "file"
	}
	return fmt.Sprintf("command %d", uint32(c))
}

// A Request is what stands in front of a call's data.
type Request struct {
	Command             Command
	ReadSize, WriteSize uint32
	Send                uint32   // bytes that follow, of Send and RPC
	Receive             uint32   // bytes of the reply, of Receive and RPC
	List                []uint32 // of File
}

// Append appends the request to b.
func (r *Request) Append(b []byte) []byte {
	words := []uint32{version, uint32(r.Command), r.ReadSize, r.WriteSize}
	switch r.Command {
	case Send:
		words = append(words, r.Send)
	case Receive:
		words = append(words, r.Receive)
	case RPC:
		words = append(words, r.Send, r.Receive)
	case File:
		words = append(words, uint32(len(r.List)))
		words = append(words, r.List...)
	}
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// An Error is what is wrong with a request. A server aborts the call with its code.
type Error struct {
	Code wire.Code
	Err  error
}

func (e *Error) Error() string { return "rxperf: " + e.Err.Error() }

// Unwrap returns what was found.
func (e *Error) Unwrap() error { return e.Err }

// AbortCode is the code for the abort.
func (e *Error) AbortCode() int32 { return int32(e.Code) }

func fail(code wire.Code, format string, args ...any) error {
	return &Error{code, fmt.Errorf(format, args...)}
}

// ReadRequest reads a request. Its error is an *Error, or the call's.
func ReadRequest(c io.Reader) (r Request, err error) {
	var head [16]byte
	if err := readWords(c, head[:]); err != nil {
		return r, err
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(head[4*i:]) }
	if v := word(0); v != version {
		return r, fail(wire.Opcode, "version %d of the protocol, and only %d is known", v, version)
	}
	r.Command, r.ReadSize, r.WriteSize = Command(word(1)), word(2), word(3)
	if r.ReadSize > maxSize || r.WriteSize > maxSize {
		return r, fail(wire.SSUnmarshal, "reads of %d bytes and writes of %d: there can be %d", r.ReadSize, r.WriteSize, maxSize)
	}
	fields := head[:4]
	switch r.Command {
	case Send, Receive, File:
	case RPC:
		fields = head[:8]
	default:
		return r, fail(wire.Opcode, "unknown %v", r.Command)
	}
	if err := readWords(c, fields); err != nil {
		return r, err
	}
	switch r.Command {
	case Send:
		r.Send = word(0)
	case Receive:
		r.Receive = word(0)
	case RPC:
		r.Send, r.Receive = word(0), word(1)
	case File:
		r.List, err = readList(c, word(0))
		return r, err
	}
	const most = 1<<31 - 1 // they have a sign in OpenAFS
	if r.Send > most || r.Receive > most {
		return r, fail(wire.SSUnmarshal, "%d bytes, and %d in return: there can be %d", r.Send, r.Receive, most)
	}
	return r, nil
}

// readList reads the words of a file.
func readList(c io.Reader, n uint32) ([]uint32, error) {
	if n > maxList {
		return nil, fail(wire.SSUnmarshal, "a file of %d words: there can be %d", n, maxList)
	}
	var list []uint32
	for range n { // memory is taken as they come
		var b [4]byte
		if err := readWords(c, b[:]); err != nil {
			return nil, err
		}
		w := binary.BigEndian.Uint32(b[:])
		if w > (1<<31-1)/4 {
			return nil, fail(wire.SSUnmarshal, "%d words of data: there can be %d", w, (1<<31-1)/4)
		}
		list = append(list, w)
	}
	return list, nil
}

func readWords(c io.Reader, b []byte) error {
	_, err := io.ReadFull(c, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fail(wire.SSUnmarshal, "the request ends within its parameters")
	}
	return err
}
