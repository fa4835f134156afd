package rdmap

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"urnic/ddp"
	"urnic/mpa"
	"urnic/stag"
)

// An error states its cause once, whichever layers have passed it on, and all of them are
// found in it.
func TestErrorsStateTheirCauseOnce(t *testing.T) {
	access := func(v stag.Violation) *stag.AccessError {
		return &stag.AccessError{Violation: v, STag: 0x100, Wanted: stag.RemoteWrite, TO: 0x10, Len: 8, Base: 0x20, Size: 4, Granted: stag.RemoteRead}
	}
	read := access(stag.NoRights)
	segment := &ddp.SegmentError{Header: []byte{1}, SegmentLen: 9, Err: io.ErrNoProgress}
	lost := &mpa.Error{Code: mpa.CodeCRC, Clause: "RFC 5044 §8", Reason: "FPDU 7"}
	under := &ddp.Error{Code: ddp.CodeTOWrap, Clause: "RFC 5041 §5.1", Reason: "it wraps"}
	for _, tt := range []struct {
		err   error
		want  string
		cause error
	}{
		{
			asError(placementError(access(stag.InvalidSTag))),
			"rdmap: DDP: invalid STag (0x1100): 0x00000100, remote write of 8 octets at 0x10 (RFC 5041 §7.1)", nil,
		},
		{
			asError(placementError(access(stag.OutOfBounds))),
			"rdmap: DDP: base or bounds violation (0x1101): 0x00000100, remote write of 8 octets at 0x10; it covers 4 octets at 0x20 (RFC 5041 §7.1)", nil,
		},
		{ // DDP has no code for rights
			asError(placementError(access(stag.NoRights))),
			"rdmap: DDP: STag not associated with DDP stream (0x1102): stag: access rights violation: 0x00000100, remote write of 8 octets at 0x10; it grants remote read (RFC 5041 §7.1)", nil,
		},
		{
			protectionError(read),
			"rdmap: access rights violation (0x0102): 0x00000100, remote write of 8 octets at 0x10; it grants remote read (RFC 5040 §7.2)", read,
		},
		{asError(segment), "rdmap: catastrophic error, localized to RDMAP stream (0x0207): multiple Read calls return no data or error (RFC 5040 §7.1)", io.ErrNoProgress},
		{asError(lost), "rdmap: MPA: CRC error (0x2002): FPDU 7 (RFC 5044 §8)", lost},
		{
			&Error{Code: CodeLocalCatastrophic, Clause: "RFC 5040 §7.1", Err: lost},
			"rdmap: local catastrophic error (0x0000): mpa: CRC error: FPDU 7 (RFC 5044 §8) (RFC 5040 §7.1)", lost,
		},
		{ // a clause that the cause names is not repeated
			&Error{Code: CodeLocalCatastrophic, Clause: "RFC 5044 §8", Err: lost},
			"rdmap: local catastrophic error (0x0000): mpa: CRC error: FPDU 7 (RFC 5044 §8)", lost,
		},
		{
			&Error{Code: CodeLocalCatastrophic, Clause: "RFC 5041 §5.1", Err: under},
			"rdmap: local catastrophic error (0x0000): " + under.Error(), under,
		},
		{
			&Error{Code: CodeLocalCatastrophic, Clause: "RFC 5040 §7.1", Err: under},
			"rdmap: local catastrophic error (0x0000): " + under.Error() + " (RFC 5040 §7.1)", under,
		},
		{&Error{Code: CodeInvalidSTag, Clause: "RFC 5040 §7.1", Err: io.EOF}, "rdmap: invalid STag (0x0100): EOF (RFC 5040 §7.1)", io.EOF},
		{&Error{Code: CodeInvalidSTag, Err: fmt.Errorf("in other words: %w", read)}, "rdmap: invalid STag (0x0100): in other words: " + read.Error(), read},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%q\nwant\n%q", got, tt.want)
		}
		if tt.cause != nil && !errors.Is(tt.err, tt.cause) {
			t.Errorf("%v does not wrap %v", tt.err, tt.cause)
		}
		if a := (*stag.AccessError)(nil); tt.cause == nil && (!errors.As(tt.err, &a) || !errors.As(tt.err, new(*ddp.Error))) {
			t.Errorf("%v does not wrap what DDP and the STag table found", tt.err)
		}
	}
}
