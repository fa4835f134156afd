package rxperf

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"urnic/ulp/rx"
	"urnic/ulp/rx/wire"
)

// requests are requests with their bytes, as OpenAFS's rxperf has them.
var requests = []struct {
	name string
	r    Request
	wire string
}{
	{"send", Request{Command: Send, ReadSize: 0x8000, WriteSize: 0x4000, Send: 5}, "00000003 00000000 00008000 00004000 00000005"},
	{"receive", Request{Command: Receive, ReadSize: 1, WriteSize: 2, Receive: 6}, "00000003 00000001 00000001 00000002 00000006"},
	{"rpc", Request{Command: RPC, ReadSize: 4, WriteSize: 4, Send: 7, Receive: 8}, "00000003 00000003 00000004 00000004 00000007 00000008"},
	{"file", Request{Command: File, ReadSize: 4, WriteSize: 4, List: []uint32{1, 0, 2}}, "00000003 00000004 00000004 00000004 00000003 00000001 00000000 00000002"},
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRequestLayout(t *testing.T) {
	for _, tc := range requests {
		want := unhex(t, tc.wire)
		if got := tc.r.Append(nil); !bytes.Equal(got, want) {
			t.Errorf("%s is %x; want %x", tc.name, got, want)
		}
		if got, err := ReadRequest(bytes.NewReader(want)); err != nil || !reflect.DeepEqual(got, tc.r) {
			t.Errorf("%s is read as %+v, %v", tc.name, got, err)
		}
		for n := range want {
			var e *Error
			if _, err := ReadRequest(bytes.NewReader(want[:n])); !errors.As(err, &e) || e.Code != wire.SSUnmarshal {
				t.Errorf("%s cut to %d bytes: %v", tc.name, n, err)
			}
		}
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	for text, code := range map[string]wire.Code{
		"00000002 00000000 00000001 00000001 00000001":          wire.Opcode,
		"00000003 00000002 00000001 00000001 00000001":          wire.Opcode,
		"00000003 ffffffff 00000001 00000001 00000001":          wire.Opcode,
		"00000003 00000000 00080001 00000001 00000001":          wire.SSUnmarshal,
		"00000003 00000000 00000001 ffffffff 00000001":          wire.SSUnmarshal,
		"00000003 00000000 00000001 00000001 80000000":          wire.SSUnmarshal,
		"00000003 00000003 00000001 00000001 00000001 ffffffff": wire.SSUnmarshal,
		"00000003 00000004 00000001 00000001 ffffffff 00000001": wire.SSUnmarshal,
		"00000003 00000004 00000001 00000001 00000001 20000000": wire.SSUnmarshal,
		"00000003 00000000 00000001 00000001 00000005 01020304": wire.SSUnmarshal, // a byte is missing
	} {
		b := unhex(t, text)
		err := Serve(t.Context(), struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(b), io.Discard})
		var a rx.Aborter
		if !errors.As(err, &a) || a.AbortCode() != int32(code) {
			t.Errorf("%s: %v; want the code %v", text, err, code)
		}
	}
}

// serve returns the reply to a request.
func serve(t testing.TB, r *Request, data []byte) ([]byte, error) {
	t.Helper()
	var reply bytes.Buffer
	err := Serve(t.Context(), struct {
		io.Reader
		io.Writer
	}{io.MultiReader(bytes.NewReader(r.Append(nil)), bytes.NewReader(data)), &reply})
	return reply.Bytes(), err
}

func TestReplies(t *testing.T) {
	end := []byte{0, 0, 0x47, 0x11}
	for _, tc := range []struct {
		r     Request
		data  int
		reply int
		end   []byte
	}{
		{Request{Command: Send, ReadSize: 3, WriteSize: 3, Send: 10}, 10, 0, end},
		{Request{Command: Receive, ReadSize: 3, WriteSize: 3, Receive: 10}, 0, 10, end},
		{Request{Command: RPC, Send: 10, Receive: 1 << 20}, 10, 1 << 20, end},
		{Request{Command: RPC}, 0, 0, end},
		{Request{Command: File, List: []uint32{2, 3, 0, 4, 1}}, 20, 20, nil},
		{Request{Command: File}, 0, 0, nil},
	} {
		got, err := serve(t, &tc.r, make([]byte, tc.data))
		if err != nil || len(got) != tc.reply+len(tc.end) || !bytes.HasSuffix(got, tc.end) {
			t.Errorf("%+v: %d bytes, %v", tc.r, len(got), err)
		}
	}
	var a rx.Aborter
	_, err := serve(t, &Request{Command: File, List: []uint32{0, 1, 0, 1}}, make([]byte, 8))
	if !errors.As(err, &a) || a.AbortCode() != int32(wire.InvalidOperation) {
		t.Errorf("a list that turns twice: %v", err)
	}
}

// A server answers any request or aborts it, and writes no more than the request asks for.
func FuzzServe(f *testing.F) {
	for _, tc := range requests {
		f.Add(unhex(f, tc.wire))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ReadRequest(bytes.NewReader(b))
		if err == nil && !bytes.HasPrefix(b, r.Append(nil)) {
			t.Errorf("%x is %+v", b, r)
		}
		want := int64(r.Receive)
		for _, w := range r.List {
			want += 4 * int64(w)
		}
		if want > 1<<24 {
			return // which takes too long
		}
		var n counter
		err = Serve(t.Context(), struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(b), &n})
		var a rx.Aborter
		if err != nil && !errors.As(err, &a) {
			t.Errorf("the error has no code: %v", err)
		}
		if int64(n) > want+4 {
			t.Errorf("%d bytes for %+v", n, r)
		}
	})
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
