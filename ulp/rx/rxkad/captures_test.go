package rxkad_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urnic/internal/capture"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxkad/krb5"
	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// captures holds traffic of OpenAFS and Linux, made with the first two keys of testKeys.
const captures = "../rxflow/testdata/captures"

// A recordedPacket is one of rxkad's.
type recordedPacket struct {
	wire.Header
	body []byte
}

func (p *recordedPacket) conn() secure.Conn {
	return secure.Conn{Epoch: p.Epoch, ID: p.ConnID(), Index: p.Security, Checksum: true}
}

func (p *recordedPacket) packet() secure.Packet {
	return secure.Packet{Call: p.Call, Channel: p.Channel(), Seq: p.Seq}
}

// recordedPackets returns the packets of rxkad in a capture.
func recordedPackets(tb testing.TB, file string) (all []recordedPacket) {
	tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	r, err := capture.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	err = capture.ReadDatagrams(tb.Context(), r, func(_ capture.At, d *capture.Datagram) error {
		h, err := wire.ParseHeader(d.Data)
		if err != nil || h.Security != rxkad.Index {
			return nil // some datagrams were made to be too short
		}
		packets := wire.SplitData(h, d.Data[wire.HeaderLen:])
		for {
			h, body, ok := packets.Next()
			if !ok {
				return packets.Err()
			}
			all = append(all, recordedPacket{h, slices.Clone(body)})
		}
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// eachCapture runs a test for each capture.
func eachCapture(t *testing.T, test func(t *testing.T, packets []recordedPacket)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(captures, "*.pcap.gz"))
	if err != nil || len(files) == 0 {
		t.Fatal("no captures: ", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".pcap.gz"), func(t *testing.T) {
			test(t, recordedPackets(t, file))
		})
	}
}

// random reports whether the response in a capture is made of random bytes.
func random(t *testing.T) bool { return strings.HasSuffix(t.Name(), "/probe-challenge") }

func TestRecordedPacketsOpenAndSealToTheSameBytes(t *testing.T) {
	keys := testKeys(t)
	count := make(map[rxkad.Level]int)
	eachCapture(t, func(t *testing.T, packets []recordedPacket) {
		// A client sends data before it is challenged.
		exchanges := make(map[secure.Conn]*rxkad.Exchange)
		for _, p := range packets {
			if p.Type != wire.TypeResponse || random(t) {
				continue
			}
			x, err := rxkad.OpenResponse(keys, p.conn(), p.body)
			if err != nil {
				t.Fatal(err)
			}
			exchanges[p.conn()] = x
		}
		for _, p := range packets {
			if p.Type != wire.TypeData {
				continue
			}
			x := exchanges[p.conn()]
			if x == nil {
				if !random(t) {
					t.Errorf("%s: no response", &p.Header)
				}
				continue
			}
			count[x.Level()]++
			body := slices.Clone(p.body)
			data, err := x.Open(p.packet(), p.Checksum, body)
			if err != nil {
				t.Errorf("%s: %v", &p.Header, err)
				continue
			}
			// OpenAFS pads with whatever lies there.
			if sum := x.SealAsItIs(p.packet(), body, len(data)); sum != p.Checksum || !bytes.Equal(body, p.body) {
				t.Errorf("%s: sealed %04x %x, recorded %04x %x", &p.Header, sum, body, p.Checksum, p.body)
			}
		}
	})
	want := map[rxkad.Level]int{rxkad.Clear: 2241, rxkad.Auth: 63, rxkad.Crypt: 173}
	if !maps.Equal(count, want) {
		t.Errorf("data packets %v, want %v", count, want)
	}
}

func TestRecordedHandshakesAreMadeAgainByteForByte(t *testing.T) {
	keys := testKeys(t)
	var challenges, responses int
	eachCapture(t, func(t *testing.T, packets []recordedPacket) {
		for _, p := range packets {
			switch p.Type {
			case wire.TypeChallenge:
				challenges++
				c, err := rxkad.ParseChallenge(p.body)
				if err != nil {
					t.Error(err)
				} else if got := c.Append(nil); !bytes.Equal(got, p.body) {
					t.Errorf("challenge %x, made again %x", p.body, got)
				}
			case wire.TypeResponse:
				responses++
				x, err := rxkad.OpenResponse(keys, p.conn(), p.body)
				if err != nil {
					if !random(t) {
						t.Error(err)
					}
					continue
				}
				client := newClient(t, rxkad.ClientConfig{Ticket: x.Ticket, Level: x.Level()}, p.conn())
				challenge := rxkad.Challenge{Version: x.Version, Nonce: x.Nonce - 1}
				got, err := client.Respond(challenge.Append(nil), x.Calls)
				if err != nil || !bytes.Equal(got, p.body) {
					t.Errorf("response %x, made again %x, %v", p.body, got, err)
				}
				checkRecordedTicket(t, keys, x)
			}
		}
	})
	if challenges != 101 || responses != 91 {
		t.Errorf("%d challenges and %d responses, want 101 and 91", challenges, responses)
	}
}

// checkRecordedTicket makes a ticket again from what it says.
func checkRecordedTicket(t *testing.T, keys *rxkad.Keyring, x *rxkad.Exchange) {
	t.Helper()
	if x.Ticket.Version != rxkad.VersionEncryptedPart {
		if again := forge(t, keys, x.KeyVersion, 0, x.Contents); !bytes.Equal(again.Data, x.Ticket.Data) {
			t.Errorf("ticket %x, made again %x", x.Ticket.Data, again.Data)
		}
		return
	}
	again := forge(t, keys, x.KeyVersion, krb5.AES256, x.Contents)
	if got, want := encryptedPart(t, again.Data), encryptedPart(t, x.Ticket.Data); !bytes.Equal(got, want) {
		t.Errorf("ticket %x, made again %x", want, got)
	}
	if len(again.Data) != len(x.Ticket.Data) {
		t.Errorf("a ticket of %d bytes, made again %d", len(x.Ticket.Data), len(again.Data))
	}
}

func encryptedPart(t *testing.T, ticket []byte) []byte {
	t.Helper()
	data, err := krb5.ParseEncryptedData(ticket)
	if err != nil {
		t.Fatal(err)
	}
	if again := data.Marshal(); !bytes.Equal(again, ticket) {
		t.Errorf("EncryptedData %x, made again %x", ticket, again)
	}
	key, err := krb5.NewKey(krb5.AES256, unhex(t, "00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0"))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := key.Decrypt(krb5.UsageTicket, data.Cipher)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}
