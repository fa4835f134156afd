package rxflow

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"urnic/internal/program/dissect"
	"urnic/internal/test/tshark"
	"urnic/ulp/rx/wire"
)

// Headers, acknowledgements and aborts read the same by another decoder. It shows nothing of
// the further packets of a jumbogram.
func TestTsharkReadsTheSame(t *testing.T) {
	args := []string{"-d", "udp.port==7001,rx", "-d", "udp.port==7077,rx", "-Y", "rx", "-T", "fields", "-E", "occurrence=f", "-E", "separator=,"}
	for _, f := range []string{
		"cid", "callnumber", "seq", "serial", "type", "flags", "userstatus", "securityindex", "serviceid",
		"reason", "first", "prev", "num_acks", "max_mtu", "if_mtu", "rwind", "max_packets", "abort_code",
	} {
		args = append(args, "-e", "rx."+f)
	}
	for _, name := range []string{"kafs-mount-read", "loss5-vos-dump-300k", "probe-calls", "pts-createuser-auth", "rxr-aborts", "vos-release-forward"} {
		want := tshark.Lines(t, filepath.Join("testdata", "captures", name+".pcap.gz"), args...)
		var got []string
		analyze(t, golden(t, name), func(e *dissect.Event) error {
			p, ok := e.Upper.(*Packet)
			if !ok || p.Place > 1 {
				return nil
			}
			h, ack, code := &p.Header, ",,,,,,,", ""
			if a := p.Ack; a != nil {
				x := &a.Trailer
				ack = fmt.Sprintf("%d,%d,%d,%d,%d,%d,%d,%d", a.Reason, a.First, a.Previous, a.Count, x.MaxMTU, x.IfMTU, x.Window, x.MaxPackets)
			}
			if h.Type == wire.TypeAbort {
				code = fmt.Sprint(int32(*p.Code))
			}
			got = append(got, fmt.Sprintf("%d,%d,%d,%d,%d,0x%02x,%d,%d,%d,%s,%s", h.CID, h.Call, h.Seq, h.Serial, uint8(h.Type), uint8(h.Flags),
				h.UserStatus, h.Security, h.Service, ack, code))
			return nil
		})
		if slices.Equal(got, want) && len(got) > 0 {
			continue
		}
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Errorf("%s: %d packets, tshark has %d; packet %d:\n%q\n%q", name, len(got), len(want), i+1, at(got, i), at(want, i))
				break
			}
		}
	}
}

func at(all []string, i int) string {
	if i < len(all) {
		return all[i]
	}
	return ""
}
