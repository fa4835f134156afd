package wire

import "testing"

// What every packet goes through allocates nothing.
func TestTheHotPathDoesNotAllocate(t *testing.T) {
	jumbo := Header{Type: TypeData, Flags: FlagJumbo}
	body := make([]byte, 2*(JumboBody+JumboHeaderLen))
	body[JumboBody] = byte(FlagJumbo)
	ack := Ack{First: 3, Count: 32, Acks: make([]byte, 32), Trailer: Trailer{Words: 4, Window: 32}}
	acked := ack.Append(nil)
	room := make([]byte, 0, DefaultPacket)
	for name, f := range map[string]func(){
		"Header.Put, ParseHeader": func() {
			b := room[:HeaderLen]
			jumbo.Put(b)
			if h, err := ParseHeader(b); err != nil || h.Channel() != 0 || h.ConnID() != 0 {
				t.Error(err)
			}
		},
		"Header.Append": func() { jumbo.Append(room) },
		"ParseAck": func() {
			a, err := ParseAck(acked)
			if err != nil || !Held(1) || a.Trailer.Window != 32 {
				t.Error(err)
			}
		},
		"Ack.Append": func() {
			if len(ack.Append(room)) != ack.Len() {
				t.Error("wrong length")
			}
		},
		"SplitData": func() {
			p := SplitData(jumbo, body)
			n := 0
			for {
				if _, _, ok := p.Next(); !ok {
					break
				}
				n++
			}
			if n != 3 || p.Err() != nil {
				t.Errorf("%d packets, %v", n, p.Err())
			}
		},
		"AppendJumboHeader": func() { AppendJumboHeader(room, 0, 0) },
		"AppendAbort":       func() { ParseAbort(AppendAbort(room, -1)) },
		"AppendVersion":     func() { ParseVersion(AppendVersion(room, "version")) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkHeader(b *testing.B) {
	h := Header{Epoch: 1, Type: TypeData}
	p := make([]byte, HeaderLen)
	b.ReportAllocs()
	for b.Loop() {
		h.Put(p)
		h, _ = ParseHeader(p)
	}
}

func BenchmarkAck(b *testing.B) {
	a := Ack{Count: 32, Acks: make([]byte, 32), Trailer: Trailer{Words: 4}}
	p := make([]byte, 0, DefaultPacket)
	b.ReportAllocs()
	for b.Loop() {
		p = a.Append(p[:0])
		a, _ = ParseAck(p)
	}
}
