package oncrpc_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

var shortVerf = oncrpc.Auth{Flavor: oncrpc.AuthShort, Body: []byte("abc")}

// What stands here was put together by hand from RFC 5531 §9 and appendix A.
const callOctets = "00000007" + "00000000" + "00000002" + "000186a3" + "00000003" + "00000006" + // xid, CALL, rpcvers, prog, vers, proc
	"00000001" + "00000020" + "00000009" + "00000004" + "686f7374" + "000003e8" + "00000064" + "00000002" + "00000004" + "00000018" + // cred
	"00000002" + "00000003" + "61626300" // verf

func TestCallIsEncodedAsTheRFCDrawsIt(t *testing.T) {
	cred, err := (&oncrpc.Sys{Stamp: 9, Machine: "host", UID: 1000, GID: 100, Groups: []uint32{4, 24}}).Auth()
	if err != nil {
		t.Fatal(err)
	}
	want := oncrpc.Call{XID: 7, Program: 100003, Version: 3, Procedure: 6, Cred: cred, Verf: shortVerf}
	var e xdr.Encoder
	if err := want.Encode(&e); err != nil {
		t.Fatal(err)
	}
	message := e.AppendTo(nil)
	if got := hex.EncodeToString(message); got != callOctets {
		t.Errorf("%s; want %s", got, callOctets)
	}
	d := xdr.NewDecoder(append(message, 1, 2, 3, 4))
	var got oncrpc.Call
	if err := got.Decode(d); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %+v: %v", got, err)
	}
	if args := d.Uint32(); args != 0x01020304 || d.End() != nil {
		t.Errorf("the arguments begin with %x: %v", args, d.Err())
	}
	if xid, what, err := oncrpc.Peek(message); xid != 7 || what != oncrpc.TypeCall || err != nil {
		t.Errorf("peeked %d, %d, %v", xid, what, err)
	}
	for n := range message {
		var e *xdr.Error
		if err := new(oncrpc.Call).Decode(xdr.NewDecoder(message[:n])); !errors.As(err, &e) || !errors.Is(err, xdr.ErrShort) {
			t.Errorf("%d octets of it: %v", n, err)
		}
	}
}

func TestRepliesAreEncodedAsTheRFCDrawsThem(t *testing.T) {
	const begin, accepted, denied = "00000007" + "00000001", "00000000" + "00000000" + "00000000", "00000001"
	for octets, want := range map[string]oncrpc.Reply{
		begin + accepted + "00000000":                                          {},
		begin + "00000000" + "00000002" + "00000003" + "61626300" + "00000000": {Verf: shortVerf},
		begin + accepted + "00000001":                                          {Err: &oncrpc.AcceptedError{Stat: oncrpc.ProgramUnavailable}},
		begin + accepted + "00000002" + "00000003" + "00000004":                {Err: &oncrpc.AcceptedError{Stat: oncrpc.ProgramMismatch, Low: 3, High: 4}},
		begin + accepted + "00000003":                                          {Err: &oncrpc.AcceptedError{Stat: oncrpc.ProcedureUnavailable}},
		begin + accepted + "00000004":                                          {Err: &oncrpc.AcceptedError{Stat: oncrpc.GarbageArguments}},
		begin + accepted + "00000005":                                          {Err: &oncrpc.AcceptedError{Stat: oncrpc.SystemError}},
		begin + accepted + "00000063":                                          {Err: &oncrpc.AcceptedError{Stat: 99}},
		begin + denied + "00000000" + "00000002" + "00000002":                  {Err: &oncrpc.RejectedError{Stat: oncrpc.RPCMismatch, Low: 2, High: 2}},
		begin + denied + "00000001" + "00000005":                               {Err: &oncrpc.RejectedError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}},
		begin + denied + "00000001" + "0000000e":                               {Err: &oncrpc.RejectedError{Stat: oncrpc.AuthError, Auth: oncrpc.RPCSECGSSContextProblem}},
		begin + denied + "00000001" + "00000063":                               {Err: &oncrpc.RejectedError{Stat: oncrpc.AuthError, Auth: 99}},
	} {
		want.XID = 7
		var e xdr.Encoder
		if err := want.Encode(&e); err != nil {
			t.Fatal(err)
		}
		message := e.AppendTo(nil)
		if got := hex.EncodeToString(message); got != octets {
			t.Errorf("%v: %s; want %s", want.Err, got, octets)
		}
		d := xdr.NewDecoder(message)
		var got oncrpc.Reply
		if err := got.Decode(d); err != nil || d.End() != nil || !reflect.DeepEqual(got.Err, want.Err) || !bytes.Equal(got.Verf.Body, want.Verf.Body) {
			t.Errorf("%s: %+v, %v", octets, got, err)
		}
		if xid, what, err := oncrpc.Peek(message); xid != 7 || what != oncrpc.TypeReply || err != nil {
			t.Errorf("peeked %d, %d, %v", xid, what, err)
		}
		if want.Err != nil && (!strings.HasPrefix(want.Err.Error(), "oncrpc: ") || len(want.Err.Error()) < 12) {
			t.Errorf("%v", want.Err)
		}
		for n := range message {
			if err := got.Decode(xdr.NewDecoder(message[:n])); !errors.Is(err, xdr.ErrShort) || got.Err != nil {
				t.Errorf("%d octets of %s: %v, %v", n, octets, err, got.Err)
			}
		}
	}
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		octets string
		into   interface{ Decode(d *xdr.Decoder) error }
		want   error
	}{
		"a reply, as a call":         {"00000007" + "00000001", new(oncrpc.Call), oncrpc.ErrType},
		"a call, as a reply":         {callOctets, new(oncrpc.Reply), oncrpc.ErrType},
		"type 2":                     {"00000007" + "00000002", new(oncrpc.Reply), oncrpc.ErrType},
		"reply_stat 2":               {"00000007" + "00000001" + "00000002", new(oncrpc.Reply), xdr.ErrValue},
		"reject_stat 2":              {"00000007" + "00000001" + "00000001" + "00000002", new(oncrpc.Reply), xdr.ErrValue},
		"a verifier of 401 octets":   {"00000007" + "00000001" + "00000000" + "00000000" + "00000191" + strings.Repeat("00", 404), new(oncrpc.Reply), xdr.ErrLong},
		"a credential of 401 octets": {callOctets[:48] + "00000000" + "00000191" + strings.Repeat("00", 404), new(oncrpc.Call), xdr.ErrLong},
	} {
		octets, err := hex.DecodeString(tc.octets)
		if err != nil {
			t.Fatal(err)
		}
		if err := tc.into.Decode(xdr.NewDecoder(octets)); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v; want %v", name, err, tc.want)
		}
	}
	if _, _, err := oncrpc.Peek([]byte{0, 0, 0, 7, 0, 0, 0, 2}); !errors.Is(err, oncrpc.ErrType) {
		t.Errorf("peeked at type 2: %v", err)
	}
	if _, _, err := oncrpc.Peek([]byte{0, 0, 0, 7, 0, 0, 0}); !errors.Is(err, xdr.ErrShort) {
		t.Errorf("peeked at seven octets: %v", err)
	}
}

// A server answers a call of another version, for which it has to know its XID.
func TestCallOfAnotherVersionHasItsXID(t *testing.T) {
	var c oncrpc.Call
	err := c.Decode(xdr.NewDecoder([]byte{0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 3}))
	var other *oncrpc.VersionError
	if !errors.As(err, &other) || other.Version != 3 || c.XID != 7 {
		t.Errorf("call %d: %v", c.XID, err)
	}
}

func TestWhatNoMessageCanSayIsRefused(t *testing.T) {
	long := oncrpc.Auth{Body: make([]byte, oncrpc.MaxAuth+1)}
	for name, m := range map[string]interface{ Encode(e *xdr.Encoder) error }{
		"credential":    &oncrpc.Call{Cred: long},
		"verifier":      &oncrpc.Call{Verf: long},
		"reply":         &oncrpc.Reply{Verf: long},
		"another error": &oncrpc.Reply{Err: errors.New("something else")},
	} {
		var e xdr.Encoder
		if err := m.Encode(&e); err == nil || e.Len() != 0 {
			t.Errorf("%s: %v, and %d octets", name, err, e.Len())
		}
	}
}

func TestSysIsWhatItWas(t *testing.T) {
	for _, want := range []oncrpc.Sys{
		{},
		{Stamp: 1, Machine: "m", UID: 2, GID: 3, Groups: []uint32{4}},
		{Machine: strings.Repeat("m", oncrpc.MaxMachineName), Groups: make([]uint32, oncrpc.MaxGroups)},
	} {
		a, err := want.Auth()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := a.Sys(); err != nil || !reflect.DeepEqual(*got, want) || len(a.Body) > oncrpc.MaxAuth {
			t.Errorf("%+v in %d octets: %v; want %+v", got, len(a.Body), err, want)
		}
		for n := range a.Body {
			if s, err := (&oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: a.Body[:n]}).Sys(); err == nil {
				t.Errorf("%d octets: %+v", n, s)
			}
		}
		if s, err := (&oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: append(a.Body, 0, 0, 0, 0)}).Sys(); !errors.Is(err, xdr.ErrTrailer) {
			t.Errorf("with more behind it: %+v, %v", s, err)
		}
		if _, err := (&oncrpc.Auth{Flavor: oncrpc.AuthNone, Body: a.Body}).Sys(); !errors.Is(err, oncrpc.ErrFlavor) {
			t.Errorf("AUTH_NONE: %v", err)
		}
	}
	for _, s := range []oncrpc.Sys{{Machine: strings.Repeat("m", oncrpc.MaxMachineName+1)}, {Groups: make([]uint32, oncrpc.MaxGroups+1)}} {
		if a, err := s.Auth(); err == nil || a.Body != nil {
			t.Errorf("%d octets of a name and %d groups: %v", len(s.Machine), len(s.Groups), err)
		}
	}
}

// What is decoded is encoded as it was, but for what fills opaque data up.
func FuzzMessage(f *testing.F) {
	call, err := hex.DecodeString(callOctets)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(call)
	f.Add([]byte("\x00\x00\x00\x07\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x05"))
	f.Fuzz(func(t *testing.T, message []byte) {
		var c oncrpc.Call
		if d := xdr.NewDecoder(message); c.Decode(d) == nil {
			var e xdr.Encoder
			if err := c.Encode(&e); err != nil || e.Len() != d.At() {
				t.Fatalf("%d octets of %d: %v", e.Len(), d.At(), err)
			}
			if s, err := c.Cred.Sys(); err == nil {
				if again, err := s.Auth(); err != nil || len(again.Body) != len(c.Cred.Body) {
					t.Fatalf("%+v: %v", s, err)
				}
			}
		}
		var r oncrpc.Reply
		if d := xdr.NewDecoder(message); r.Decode(d) == nil {
			var e xdr.Encoder
			if err := r.Encode(&e); err != nil || e.Len() != d.At() {
				t.Fatalf("%d octets of %d: %v", e.Len(), d.At(), err)
			}
		}
	})
}
