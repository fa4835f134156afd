package rxkad_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxkad/krb5"
)

// What tkt_MakeTicket of OpenAFS 1.8.9 makes of contents.
const oldTicket = "5e904c544c5392a56d1e204fa2a3df511087f812afe37180479d9aea1b26096713e225c6d986d84c"

func TestOldTicketOfOpenAFS(t *testing.T) {
	keys := testKeys(t)
	says, key, err := keys.OpenTicket(desVersion, unhex(t, oldTicket))
	want := contents
	want.Service = "afs"
	want.End = start.Add(41055 * time.Second) // the lifetime of 10 hours is the next longer one
	if says.End.Before(end) || key != desVersion || err != nil {
		t.Errorf("%+v, key %d, %v", says, key, err)
	}
	want.End = says.End
	if says != want {
		t.Errorf("%+v, want %+v", says, want)
	}
	if made := forge(t, keys, desVersion, 0, contents); !bytes.Equal(made.Data, unhex(t, oldTicket)) {
		t.Errorf("made %x, want %s", made.Data, oldTicket)
	}
}

// plainTicket is an old ticket before it is encrypted.
func plainTicket(flags byte, name string, lifetime byte, begins []byte, service string) []byte {
	b := append([]byte{flags}, name+"\x00\x00\x00"...)
	b = append(b, 1, 2, 3, 4)
	b = append(b, sessionKey[:]...)
	b = append(append(b, lifetime), begins...)
	return append(b, service+"\x00\x00"...)
}

func TestOldTicketsOfTheOtherByteOrder(t *testing.T) {
	keys := testKeys(t)
	for flags, order := range map[byte]binary.ByteOrder{0: binary.BigEndian, 1: binary.LittleEndian} {
		begins := make([]byte, 4)
		order.PutUint32(begins, 1_700_000_000)
		b := rxkad.EncryptOld(desKey, plainTicket(flags, "rxref", 12, begins, "afs"))
		says, _, err := keys.OpenTicket(desVersion, b)
		if err != nil || !says.Start.Equal(start) || !says.End.Equal(start.Add(time.Hour)) || says.Host != order.Uint32([]byte{1, 2, 3, 4}) {
			t.Errorf("flags %d: %+v, %v", flags, says, err)
		}
	}
}

func TestOldTicketsThatAreNone(t *testing.T) {
	keys := testKeys(t)
	begins := []byte{0x65, 0x53, 0xf1, 0}
	fine := plainTicket(0, "rxref", 12, begins, "afs")
	for name, plain := range map[string][]byte{
		"without a name":         plainTicket(0, "", 12, begins, "afsservice"),
		"without a service":      plainTicket(0, "rxrefrxref", 12, begins, ""),
		"a name too long":        plainTicket(0, strings.Repeat("x", 64), 12, begins, "afs"),
		"a name without an end":  bytes.Repeat([]byte{'x'}, 64),
		"8 bytes more":           append(bytes.Clone(fine), make([]byte, 16)...),
		"cut after the key":      fine[:24],
		"cut in the service":     append(bytes.Clone(fine[:len(fine)-2]), "service xxx"...)[:40],
		"zeros":                  make([]byte, 48),
		"longer than it must be": append(bytes.Clone(fine), make([]byte, 64)...),
	} {
		b := rxkad.EncryptOld(desKey, bytes.Clone(plain))
		if len(b) < 32 {
			b = append(b, make([]byte, 32-len(b))...)
		}
		_, _, err := keys.OpenTicket(desVersion, b)
		t.Run(name, func(t *testing.T) { wantCode(t, err, rxkad.CodeBadTicket) })
	}
	// But 56 bytes are what old programs always made.
	long := append(bytes.Clone(fine), make([]byte, 56-len(fine))...)
	if _, _, err := keys.OpenTicket(desVersion, rxkad.EncryptOld(desKey, long)); err != nil {
		t.Error(err)
	}
	_, _, err := keys.OpenTicket(desVersion, make([]byte, 33))
	wantCode(t, err, rxkad.CodeBadTicket)
	for _, n := range []int{0, 24, 31, 12_001} {
		_, _, err := keys.OpenTicket(desVersion, make([]byte, n))
		wantCode(t, err, rxkad.CodeTicketLength)
	}
}

func TestLifetimesOfOldTickets(t *testing.T) {
	// The table that Kerberos 4 has used since Athena, in seconds.
	want := []uint32{
		38400, 41055, 43894, 46929, 50174, 53643, 57352, 61318, 65558, 70091, 74937, 80119, 85658, 91581, 97914, 104684,
		111922, 119661, 127935, 136781, 146239, 156350, 167161, 178720, 191077, 204289, 218415, 233517, 249664, 266926, 285383, 305116,
		326213, 348769, 372885, 398668, 426234, 455705, 487215, 520904, 556921, 595430, 636601, 680618, 727680, 777995, 831789, 889303,
		950794, 1016537, 1086825, 1161973, 1242318, 1328218, 1420057, 1518247, 1623226, 1735464, 1855462, 1983758, 2120925, 2267576, 2424367, 2592000,
	}
	if !slices.Equal(rxkad.Lifetimes[:], want) {
		t.Errorf("%v", rxkad.Lifetimes)
	}
	for _, test := range []struct {
		lifetime byte
		seconds  int64
	}{{0, 0}, {1, 300}, {127, 38100}, {128, 38400}, {191, 2592000}, {192, 2592000}, {254, 2592000}} {
		if got := rxkad.EndOf(1000, test.lifetime); got.Unix() != 1000+test.seconds {
			t.Errorf("lifetime %d ends at %v, want %d s", test.lifetime, got, 1000+test.seconds)
		}
	}
	if got := rxkad.EndOf(1000, 255); !got.IsZero() {
		t.Errorf("lifetime 255 ends at %v", got)
	}
	for _, test := range []struct {
		d    time.Duration
		want byte
		ok   bool
	}{
		{0, 0, false},
		{-time.Hour, 0, false},
		{1, 1, true},
		{5 * time.Minute, 1, true},
		{5*time.Minute + 1, 2, true},
		{38100 * time.Second, 127, true},
		{38101 * time.Second, 128, true},
		{38401 * time.Second, 129, true},
		{30 * 24 * time.Hour, 191, true},
		{30*24*time.Hour + 1, 0, false},
	} {
		if got, ok := rxkad.LifetimeOf(test.d); got != test.want || ok != test.ok {
			t.Errorf("%v: lifetime %d, %v; want %d, %v", test.d, got, ok, test.want, test.ok)
		}
	}
}

// kerberosTicket encrypts what a ticket says.
func kerberosTicket(t *testing.T, says krb5.EncTicketPart) []byte {
	t.Helper()
	key, err := krb5.NewKey(krb5.AES256, unhex(t, "00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := key.Encrypt(nonces(1), krb5.UsageTicket, says.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	return krb5.EncryptedData{Enctype: krb5.AES256, Version: kerberosVersion, Cipher: b}.Marshal()
}

func TestKerberosTickets(t *testing.T) {
	keys := testKeys(t)
	user := krb5.Principal{Type: krb5.TypePrincipal, Components: []string{"rxref"}}
	fine := krb5.EncTicketPart{KeyType: krb5.DESCBCCRC, SessionKey: sessionKey[:], Realm: "rx.test", Client: user, AuthTime: start, EndTime: end}
	for _, test := range []struct {
		name   string
		change func(p *krb5.EncTicketPart)
		check  func(c rxkad.Contents) bool
		code   rxkad.Code
	}{
		{"plain", func(*krb5.EncTicketPart) {}, func(c rxkad.Contents) bool { return c == contents }, 0},
		{"a start of its own", func(p *krb5.EncTicketPart) { p.StartTime = start.Add(time.Hour) }, func(c rxkad.Contents) bool { return c.Start.Equal(start.Add(time.Hour)) }, 0},
		{"a start of 1970", func(p *krb5.EncTicketPart) { p.AuthTime = time.Unix(0, 0) }, func(c rxkad.Contents) bool { return c.Start.IsZero() }, 0},
		{"an end of 2106", func(p *krb5.EncTicketPart) { p.EndTime = time.Unix(1<<32-1, 0) }, func(c rxkad.Contents) bool { return c.End.IsZero() }, 0},
		{"an instance", func(p *krb5.EncTicketPart) { p.Client.Components = []string{"rxref", "admin"} }, func(c rxkad.Contents) bool { return c.Instance == "admin" }, 0},
		{"an AES session key", func(p *krb5.EncTicketPart) { p.KeyType, p.SessionKey = krb5.AES256, make([]byte, 32) }, func(c rxkad.Contents) bool { return c.SessionKey != sessionKey }, 0},
		{"three components", func(p *krb5.EncTicketPart) { p.Client.Components = []string{"a", "b", "c"} }, nil, rxkad.CodeBadTicket},
		{"no components", func(p *krb5.EncTicketPart) { p.Client.Components = nil }, nil, rxkad.CodeBadTicket},
		{"an empty name", func(p *krb5.EncTicketPart) { p.Client.Components = []string{""} }, nil, rxkad.CodeBadTicket},
		{"a name with a dot", func(p *krb5.EncTicketPart) { p.Client.Components = []string{"rxref.admin"} }, nil, rxkad.CodeBadTicket},
		{"a name with a zero", func(p *krb5.EncTicketPart) { p.Client.Components = []string{"rxref\x00"} }, nil, rxkad.CodeBadTicket},
		{"a name too long", func(p *krb5.EncTicketPart) { p.Client.Components = []string{strings.Repeat("x", 64)} }, nil, rxkad.CodeBadTicket},
		{"a DES key too short", func(p *krb5.EncTicketPart) { p.SessionKey = p.SessionKey[:7] }, nil, rxkad.CodeBadTicket},
		{"a session key of no type", func(p *krb5.EncTicketPart) { p.KeyType = 0 }, nil, rxkad.CodeBadTicket},
		{"flagged as invalid", func(p *krb5.EncTicketPart) { p.Flags = krb5.FlagInvalid }, nil, rxkad.CodeNoAuth},
	} {
		t.Run(test.name, func(t *testing.T) {
			says := fine
			says.SessionKey = bytes.Clone(fine.SessionKey)
			test.change(&says)
			c, key, err := keys.OpenTicket(rxkad.VersionEncryptedPart, kerberosTicket(t, says))
			switch {
			case test.code != 0:
				wantCode(t, err, test.code)
			case err != nil || key != kerberosVersion || !test.check(c):
				t.Errorf("%+v, key %d, %v", c, key, err)
			}
		})
	}
	for _, version := range []uint32{rxkad.VersionEncryptedPart, rxkad.VersionKerberos} {
		_, _, err := keys.OpenTicket(version, bytes.Repeat([]byte{0x30}, 64))
		wantCode(t, err, rxkad.CodeBadTicket)
	}
	// What is encrypted well and is no ticket.
	key, err := krb5.NewKey(krb5.AES256, unhex(t, "00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := key.Encrypt(nonces(1), krb5.UsageTicket, make([]byte, 64))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = keys.OpenTicket(rxkad.VersionEncryptedPart, krb5.EncryptedData{Enctype: krb5.AES256, Version: kerberosVersion, Cipher: b}.Marshal())
	wantCode(t, err, rxkad.CodeBadTicket)
}

// As the option -localauth of the AFS tools does.
func TestForgeUsesTheNewestKey(t *testing.T) {
	add := func(t *testing.T, k *rxkad.Keyring, version uint32, e krb5.Enctype) {
		t.Helper()
		var err error
		switch e {
		case 0:
			err = k.AddDES(version, desKey)
		case krb5.AES128:
			err = k.Add(version, e, make([]byte, 16))
		default:
			err = k.Add(version, e, make([]byte, 32))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	type key struct {
		version uint32
		enctype krb5.Enctype
	}
	for _, test := range []struct {
		keys []key
		want key
	}{
		{[]key{{3, 0}, {2, 0}}, key{3, 0}},
		{[]key{{9, 0}, {2, krb5.AES128}}, key{2, krb5.AES128}},
		{[]key{{9, krb5.AES128}, {2, krb5.AES256}, {4, krb5.AES256}, {3, krb5.AES256}}, key{4, krb5.AES256}},
	} {
		keys := new(rxkad.Keyring)
		for _, k := range test.keys {
			add(t, keys, k.version, k.enctype)
		}
		if keys.Len() != len(test.keys) {
			t.Errorf("%d keys, want %d", keys.Len(), len(test.keys))
		}
		ticket, err := keys.Forge(rxkad.Contents{Name: rxkad.Superuser}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if old := ticket.Version != rxkad.VersionEncryptedPart; old != (test.want.enctype == 0) {
			t.Errorf("%v: version %d", test.keys, ticket.Version)
		}
		says, version, err := keys.OpenTicket(ticket.Version, ticket.Data)
		if err != nil || version != test.want.version || says.Name != "afs" || says.Realm != "" || says.SessionKey != ticket.SessionKey || ticket.SessionKey == (rxkad.Key{}) {
			t.Errorf("%v: %+v with key %d, %v; want %v", test.keys, says, version, err, test.want)
		}
	}
}

func TestTicketsThatCantBeMade(t *testing.T) {
	keys := testKeys(t)
	if _, err := new(rxkad.Keyring).Forge(contents, nil); err == nil {
		t.Error("a ticket was made without a key")
	}
	for i, change := range []func(c *rxkad.Contents){
		func(c *rxkad.Contents) { c.Name = "" },
		func(c *rxkad.Contents) { c.Name = strings.Repeat("x", 64) },
		func(c *rxkad.Contents) { c.Instance = "a\x00b" },
		func(c *rxkad.Contents) { c.Realm = strings.Repeat("x", 64) },
		func(c *rxkad.Contents) { c.End = c.Start },
		func(c *rxkad.Contents) { c.End = c.Start.Add(-time.Hour) },
		func(c *rxkad.Contents) { c.Start = time.Unix(-1, 0) },
		func(c *rxkad.Contents) { c.Start = time.Unix(1<<32, 0) },
	} {
		says := contents
		change(&says)
		for _, key := range []struct {
			version uint32
			enctype krb5.Enctype
		}{{desVersion, 0}, {kerberosVersion, krb5.AES256}} {
			if _, err := keys.ForgeWith(key.version, key.enctype, says, nil); err == nil {
				t.Errorf("change %d, type %d: a ticket was made", i, key.enctype)
			}
		}
	}
	says := contents
	says.End = time.Time{}
	if _, err := keys.ForgeWith(kerberosVersion, krb5.AES256, says, nil); err == nil {
		t.Error("a Kerberos ticket with a start and no end was made, which no server takes")
	}
	_, err := keys.ForgeWith(77, 0, contents, nil)
	wantCode(t, err, rxkad.CodeUnknownKey)
	_, err = keys.ForgeWith(77, krb5.AES256, contents, nil)
	wantCode(t, err, rxkad.CodeUnknownKey)
}

func TestKeyVersionsThatResponsesUseForKerberos(t *testing.T) {
	keys := new(rxkad.Keyring)
	for _, version := range []uint32{213, 256, 1000} {
		if err := keys.AddDES(version, desKey); err == nil {
			t.Errorf("version %d was taken", version)
		}
	}
	for _, version := range []uint32{0, 212, 214, 255} {
		if err := keys.AddDES(version, desKey); err != nil {
			t.Error(err)
		}
	}
}

func TestKeysDoNotShowInLogs(t *testing.T) {
	for _, format := range []string{"%v", "%s", "%+v", "%#v"} {
		if s := fmt.Sprintf(format, contents); strings.Contains(s, "13579b") || strings.Contains(s, "0x13, 0x57") || strings.Contains(s, "19 87") {
			t.Errorf("%s shows %s", format, s)
		}
	}
}
