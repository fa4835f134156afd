package mpa

import (
	"context"
	"os"
	"testing"

	"urnic/internal/simnet"
)

// late is a stream whose time is up before anybody has read from it.
type late struct{ *simnet.Conn }

func (late) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestRequestThatIsThereWhenTheTimeIsUpCounts(t *testing.T) {
	request := frame(reqKey, 0x40, 1, 'h', 'e', 'y')
	for n := range len(request) + 1 {
		a, b := simnet.Pipe(simnet.Options{})
		if _, err := a.Write(request[:n]); err != nil {
			t.Fatal(err)
		}
		r, err := ReceiveRequest(context.Background(), late{b}, Config{})
		switch whole := n == len(request); {
		case whole != (err == nil):
			t.Errorf("%d octets of %d: %v", n, len(request), err)
		case whole && string(r.PrivateData()) != "hey":
			t.Errorf("private data %q", r.PrivateData())
		}
		_ = a.Close()
		_ = b.Close()
	}
}
