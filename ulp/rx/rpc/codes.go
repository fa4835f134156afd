package rpc

import (
	"errors"
	"fmt"
)

// A Code is an abort code: the way in which a call fails. It is an error, which a handler
// returns to abort its call.
type Code struct {
	Number int32
	Name   string // as the interface's documents have it; may be empty
	Text   string // what it means; may be empty
}

// Error describes the code.
func (c *Code) Error() string {
	switch {
	case c.Text != "":
		return fmt.Sprintf("%s (%s, %d)", c.Text, c.Name, c.Number)
	case c.Name != "":
		return fmt.Sprintf("%s (%d)", c.Name, c.Number)
	}
	return fmt.Sprintf("abort code %d", c.Number)
}

// AbortCode returns the number.
func (c *Code) AbortCode() int32 { return c.Number }

// Is reports whether target is the same code.
func (c *Code) Is(target error) bool {
	t, ok := target.(*Code)
	return ok && t.Number == c.Number
}

// Codes are the abort codes of an interface. They are all defined before any is looked up.
type Codes struct {
	Interface string
	codes     map[int32]*Code
	also      []*Codes
}

// NewCodes returns the codes of an interface, which has those of others, too.
func NewCodes(name string, also ...*Codes) *Codes {
	return &Codes{Interface: name, codes: make(map[int32]*Code), also: also}
}

// Define adds a code.
func (c *Codes) Define(number int32, name, text string) *Code {
	code := &Code{Number: number, Name: name, Text: text}
	c.codes[number] = code
	return code
}

// Find returns the code with this number, or nil if the interface has no such code.
func (c *Codes) Find(number int32) *Code {
	if c == nil {
		return nil
	}
	if code := c.codes[number]; code != nil {
		return code
	}
	for _, other := range c.also {
		if code := other.Find(number); code != nil {
			return code
		}
	}
	return nil
}

// All returns the codes of the interface itself, in no order.
func (c *Codes) All() []*Code {
	all := make([]*Code, 0, len(c.codes))
	for _, code := range c.codes {
		all = append(all, code)
	}
	return all
}

// Standard are the codes of this layer, which any interface has.
var Standard = NewCodes("rx")

// What the RPC layer itself aborts calls with.
var (
	ErrClientMarshal   = Standard.Define(-450, "RXGEN_CC_MARSHAL", "the client can't encode the arguments")
	ErrClientUnmarshal = Standard.Define(-451, "RXGEN_CC_UNMARSHAL", "the client can't decode the results")
	ErrServerMarshal   = Standard.Define(-452, "RXGEN_SS_MARSHAL", "the server can't encode the results")
	ErrServerUnmarshal = Standard.Define(-453, "RXGEN_SS_UNMARSHAL", "the server can't decode the arguments")
	ErrNoOpcode        = Standard.Define(-454, "RXGEN_DECODE", "the request has no opcode")
	ErrOpcode          = Standard.Define(-455, "RXGEN_OPCODE", "the server has no such operation")
)

// AbortCode returns the abort code that an error carries.
func AbortCode(err error) (int32, bool) {
	var coded interface{ AbortCode() int32 }
	if errors.As(err, &coded) {
		return coded.AbortCode(), true
	}
	return 0, false
}
