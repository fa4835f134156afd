package mpa

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

func TestErrorsSayWhatAndWhy(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{lost(io.EOF), "mpa: connection lost: EOF (RFC 5044 §8)"},
		{startupError("RFC 5044 §7.1.1", "PD_Length is %d", 513), "mpa: invalid MPA start-up frame: PD_Length is 513 (RFC 5044 §7.1.1)"},
		{&Error{Code: 99}, "mpa: MPA error code 99"},
		{&Error{Code: CodeNoMatchingRTR + 1}, "mpa: MPA error code 8"},
		{&ConfigError{"IRD 20000"}, "mpa: configuration: IRD 20000"},
		{&RejectedError{}, "mpa: the Responder rejected the connection"},
		{
			&RejectedError{PrivateData: []byte("no"), Enhanced: true, IRD: 3, ORD: 4},
			"mpa: the Responder rejected the connection with 2 octets of private data, offering IRD 3 and ORD 4",
		},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%q; want %q", got, tt.want)
		}
	}
	both := &triesError{last: lost(io.EOF), first: lost(io.EOF)}
	if got := both.Error(); got != "mpa: connection lost: EOF (RFC 5044 §8)" || !errors.Is(both, io.EOF) {
		t.Errorf("both tries: %q", got)
	}
	both.first = lost(io.ErrUnexpectedEOF)
	if got := both.Error(); got != both.last.Error()+"; with revision 2: "+both.first.Error() || !errors.Is(both, both.first) {
		t.Errorf("both tries: %q", got)
	}
	// What start-up waited for is added to what went wrong.
	why := (&startup{}).why(t.Context(), "waiting for the Reply", lost(io.EOF))
	if got := why.Error(); got != "mpa: connection lost: waiting for the Reply: EOF (RFC 5044 §8)" || !errors.As(why, new(*Error)) || !errors.Is(why, io.EOF) {
		t.Errorf("%q", got)
	}
	why = (&startup{}).why(t.Context(), "waiting for the Reply", lost(os.ErrDeadlineExceeded))
	const slow = "mpa: connection lost: waiting for the Reply took too long: raise the time limit, or see whether the peer speaks MPA and has the other role" +
		": i/o timeout (RFC 5044 §7.1.2)"
	if got := why.Error(); got != slow || !errors.Is(why, os.ErrDeadlineExceeded) {
		t.Errorf("%q", got)
	}
	why = (&startup{}).why(t.Context(), "waiting for the Reply", startupError("RFC 5044 §7.1.1", "PD_Length is 513"))
	if got := why.Error(); got != "mpa: invalid MPA start-up frame: waiting for the Reply: PD_Length is 513 (RFC 5044 §7.1.1)" {
		t.Errorf("%q", got)
	}
	why = (&startup{}).why(t.Context(), "waiting for the Reply", io.ErrShortWrite)
	if got := why.Error(); got != "mpa: waiting for the Reply: short write" || !errors.Is(why, io.ErrShortWrite) {
		t.Errorf("%q", got)
	}
	if !errors.Is(lost(io.EOF), io.EOF) {
		t.Error("an Error does not wrap its cause")
	}
}

// The codes of RFC 5044 §8 and RFC 6581 §8, under layer 2 and error type 0.
func TestTerminateWords(t *testing.T) {
	for code, want := range map[Code]uint16{
		CodeConnectionLost: 0x2001, CodeCRC: 0x2002, CodeMarker: 0x2003, CodeStartup: 0x2004,
		CodeLocalCatastrophic: 0x2005, CodeInsufficientIRD: 0x2006, CodeNoMatchingRTR: 0x2007,
	} {
		if got := code.TermWord(); got != want || strings.Contains(code.String(), "code") {
			t.Errorf("%v: %#x; want %#x", code, got, want)
		}
	}
}

func TestRoleNames(t *testing.T) {
	for r, want := range map[Role]string{Initiator: "initiator", Responder: "responder", 7: "role 7"} {
		if r.String() != want {
			t.Errorf("%q; want %q", r, want)
		}
	}
}

func TestFramesInOneLine(t *testing.T) {
	for _, tt := range []struct {
		octets []byte
		want   string
	}{
		{frame(reqKey, 0xC0, 1, 'a', 'b'), "MPA Request rev=1 M C pd=2"},
		{frame(repKey, 0x70, 2, 0x80, 3, 0xC0, 4, 'a'), "MPA Reply rev=2 C R S ird=3 ord=4 p2p rtr=Write+Read pd=1"},
		{frame(repKey, 0x30, 2), "MPA Reply rev=2 R S pd=0"},
	} {
		f, _, err := ParseFrame(tt.octets)
		if err != nil || f.String() != tt.want {
			t.Errorf("%q, %v; want %q", f.String(), err, tt.want)
		}
	}
}
