package server

import (
	"encoding/json"
	"testing"

	"urnic/conformance/service"
)

// FuzzRequest feeds lines to the parser: whatever it takes stays the same when it
// is written and parsed again, and nothing else is an error than an *Error.
func FuzzRequest(f *testing.F) {
	for op := range operations {
		f.Add([]byte(`{"id":7,"op":"` + op + `","args":{}}`))
	}
	for _, line := range []string{
		`{"id":1,"op":"hello","args":{"version":1}}`,
		`{"id":1,"op":"listen","args":{"ird":0,"rtr":["send"],"private_data":"00ff","qp":{"srq":1},"recvs":[{"length":4}]}}`,
		`{"id":1,"op":"post","args":{"qp":1,"posts":[{"op":"write","data":"0a","remote":{"stag":"0x1","to":9007199254740992}}]}}`,
		`{"id":1,"op":"register","args":{"length":18446744073709551615,"base":"0xffffffffffffffff","pattern":null}}`,
		`{"id":1,"op":"connect","args":null}`, "{", "", "null",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseRequest(line)
		if err != nil {
			isError(t, err)
			return
		}
		_, args, err := parseArgs(r)
		if err != nil {
			isError(t, err)
			return
		}
		once := must(json.Marshal(args))(t)
		_, again, err := parseArgs(&service.Request{ID: 1, Op: r.Op, Args: once})
		check(t, err)
		if twice := must(json.Marshal(again))(t); string(once) != string(twice) {
			t.Errorf("%s became %s", once, twice)
		}
	})
}

func isError(t *testing.T, err error) {
	if service.CodeOf(err) == "" {
		t.Errorf("%v has no code", err)
	}
}
