package oncrpc

import (
	"fmt"

	"urnic/ulp/oncrpc/xdr"
)

// reply_stat of RFC 5531 §9.
const (
	replyAccepted = 0
	replyDenied   = 1
)

// An AcceptStat is what became of a call that was accepted (RFC 5531 §9).
type AcceptStat uint32

// What may become of a call.
const (
	Success              AcceptStat = 0
	ProgramUnavailable   AcceptStat = 1
	ProgramMismatch      AcceptStat = 2
	ProcedureUnavailable AcceptStat = 3
	GarbageArguments     AcceptStat = 4
	SystemError          AcceptStat = 5
)

var acceptStats = [...]string{
	"it was carried out", "the server has no such program", "the server has no such version of the program",
	"the program has no such procedure", "the server can't decode the arguments", "the server has failed, as it may for want of memory",
}

func (s AcceptStat) String() string {
	if int(s) < len(acceptStats) {
		return acceptStats[s]
	}
	return fmt.Sprintf("status %d", uint32(s))
}

// An AcceptedError says why a call that was accepted was not carried out.
type AcceptedError struct {
	Stat      AcceptStat // not Success
	Low, High uint32     // the versions that there are, with ProgramMismatch
}

func (e *AcceptedError) Error() string {
	if e.Stat == ProgramMismatch {
		return fmt.Sprintf("oncrpc: %v: it has %d to %d", e.Stat, e.Low, e.High)
	}
	return "oncrpc: " + e.Stat.String()
}

func (e *AcceptedError) encode(x *xdr.Encoder) {
	x.Uint32(uint32(e.Stat))
	if e.Stat == ProgramMismatch {
		x.Uint32(e.Low)
		x.Uint32(e.High)
	}
}

// decodeAccepted returns nil for Success. Other statuses than those of RFC 5531 are
// void.
func decodeAccepted(d *xdr.Decoder) error {
	stat := AcceptStat(d.Uint32())
	if stat == Success {
		return nil
	}
	e := &AcceptedError{Stat: stat}
	if stat == ProgramMismatch {
		e.Low, e.High = d.Uint32(), d.Uint32()
	}
	return e
}

// A RejectStat is why a call was not accepted (RFC 5531 §9).
type RejectStat uint32

// Why a call may not be accepted.
const (
	RPCMismatch RejectStat = 0 // another version of the protocol
	AuthError   RejectStat = 1 // the caller can't be authenticated
)

// An AuthStat is why authentication failed (RFC 5531 §9).
type AuthStat uint32

// Why authentication may fail.
const (
	AuthOK                  AuthStat = 0
	AuthBadCred             AuthStat = 1
	AuthRejectedCred        AuthStat = 2
	AuthBadVerf             AuthStat = 3
	AuthRejectedVerf        AuthStat = 4
	AuthTooWeak             AuthStat = 5
	AuthInvalidResponse     AuthStat = 6
	AuthFailed              AuthStat = 7
	AuthKerberosGeneric     AuthStat = 8
	AuthTimeExpired         AuthStat = 9
	AuthTicketFile          AuthStat = 10
	AuthDecode              AuthStat = 11
	AuthNetAddress          AuthStat = 12
	RPCSECGSSCredProblem    AuthStat = 13
	RPCSECGSSContextProblem AuthStat = 14
)

var authStats = [...]string{
	"success", "bad credential", "rejected credential: begin a new session", "bad verifier", "expired or replayed verifier",
	"too weak: use a stronger flavor", "bogus response verifier", "unknown reason", "Kerberos error", "expired credential",
	"problem with the ticket file", "authenticator that can't be decoded", "wrong network address in the ticket",
	"no credentials for the user", "problem with the security context",
}

func (s AuthStat) String() string {
	if int(s) < len(authStats) {
		return authStats[s]
	}
	return fmt.Sprintf("status %d", uint32(s))
}

// A RejectedError says why a call was not accepted.
type RejectedError struct {
	Stat      RejectStat
	Low, High uint32   // the versions of the protocol that the server has, with RPCMismatch
	Auth      AuthStat // with AuthError
}

func (e *RejectedError) Error() string {
	if e.Stat == RPCMismatch {
		return fmt.Sprintf("oncrpc: the server has other versions of the protocol: %d to %d", e.Low, e.High)
	}
	return fmt.Sprintf("oncrpc: the server does not accept the credential: %v", e.Auth)
}

func (e *RejectedError) encode(x *xdr.Encoder) {
	x.Uint32(uint32(e.Stat))
	if e.Stat == RPCMismatch {
		x.Uint32(e.Low)
		x.Uint32(e.High)
		return
	}
	x.Uint32(uint32(e.Auth))
}

func decodeRejected(d *xdr.Decoder) error {
	e := &RejectedError{Stat: RejectStat(d.Uint32())}
	switch e.Stat {
	case RPCMismatch:
		e.Low, e.High = d.Uint32(), d.Uint32()
	case AuthError:
		e.Auth = AuthStat(d.Uint32())
	default:
		d.Fail("the reason of a rejection", xdr.ErrValue)
	}
	return e
}
