package rdmap

import (
	"errors"

	"urnic/ddp"
	"urnic/stag"
)

// refuses returns an *stag.AccessError if the stream refuses a right that an STag grants.
func (c *Config) refuses(need stag.Access, s stag.STag, to, n uint64) error {
	if c.Refused == nil || stag.Access(c.Refused.Load())&need == 0 {
		return nil
	}
	return &stag.AccessError{Violation: stag.NoRights, STag: s, Wanted: need, TO: to, Len: n, Refused: true}
}

// protectionError converts a failed access to an error of RDMAP: for the source
// of a Read or the target of an atomic (RFC 5040 §7.2).
func protectionError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	e = &Error{Code: CodeProtectionUnspecified, Clause: "RFC 5040 §7.2", Err: err}
	if access, ok := errors.AsType[*stag.AccessError](err); ok {
		switch access.Violation {
		case stag.InvalidSTag:
			e.Code = CodeInvalidSTag
		case stag.NotAssociated:
			e.Code = CodeSTagNotAssociated
		case stag.NoRights:
			e.Code = CodeAccessRights
		case stag.OutOfBounds:
			e.Code = CodeBaseBounds
		case stag.Wrap:
			e.Code = CodeTOWrap
		}
	}
	return e
}

// placementError converts a failed access to an error of DDP: for the sink of a
// Write or a Read Response (RFC 5041 §7.1).
func placementError(err error) error {
	e := &ddp.Error{Code: ddp.CodeInvalidSTag, Clause: "RFC 5041 §7.1", Err: err}
	if access, ok := errors.AsType[*stag.AccessError](err); ok {
		switch access.Violation {
		case stag.InvalidSTag:
		case stag.NotAssociated, stag.NoRights: // there is no code for missing rights
			e.Code = ddp.CodeSTagNotAssociated
		case stag.OutOfBounds:
			e.Code = ddp.CodeBaseBounds
		case stag.Wrap:
			e.Code = ddp.CodeTOWrap
		}
	}
	return e
}

// invalidationError converts a failed invalidation of an STag to an error of
// RDMAP (RFC 5040 §5.3, §7.2).
func invalidationError(err error) *Error {
	e := &Error{Code: CodeCannotInvalidate, Clause: "RFC 5040 §5.3", Err: err}
	var access *stag.AccessError
	if errors.As(err, &access) && access.Violation == stag.InvalidSTag {
		e.Code, e.Clause = CodeInvalidSTag, "RFC 5040 §7.2"
	}
	return e
}
