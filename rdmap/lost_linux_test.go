package rdmap

import (
	"testing"

	"golang.org/x/sys/unix"

	"urnic/internal/host/memfault"
	"urnic/stag"
)

// lost returns a region whose memory can't be touched any more.
func lost(t *testing.T, s *side, access stag.Access) region {
	t.Helper()
	memfault.Guard()
	mem, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	return s.register(stag.Memory{Mem: mem, Base: base, Access: access})
}

// The peer is told that a region was lost, whatever it wanted of it.
func TestLostMemoryTerminates(t *testing.T) {
	const all = stag.LocalWrite | stag.RemoteRead | stag.RemoteWrite | stag.RemoteAtomic
	s, p := withPeer(t, Config{})
	p.send(tagged(OpWrite, lost(t, s, all).tag, base, []byte("x")))
	p.wantTerminate(0x1101)

	s, p = withPeer(t, Config{IRD: 1})
	p.send(atomicRequest(AtomicRequest{STag: lost(t, s, all).tag, TO: base, AddSwap: 1}))
	p.wantTerminate(CodeProtectionUnspecified)
}
