//go:build linux

package dropin

import (
	"io"
	"testing"

	"golang.org/x/sys/unix"
)

// Who waits for an event goes by O_NONBLOCK, which a program sets if it wants to.
func TestDescriptorOfACompletionChannelBlocks(t *testing.T) {
	e, err := Open(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, _, errno := e.ContextOpen(0, 1)
	if errno != 0 {
		t.Fatal(errno)
	}
	ch, fd, errno := e.ChannelCreate(ctx)
	if errno != 0 {
		t.Fatal(errno)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
	if errno := e.ChannelDestroy(ch); errno != 0 {
		t.Error(errno)
	}
}
