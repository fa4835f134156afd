package ddp

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"urnic/ddp/ddptest"
	"urnic/stag"
)

func TestErrorSaysWhatWasFound(t *testing.T) {
	cause := errors.New("the cause")
	e := &Error{Code: CodeInvalidSTag, Clause: "RFC 5041 §7.1", Reason: "the reason", Err: cause}
	if got := e.Error(); got != "ddp: invalid STag: the reason: the cause (RFC 5041 §7.1)" {
		t.Errorf("the error reads %q", got)
	}
	if !errors.Is(e, cause) || e.TermWord() != 0x1100 {
		t.Errorf("%v: cause %v, Terminate word %#x", e, e.Unwrap(), e.TermWord())
	}
	if got := (&Error{Code: 0x3FE}).Error(); got != "ddp: DDP error type 3 code 0xfe" {
		t.Errorf("an unknown error reads %q", got)
	}
}

func TestUnexpectedVersionIsAnError(t *testing.T) {
	for _, version := range []byte{0, 2, 3} {
		for _, payload := range []string{"", "x"} {
			u := newUpper([]int{4, 4})
			tag, _ := u.expose(t, 0, 4)
			for _, tt := range []struct {
				segment []byte
				want    Code
			}{
				{untagged(0, 2, 0, true, payload), CodeUntaggedVersion},
				{tagged(tag, 0, true, payload), CodeTaggedVersion},
			} {
				t.Run(fmt.Sprintf("%d/%v/%q", version, tt.want, payload), func(t *testing.T) {
					u.got, u.placed, u.delivered[0] = nil, 0, 0
					s := newSinkTest(t, u)
					s.take(untagged(0, 1, 0, true, "v1")) // the version of the stream
					s.wantMessages("v1")
					calls := u.calls
					b := tt.segment
					b[0] = b[0]&^3 | version
					s.take(b)
					if s.wantError(tt.want, b); u.calls != calls {
						t.Error("the ULP was asked about the segment")
					}
				})
			}
		}
	}
}

// faults are segments that break a rule, by what it is.
func faults() map[Code][]byte {
	short := untagged(0, 1, 0, true, "")
	version := untagged(0, 1, 0, true, "x")
	version[0]++
	return map[Code][]byte{
		CodeLocalCatastrophic: short[:UntaggedHeaderLen-1],
		CodeUntaggedVersion:   version,
		CodeInvalidSTag:       tagged(0, 0, true, "payload"),
		CodeInvalidQN:         untagged(9, 1, 0, true, "payload"),
		CodeMSNNoBuffer:       untagged(0, 4, 0, true, "payload"),
		CodeMSNRange:          untagged(0, 2, 0, true, "payload"),
		CodeInvalidMO:         untagged(0, 1, 5, true, "payload"),
		CodeMessageTooLong:    untagged(0, 1, 0, true, "payload"),
	}
}

func TestErrorStopsPlacementAndIsReported(t *testing.T) {
	for code, b := range faults() {
		t.Run(code.String(), func(t *testing.T) {
			l := newLink(t, ddptest.Options{}, newUpper([]int{4, 8, 4}))
			l.llpA.Inject(b, 0)
			wantError(t, take(l.b), code, b)
			if l.ulpB.placed != 0 || len(l.ulpB.got) != 0 {
				t.Errorf("%d octets were placed, %d deliveries made", l.ulpB.placed, len(l.ulpB.got))
			}
		})
	}

	t.Run("error of the ULP", func(t *testing.T) {
		refused := errors.New("refused")
		u := newUpper([]int{4})
		u.admit = func(*UntaggedHeader) error { return refused }
		l := newLink(t, ddptest.Options{}, u)
		l.llpA.Inject(untagged(0, 1, 0, true, "x"), 0)
		if err := take(l.b); !errors.Is(err, refused) {
			t.Errorf("Receive = %v", err)
		}
	})
}

func TestSegmentsAfterAnErrorAreDropped(t *testing.T) {
	for code, bad := range faults() {
		t.Run(code.String(), func(t *testing.T) {
			u := newUpper([]int{4, 8, 4})
			tag, _ := u.expose(t, 0, 8)
			l := newLink(t, ddptest.Options{}, u)
			l.llpA.Inject(untagged(0, 1, 0, true, "wait"), 1) // placed, but it never comes to its turn
			if err := take(l.b); err != nil {
				t.Fatal(err)
			}
			l.llpA.Inject(bad, 0)
			wantError(t, take(l.b), code, bad)

			calls, first := u.calls, l.b.sink.err
			n := uint64(0)
			for _, b := range [][]byte{
				untagged(0, 1, 0, true, "good"), tagged(tag, 0, true, "good"), tagged(tag, 0, true, ""),
				untagged(0, 9, 0, true, "bad"), tagged(0, 0, true, "bad"),
				{},
				{0xFF},
				bad,
			} {
				for _, order := range []uint64{n, 0, 1, n + 2, 1 << 40} {
					l.llpA.Inject(b, order)
				}
				n++
			}
			for l.llpB.Waiting() > 0 {
				if err := take(l.b); err != nil {
					t.Fatalf("after the error Receive says %v", err)
				}
			}
			if u.calls != calls || len(u.got) != 0 || !errors.Is(l.b.sink.err, first) {
				t.Errorf("%d calls of the ULP, %d deliveries, %v", u.calls-calls, len(u.got), l.b.sink.err)
			}
		})
	}
}

func TestErrorTellsAPersonWhereToLook(t *testing.T) {
	for code, b := range faults() {
		s := newSinkTest(t, newUpper([]int{4, 8, 4}))
		s.take(b)
		if s.sink.err == nil || !strings.HasPrefix(s.sink.err.Error(), "ddp: "+code.String()+": ") {
			t.Errorf("%v", s.sink.err)
		}
	}
}

// The code and the STag table say the same in words of their own; one of them is enough.
func TestErrorSaysItsCauseOnce(t *testing.T) {
	for _, tt := range []struct {
		code      Code
		violation stag.Violation
		once      bool
	}{
		{CodeInvalidSTag, stag.InvalidSTag, true},
		{CodeBaseBounds, stag.OutOfBounds, true},
		{CodeSTagNotAssociated, stag.NotAssociated, true},
		{CodeTOWrap, stag.Wrap, true},
		{CodeInvalidSTag, stag.NoRights, false},
		{CodeBaseBounds, stag.Wrap, false},
	} {
		cause := &stag.AccessError{Violation: tt.violation, STag: 0x1100, Len: 8, TO: 16}
		err := &Error{Code: tt.code, Err: cause}
		want := "ddp: " + tt.code.String() + ": " + cause.Error()
		if tt.once {
			want = "ddp: " + tt.code.String() + ": " + cause.Detail()
		}
		if got := err.Error(); got != want {
			t.Errorf("with %v:\n%s\nwant\n%s", tt.violation, got, want)
		}
	}
}
