package krb5

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	somePart = EncTicketPart{
		Flags:         FlagTransitedChecked | 1<<30,
		KeyType:       AES256,
		SessionKey:    bytes.Repeat([]byte{0x55}, 32),
		Realm:         "RX.TEST",
		Client:        Principal{TypePrincipal, []string{"somebody", "admin"}},
		TransitedType: 1,
		Transited:     []byte("EDU,"),
		AuthTime:      time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC),
		StartTime:     time.Date(2023, 11, 14, 22, 13, 21, 0, time.UTC),
		EndTime:       time.Date(2023, 11, 15, 8, 13, 20, 0, time.UTC),
		RenewTill:     time.Date(2023, 11, 20, 8, 13, 20, 0, time.UTC),
		Rest:          []byte{0xaa, 2, 0x30, 0}, // authorization-data, empty
	}
	someData = EncryptedData{AES256, 7, bytes.Repeat([]byte{0x5a}, 300)}

	someTicket = Ticket{"RX.TEST", Principal{TypePrincipal, []string{"afs", "rx.test"}}, someData}
)

// The bytes are those of RFC 4120 §5.2.9 and §5.3, written by hand.
func TestStructuresHaveTheFormOfKerberos(t *testing.T) {
	part := EncTicketPart{
		Flags:      FlagTransitedChecked,
		KeyType:    DESCBCCRC,
		SessionKey: []byte("\x13\x57\x9b\xdf\x20\x46\x8a\xce"),
		Realm:      "rx.test",
		Client:     Principal{TypePrincipal, []string{"rxref"}},
		AuthTime:   time.Unix(1700000000, 0),
		EndTime:    time.Unix(1700036000, 0),
	}
	want := join("\x63\x72\x30\x70", // [APPLICATION 3] SEQUENCE
		"\xa0\x07\x03\x05\x00\x00\x08\x00\x00",                                                     // flags
		"\xa1\x13\x30\x11\xa0\x03\x02\x01\x01\xa1\x0a\x04\x08", "\x13\x57\x9b\xdf\x20\x46\x8a\xce", // key
		"\xa2\x09\x1b\x07rx.test", // crealm
		"\xa3\x12\x30\x10\xa0\x03\x02\x01\x01\xa1\x09\x30\x07\x1b\x05rxref", // cname
		"\xa4\x0b\x30\x09\xa0\x03\x02\x01\x00\xa1\x02\x04\x00",              // transited
		"\xa5\x11\x18\x0f20231114221320Z",                                   // authtime
		"\xa7\x11\x18\x0f20231115081320Z",                                   // endtime
	)
	if got := part.Marshal(); !bytes.Equal(got, want) {
		t.Errorf("EncTicketPart %x, want %x", got, want)
	}

	data := EncryptedData{AES256, 300, []byte("ciphertext")}
	want = join("\x30\x19",
		"\xa0\x03\x02\x01\x12",       // etype
		"\xa1\x04\x02\x02\x01\x2c",   // kvno
		"\xa2\x0c\x04\x0aciphertext") // cipher
	if got := data.Marshal(); !bytes.Equal(got, want) {
		t.Errorf("EncryptedData %x, want %x", got, want)
	}

	ticket := Ticket{"RX", Principal{TypePrincipal, []string{"afs"}}, data}
	want = join("\x61\x3c\x30\x3a",
		"\xa0\x03\x02\x01\x05", // tkt-vno
		"\xa1\x04\x1b\x02RX",   // realm
		"\xa2\x10\x30\x0e\xa0\x03\x02\x01\x01\xa1\x07\x30\x05\x1b\x03afs", // sname
		"\xa3\x1b", string(data.Marshal()), // enc-part
	)
	if got := ticket.Marshal(); !bytes.Equal(got, want) {
		t.Errorf("Ticket %x, want %x", got, want)
	}
}

func join(parts ...string) []byte { return []byte(strings.Join(parts, "")) }

func TestStructuresComeBack(t *testing.T) {
	if got, err := ParseEncTicketPart(somePart.Marshal()); err != nil || !reflect.DeepEqual(got, somePart) {
		t.Errorf("%+v, %v, want %+v", got, err, somePart)
	}
	if got, err := ParseEncryptedData(someData.Marshal()); err != nil || !reflect.DeepEqual(got, someData) {
		t.Errorf("%+v, %v, want %+v", got, err, someData)
	}
	if got, err := ParseTicket(someTicket.Marshal()); err != nil || !reflect.DeepEqual(got, someTicket) {
		t.Errorf("%+v, %v, want %+v", got, err, someTicket)
	}
	bare := somePart
	bare.StartTime, bare.RenewTill, bare.Rest = time.Time{}, time.Time{}, nil
	got, err := ParseEncTicketPart(bare.Marshal())
	if err != nil || !got.StartTime.IsZero() || !got.RenewTill.IsZero() || len(got.Rest) != 0 {
		t.Errorf("%+v, %v, want %+v", got, err, bare)
	}
}

func TestAVersionThatIsNotGivenIsZero(t *testing.T) {
	e := EncryptedData{AES128, 0, []byte("x")}
	b := e.Marshal()
	if bytes.Contains(b, []byte{0xa1}) {
		t.Errorf("%x has a version", b)
	}
	if got, err := ParseEncryptedData(b); err != nil || got.Version != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNumbersOfAllSizes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "020100", 1: "020101", 127: "02017f", 128: "02020080", 255: "020200ff", 256: "02020100",
		-1: "0201ff", -128: "020180", -129: "0202ff7f",
		math.MaxInt32: "02047fffffff", math.MaxInt32 + 1: "02050080000000", math.MaxUint32: "020500ffffffff",
		math.MinInt32: "020480000000",
	} {
		b := integer(n)
		if want := unhex(t, want); !bytes.Equal(b, want) {
			t.Errorf("%d is %x, want %x", n, b, want)
		}
		body, err := der(b).only(tagInteger)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := body.integer(); err != nil || got != n {
			t.Errorf("%x is %d, %v, want %d", b, got, err, n)
		}
	}
	for _, bad := range []string{"", "0100000000", "ff7fffffff", "000000000001"} {
		if n, err := der(unhex(t, bad)).integer(); !errors.Is(err, ErrSyntax) {
			t.Errorf("%s is %d, %v", bad, n, err)
		}
	}
	// A version above 2³¹ may come as a negative number.
	b := EncryptedData{AES128, 0xfffffff0, nil}.Marshal()
	b = bytes.Replace(b, unhex(t, "a107020500fffffff0"), unhex(t, "a1030201f0"), 1)
	b[1] -= 4
	if got, err := ParseEncryptedData(b); err != nil || got.Version != 0xfffffff0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// parsers are those of all structures, with an example of each.
var parsers = []struct {
	name  string
	whole []byte
	parse func([]byte) (any, error)
}{
	{"EncTicketPart", somePart.Marshal(), func(b []byte) (any, error) { return ParseEncTicketPart(b) }},
	{"EncryptedData", someData.Marshal(), func(b []byte) (any, error) { return ParseEncryptedData(b) }},
	{"Ticket", someTicket.Marshal(), func(b []byte) (any, error) { return ParseTicket(b) }},
}

func TestStructuresCutShortOrTooLongAreRefused(t *testing.T) {
	for _, p := range parsers {
		for n := range p.whole {
			if got, err := p.parse(p.whole[:n]); !errors.Is(err, ErrSyntax) {
				t.Errorf("%s, %d of %d bytes: %+v, %v", p.name, n, len(p.whole), got, err)
			}
		}
		if got, err := p.parse(append(slices.Clone(p.whole), 0)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%s and a byte: %+v, %v", p.name, got, err)
		}
	}
}

func TestWrongTagsAreRefused(t *testing.T) {
	for _, p := range parsers {
		for i, tag := range p.whole {
			if i != 0 && (tag < tagContext || tag > tagContext|8) { // no example has such bytes elsewhere
				continue
			}
			b := slices.Clone(p.whole)
			b[i] ^= 0x08
			if got, err := p.parse(b); !errors.Is(err, ErrSyntax) {
				t.Errorf("%s, byte %d: %+v, %v", p.name, i, got, err)
			}
		}
	}
}

func TestSpecificFaultsAreRefused(t *testing.T) {
	for _, f := range []struct {
		name     string
		parser   int
		old, new string
	}{
		{"a ticket of version 4", 2, "\xa0\x03\x02\x01\x05", "\xa0\x03\x02\x01\x04"},
		{"a time with a zone", 0, "20231114221320Z", "20231114221320+"},
		{"a time with a fraction", 0, "20231114221320Z", "202311142213.0Z"},
		{"the 13th month", 0, "20231114221320Z", "20231314221320Z"},
		{"flags of 31 bits", 0, "\x03\x05\x00\x40\x08\x00\x00", "\x03\x04\x00\x40\x08\x00"},
		{"a string of bits without bits", 0, "\x03\x05\x00\x40\x08\x00\x00", "\x03\x05\x08\x40\x08\x00\x00"},
	} {
		p := parsers[f.parser]
		b := bytes.Replace(slices.Clone(p.whole), []byte(f.old), []byte(f.new), 1)
		got, err := p.parse(b)
		if bytes.Equal(b, p.whole) || !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: %+v, %v", f.name, got, err)
		}
	}
}

func TestLengthsAreInTheirShortestForm(t *testing.T) {
	for _, bad := range []string{
		"3080",           // without a length
		"30810100",       // 1, in two bytes
		"308200800000",   // with a zero in front
		"3084000000010a", // too many
		"308300000100",
		"3082",
		"1f0100", // a tag in several bytes
		"30",
		"",
	} {
		d := der(unhex(t, bad))
		if tag, body, err := d.next(); !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: %#x %x, %v", bad, tag, body, err)
		}
	}
	for _, n := range []int{0, 1, 127, 128, 255, 256, 65535, 65536} {
		d := der(element(tagOctetString, make([]byte, n)))
		if body, err := d.only(tagOctetString); err != nil || len(body) != n {
			t.Errorf("%d bytes: %d, %v", n, len(body), err)
		}
	}
}

func TestNamesHaveABoundedNumberOfComponents(t *testing.T) {
	for n, ok := range map[int]bool{0: true, maxComponents: true, maxComponents + 1: false} {
		p := somePart
		p.Client.Components = slices.Repeat([]string{"x"}, n)
		if _, err := ParseEncTicketPart(p.Marshal()); (err == nil) != ok {
			t.Errorf("%d components: %v", n, err)
		}
	}
}
