package dropin

import (
	"testing"
	"unsafe"
)

// The sizes and places are those that a C compiler gives rdma-core's structs on a
// machine of 64 bits; the C half compares the same at compile time (abi.c).
func TestStructsHaveTheLayoutOfTheABI(t *testing.T) {
	for name, c := range map[string][2]uintptr{
		"ibv_sge":                         {unsafe.Sizeof(SGE{}), 16},
		"ibv_recv_wr":                     {unsafe.Sizeof(RecvWR{}), 32},
		"ibv_send_wr":                     {unsafe.Sizeof(SendWR{}), 128},
		"ibv_send_wr.send_flags":          {unsafe.Offsetof(SendWR{}.Flags), 32},
		"ibv_send_wr.wr":                  {unsafe.Offsetof(SendWR{}.WR), 40},
		"ibv_send_wr.wr.atomic.rkey":      {unsafe.Offsetof(SendWR{}.WR) + unsafe.Offsetof(AtomicWR{}.RKey), 64},
		"ibv_send_wr.bind_mw":             {unsafe.Offsetof(SendWR{}.Bind), 80},
		"ibv_send_wr.bind_mw.bind_info":   {unsafe.Offsetof(SendWR{}.Bind) + unsafe.Offsetof(BindWR{}.MR), 96},
		"ibv_send_wr.bind_mw...mw_access": {unsafe.Offsetof(SendWR{}.Bind) + unsafe.Offsetof(BindWR{}.Access), 120},
		"ibv_wc":                          {unsafe.Sizeof(WC{}), 48},
		"ibv_wc.dlid_path_bits":           {unsafe.Offsetof(WC{}.DLIDPathBits), 45},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %d; want %d", name, c[0], c[1])
		}
	}
}
