package datagram

import (
	"encoding/binary"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

// services are messages, those of docs/datagrams.md.
var services = map[string]Service{
	"75525349 01010005 00000007 00000000 00000000 03ab3498 68656c6c6f": {Kind: ServiceRequest, ID: 7, Data: []byte("hello")},
	"75525349 01020000 00000007 00008001 01234567 093ca66c":            {Kind: ServiceReply, ID: 7, QPN: 0x8001, Key: 0x01234567, Data: []byte{}},
	"75525349 01020200 00000007 00000000 00000000 44378d63":            {Kind: ServiceReply, Status: ServiceRejected, ID: 7, Data: []byte{}},
}

// serviceBytes returns a message; the zeros at the end of a request are not written out.
func serviceBytes(t testing.TB, s string) []byte {
	b := unhex(t, s)
	if ServiceKind(b[5]) == ServiceRequest {
		b = append(b, make([]byte, serviceLen+MaxRequestData-len(b))...)
	}
	return b
}

func TestServiceMessagesHaveOneForm(t *testing.T) {
	page, err := os.ReadFile("../../../docs/datagrams.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Join(strings.Fields(string(page)), " ")
	for s, want := range services {
		b := serviceBytes(t, s)
		if got := want.Append(nil); string(got) != string(b) {
			t.Errorf("%+v is\n%x; want\n%x", want, got[:min(len(got), 32)], b[:min(len(b), 32)])
		}
		if got, err := ParseService(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
		if !strings.Contains(shown, s) {
			t.Errorf("docs/datagrams.md does not show %s", s)
		}
		for i := range len(b) * 8 {
			b[i/8] ^= 1 << (i % 8)
			if _, err := ParseService(b); !errors.Is(err, ErrService) {
				t.Errorf("%s: bit %d may be wrong", s, i)
			}
			b[i/8] ^= 1 << (i % 8)
		}
		for n := range b {
			if _, err := ParseService(b[:n]); !errors.Is(err, ErrService) {
				t.Errorf("%s: %d bytes are enough", s, n)
			}
		}
	}
}

func TestServiceMessagesThatBreakARuleAreRefused(t *testing.T) {
	for name, s := range map[string]Service{
		"no kind":                    {},
		"a kind that is not there":   {Kind: 3},
		"a request with a number":    {Kind: ServiceRequest, QPN: 1},
		"a request with a Q_Key":     {Kind: ServiceRequest, Key: 1},
		"a request with a status":    {Kind: ServiceRequest, Status: 1},
		"a number of 25 bits":        {Kind: ServiceReply, QPN: 1 << 24},
		"a rejection with a number":  {Kind: ServiceReply, Status: ServiceRejected, QPN: 1},
		"a rejection with the Q_Key": {Kind: ServiceReply, Status: ServiceRejected, Key: 1},
	} {
		if _, err := ParseService(s.Append(nil)); !errors.Is(err, ErrService) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPrivateDataHaveALimit(t *testing.T) {
	long := make([]byte, 300)
	for kind, most := range map[ServiceKind]int{ServiceRequest: MaxRequestData, ServiceReply: MaxReplyData} {
		s := Service{Kind: kind, Data: long}
		b := s.Append(nil)
		if got, err := ParseService(b); err != nil || len(got.Data) != most {
			t.Errorf("kind %d: %d bytes, %v; want %d", kind, len(got.Data), err, most)
		}
		for _, change := range []func(){func() { b = append(b, 0) }, func() { b[7] = byte(most + 1) }} {
			change()
			binary.BigEndian.PutUint32(b[serviceCRC:], serviceSum(b))
			if _, err := ParseService(b); !errors.Is(err, ErrService) {
				t.Errorf("kind %d: %d bytes that say %d: %v", kind, len(b), b[7], err)
			}
		}
	}
}

func FuzzParseService(f *testing.F) {
	for s := range services {
		f.Add(serviceBytes(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= serviceLen { // or nothing but the checksum is tried
			binary.BigEndian.PutUint32(b[serviceCRC:], serviceSum(b))
		}
		s, err := ParseService(b)
		if err != nil {
			return
		}
		if again := s.Append(nil); string(again) != string(b) {
			t.Errorf("%+v is\n%x; was\n%x", s, again, b)
		}
	})
}
