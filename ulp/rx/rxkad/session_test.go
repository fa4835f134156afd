package rxkad_test

import (
	"bytes"
	"fmt"
	"testing"

	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/secure"
)

var packet = secure.Packet{Call: 11, Channel: 2, Seq: 3}

func TestBodiesHaveTheRoomThatTheirLevelNeeds(t *testing.T) {
	for _, test := range []struct {
		level                     rxkad.Level
		overhead, multiple, least int
		empty                     int // length of a body without data
		opcode                    int // and of one with 4 bytes
	}{
		{rxkad.Clear, 0, 1, 0, 0, 4},
		{rxkad.Auth, 4, 1, 8, 8, 8},
		{rxkad.Crypt, 8, 8, 8, 8, 16},
	} {
		client, server := pair(t, test.level)
		for _, c := range []secure.Protection{client, server} {
			if c.Overhead() != test.overhead || c.Multiple() != test.multiple || c.Least() != test.least {
				t.Errorf("%s: overhead %d, multiple %d, least %d", test.level, c.Overhead(), c.Multiple(), c.Least())
			}
			empty, _ := seal(t, c, packet, nil)
			opcode, _ := seal(t, c, packet, make([]byte, 4))
			if len(empty) != test.empty || len(opcode) != test.opcode {
				t.Errorf("%s: bodies of %d and %d bytes, want %d and %d", test.level, len(empty), len(opcode), test.empty, test.opcode)
			}
		}
	}
}

// What is encrypted at each level, and what is not.
func TestLevelsHideWhatTheySay(t *testing.T) {
	data := []byte("0123456789abcdef0123456789abcdef")
	for level, shown := range map[rxkad.Level]string{
		rxkad.Clear: string(data),
		rxkad.Auth:  string(data[4:]),
		rxkad.Crypt: "",
	} {
		client, _ := pair(t, level)
		body, _ := seal(t, client, packet, data)
		if !bytes.HasSuffix(body, []byte(shown)) {
			t.Errorf("%s: %x does not end with %x", level, body, shown)
		}
		for i := range len(data) - 8 {
			if piece := data[i : i+8]; bytes.Contains(body, piece) && !bytes.Contains([]byte(shown), piece) {
				t.Errorf("%s: %q can be read", level, piece)
			}
		}
	}
}

// The checksum is what keeps packets of another place out, at every level.
func TestAPacketOfAnotherPlaceIsRefused(t *testing.T) {
	for _, level := range levels {
		client, server := pair(t, level)
		body, checksum := seal(t, client, packet, []byte("transfer"))
		for name, at := range map[string]secure.Packet{
			"call":    {Call: packet.Call + 1, Channel: packet.Channel, Seq: packet.Seq},
			"channel": {Call: packet.Call, Channel: packet.Channel ^ 1, Seq: packet.Seq},
			"seq":     {Call: packet.Call, Channel: packet.Channel, Seq: packet.Seq + 1},
		} {
			_, err := server.Open(at, checksum, bytes.Clone(body))
			t.Run(fmt.Sprint(level, " ", name), func(t *testing.T) { wantCode(t, err, rxkad.CodeSealed) })
		}
		other := conn
		other.ID += 4
		s, err := rxkad.NewSession(sessionKey, other, level)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Open(packet, checksum, bytes.Clone(body))
		t.Run(fmt.Sprint(level, " connection"), func(t *testing.T) { wantCode(t, err, rxkad.CodeSealed) })
	}
}

func TestAnyOtherChecksumIsRefused(t *testing.T) {
	for _, level := range levels {
		client, server := pair(t, level)
		body, right := seal(t, client, packet, []byte("data"))
		for checksum := range 1 << 16 {
			_, err := server.Open(packet, uint16(checksum), bytes.Clone(body))
			if (err == nil) != (uint16(checksum) == right) {
				t.Fatalf("%s: checksum %04x: %v; the right one is %04x", level, checksum, err, right)
			}
		}
	}
}

// 0 means that there is no checksum, so the packets whose checksum would be 0 have 1.
func TestNoChecksumIsZero(t *testing.T) {
	s, err := rxkad.NewSession(sessionKey, conn, rxkad.Clear)
	if err != nil {
		t.Fatal(err)
	}
	ones := 0
	for seq := range uint32(1 << 19) {
		sum, err := s.Seal(secure.Packet{Call: 1, Seq: seq}, nil, 0)
		if err != nil || sum == 0 {
			t.Fatalf("packet %d: checksum %d, %v", seq, sum, err)
		}
		if sum == 1 {
			ones++
		}
	}
	if ones < 10 || ones > 30 { // 8 of 1 in 65,536 and as many of 0
		t.Errorf("%d of 2¹⁹ checksums are 1, want some 16", ones)
	}
}

// Level clear protects no data. Level auth protects the first 8 bytes, which hold the
// length; what a change to the others makes of them is the RPC layer's affair.
func TestChangedBodiesAreRefusedWhereTheLevelProtectsThem(t *testing.T) {
	data := bytes.Repeat([]byte("abcdefgh"), 8)
	for _, level := range []rxkad.Level{rxkad.Auth, rxkad.Crypt} {
		client, server := pair(t, level)
		sealed, checksum := seal(t, client, packet, data)
		refused := 0
		for bit := range 64 {
			body := bytes.Clone(sealed)
			body[bit/8] ^= 1 << (bit % 8)
			got, err := server.Open(packet, checksum, body)
			if err != nil {
				refused++
			} else if bytes.Equal(got, data) {
				t.Errorf("%s: bit %d of the header makes no difference", level, bit)
			}
		}
		// A wrong block has a right header once in 65,536 times.
		if refused < 63 {
			t.Errorf("%s: %d of 64 changes were refused", level, refused)
		}
	}
	// At level crypt, PCBC carries a change of any block on to the last one. The data is
	// garbage from there on.
	client, server := pair(t, rxkad.Crypt)
	sealed, checksum := seal(t, client, packet, data)
	for i := 8; i < len(sealed); i += 8 {
		body := bytes.Clone(sealed)
		body[i]++
		got, err := server.Open(packet, checksum, body)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got[:i-8], data[:i-8]) || bytes.Equal(got[len(got)-8:], data[len(data)-8:]) {
			t.Errorf("a change at %d gave %q", i, got)
		}
	}
}

func TestBodiesOfBadLengthAreRefused(t *testing.T) {
	for _, test := range []struct {
		level rxkad.Level
		n     int
		want  rxkad.Code
	}{
		{rxkad.Auth, 0, rxkad.CodePacketShort},
		{rxkad.Auth, 7, rxkad.CodePacketShort},
		{rxkad.Crypt, 0, rxkad.CodePacketShort},
		{rxkad.Crypt, 7, rxkad.CodePacketShort},
		{rxkad.Crypt, 12, rxkad.CodeDataLength},
		{rxkad.Crypt, 17, rxkad.CodeDataLength},
	} {
		client, server := pair(t, test.level)
		_, checksum := seal(t, client, packet, nil)
		_, err := server.Open(packet, checksum, make([]byte, test.n))
		t.Run(fmt.Sprint(test.level, " ", test.n), func(t *testing.T) { wantCode(t, err, test.want) })
	}
}

// The sealed header may claim more data than the body has: the body was cut.
func TestACutBodyIsRefused(t *testing.T) {
	for _, level := range []rxkad.Level{rxkad.Auth, rxkad.Crypt} {
		client, server := pair(t, level)
		body, checksum := seal(t, client, packet, make([]byte, 100))
		_, err := server.Open(packet, checksum, body[:64])
		t.Run(level.String(), func(t *testing.T) { wantCode(t, err, rxkad.CodeDataLength) })
	}
}

func TestWhatIsBehindTheDataIsNotData(t *testing.T) {
	for _, level := range []rxkad.Level{rxkad.Auth, rxkad.Crypt} {
		client, server := pair(t, level)
		body := make([]byte, 64)
		copy(body[client.Overhead():], "data, and secrets of another call")
		checksum, err := client.Seal(packet, body, 4)
		if err != nil {
			t.Fatal(err)
		}
		got, err := server.Open(packet, checksum, body)
		if err != nil || string(got) != "data" {
			t.Errorf("%s: %q, %v", level, got, err)
		}
		if bytes.Contains(body, []byte("secrets")) {
			t.Errorf("%s: the padding is %q", level, body)
		}
	}
}

func TestBuffersThatDoNotFitAreRefused(t *testing.T) {
	for _, test := range []struct {
		level      rxkad.Level
		body, data int
	}{
		{rxkad.Clear, 4, 5},
		{rxkad.Clear, 4, -1},
		{rxkad.Auth, 7, 3},
		{rxkad.Auth, 100, 97},
		{rxkad.Auth, 1 << 17, 1 << 16},
		{rxkad.Crypt, 0, 0},
		{rxkad.Crypt, 20, 4},
		{rxkad.Crypt, 16, 9},
		{rxkad.Crypt, 1 << 17, 1 << 16},
	} {
		client, _ := pair(t, test.level)
		_, err := client.Seal(packet, make([]byte, test.body), test.data)
		t.Run(fmt.Sprint(test), func(t *testing.T) { wantCode(t, err, rxkad.CodeDataLength) })
	}
}

func TestSealingAndOpeningAllocateNothing(t *testing.T) {
	for _, level := range levels {
		client, server := pair(t, level)
		body := make([]byte, 1408)
		n := testing.AllocsPerRun(100, func() {
			checksum, err := client.Seal(packet, body, 1400)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := server.Open(packet, checksum, body); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", level, n)
		}
	}
}

func TestNamesOfLevels(t *testing.T) {
	for _, l := range levels {
		if got, err := rxkad.ParseLevel(l.String()); err != nil || got != l {
			t.Errorf("%s: %v, %v", l, got, err)
		}
	}
	if l, err := rxkad.ParseLevel("encrypt"); err == nil {
		t.Errorf("there is a level encrypt: %v", l)
	}
	if got := rxkad.Level(3).String(); got != "level 3" {
		t.Errorf("%q", got)
	}
}
