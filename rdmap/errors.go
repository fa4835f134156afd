package rdmap

import (
	"fmt"
	"strings"

	"urnic/ddp"
	"urnic/mpa"
	"urnic/stag"
)

// A TermCode is the first two bytes of a Terminate message: layer (4 bits),
// error type (4 bits), error code (8 bits) (RFC 5040 §4.8). It names any error
// of RDMAP, DDP and MPA.
type TermCode uint16

// The layers of a TermCode.
const (
	LayerRDMAP uint8 = 0
	LayerDDP   uint8 = 1
	LayerLLP   uint8 = 2
)

// RDMAP's own errors (RFC 5040 Figure 9). DDP's are in package ddp (layer 1),
// MPA's in package mpa (layer 2); their TermWord methods return this form.
const (
	CodeLocalCatastrophic TermCode = 0x0000

	CodeInvalidSTag           TermCode = 0x0100 // remote protection errors
	CodeBaseBounds            TermCode = 0x0101
	CodeAccessRights          TermCode = 0x0102
	CodeSTagNotAssociated     TermCode = 0x0103
	CodeTOWrap                TermCode = 0x0104
	CodeCannotInvalidate      TermCode = 0x0109
	CodeProtectionUnspecified TermCode = 0x01FF

	CodeInvalidVersion            TermCode = 0x0205 // remote operation errors
	CodeUnexpectedOpcode          TermCode = 0x0206
	CodeStreamCatastrophic        TermCode = 0x0207
	CodeGlobalCatastrophic        TermCode = 0x0208
	CodeOperationCannotInvalidate TermCode = 0x0209 // Figure 9 lists it in both types; 0x0109 is sent
	CodeOperationUnspecified      TermCode = 0x02FF
)

// Layer returns the layer that found the error.
func (c TermCode) Layer() uint8 { return uint8(c >> 12) }

// EType returns the error type.
func (c TermCode) EType() uint8 { return uint8(c>>8) & 0x0F }

// Code returns the error code.
func (c TermCode) Code() uint8 { return uint8(c) }

// LocalCatastrophic reports whether c is a Local Catastrophic Error of RDMAP,
// whose error code has no meaning.
func (c TermCode) LocalCatastrophic() bool { return c>>8 == 0 }

// Defined reports whether c is one of the codes of RFC 5040 Figure 9, RFC 5041
// §7.2, RFC 5044 §8 and RFC 6581 §8.
func (c TermCode) Defined() bool {
	code := c.Code()
	switch uint16(c >> 8) {
	case uint16(CodeLocalCatastrophic >> 8):
		return true // "Any value in this field is acceptable"
	case uint16(CodeInvalidSTag >> 8):
		return code <= CodeTOWrap.Code() || code == CodeCannotInvalidate.Code() || code == CodeProtectionUnspecified.Code()
	case uint16(CodeInvalidVersion >> 8):
		return code >= CodeInvalidVersion.Code() && code <= CodeOperationCannotInvalidate.Code() || code == CodeOperationUnspecified.Code()
	case ddp.CodeLocalCatastrophic.TermWord() >> 8:
		return code == 0
	case ddp.CodeInvalidSTag.TermWord() >> 8:
		return code <= uint8(ddp.CodeTaggedVersion&0xFF)
	case ddp.CodeInvalidQN.TermWord() >> 8:
		return code >= uint8(ddp.CodeInvalidQN&0xFF) && code <= uint8(ddp.CodeUntaggedVersion&0xFF)
	case mpa.CodeCRC.TermWord() >> 8:
		return code >= uint8(mpa.CodeConnectionLost) && code <= uint8(mpa.CodeNoMatchingRTR)
	}
	return false
}

// swapped returns c with layer and error type swapped.
func (c TermCode) swapped() TermCode {
	return TermCode(c.EType())<<12 | TermCode(c.Layer())<<8 | TermCode(c.Code())
}

// String returns the layer and the RFC's words for the code.
func (c TermCode) String() string {
	return fmt.Sprintf("%s (0x%04x)", c.name(), uint16(c))
}

// An Error is an error that RDMAP found, or that a lower layer found and RDMAP
// reports (RFC 5040 §7). Terminate returns the message that reports it to the
// peer.
type Error struct {
	Code       TermCode
	Clause     string // the rule that was broken
	Reason     string // what was found, human-readable
	Header     []byte // the offending DDP header, as received, if there is one
	SegmentLen int    // length of the offending DDP segment in bytes
	RDMAHeader []byte // the offending RDMA Read Request Header, brought up to date
	Err        error  // the cause, if there is one
}

// Error returns what was found and which rule it breaks.
func (e *Error) Error() string {
	s := "rdmap: " + strings.TrimPrefix(e.Code.String(), "RDMAP: ")
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	below, clause := e.below()
	if below != "" {
		s += ": " + below
	}
	if e.Clause != "" && e.Clause != clause {
		s += " (" + e.Clause + ")"
	}
	return s
}

// below returns what the cause adds to the code, and its clause.
func (e *Error) below() (text, clause string) {
	switch err := e.Err.(type) { //nolint:errorlint // others have words of their own
	case nil:
		return "", ""
	case *stag.AccessError:
		if err.Violation == violations[e.Code] {
			return err.Detail(), ""
		}
	case *ddp.Error:
		if TermCode(err.TermWord()) == e.Code {
			return strings.TrimPrefix(err.Detail(), ": "), err.Clause
		}
		clause = err.Clause
	case *mpa.Error:
		if TermCode(err.TermWord()) == e.Code {
			return strings.TrimPrefix(err.Detail(), ": "), err.Clause
		}
		clause = err.Clause
	}
	return e.Err.Error(), clause
}

// violations are the codes whose text says the same as the error of the STag
// table.
var violations = map[TermCode]stag.Violation{
	CodeInvalidSTag: stag.InvalidSTag, CodeBaseBounds: stag.OutOfBounds, CodeAccessRights: stag.NoRights,
	CodeSTagNotAssociated: stag.NotAssociated, CodeTOWrap: stag.Wrap,
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A PeerError is a Terminate message of the peer: the peer has ended the
// stream, and says why.
type PeerError struct {
	Terminate Terminate
}

// Error returns what the peer reported.
func (e *PeerError) Error() string {
	return "rdmap: the peer ended the stream: " + e.Terminate.String()
}
