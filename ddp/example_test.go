package ddp_test

import (
	"errors"
	"fmt"
	"io"
	"log"

	"urnic/ddp"
	"urnic/ddp/ddptest"
)

// A mailbox is a ULP that has one untagged buffer and no tagged ones.
type mailbox struct {
	buf []byte
}

func (m *mailbox) Len() uint64 { return uint64(len(m.buf)) }

func (m *mailbox) Place(off uint32, p []byte) error {
	copy(m.buf[off:], p)
	return nil
}

func (m *mailbox) Arrived() {}

func (m *mailbox) Buffer(_ *ddp.UntaggedHeader, ahead uint32) (ddp.Buffer, error) {
	if ahead > 0 {
		return nil, nil
	}
	return m, nil
}

func (m *mailbox) Admit(*ddp.UntaggedHeader) error { return nil }

func (m *mailbox) PlaceTagged(h *ddp.TaggedHeader, _ []byte) error {
	return &ddp.Error{Code: ddp.CodeInvalidSTag, Clause: "RFC 5041 §7.1", Reason: h.STag.String()}
}

func (m *mailbox) DeliverTagged(*ddp.TaggedHeader, int) error { return nil }

func (m *mailbox) DeliverUntagged(h *ddp.UntaggedHeader, length uint32) error {
	fmt.Printf("message %d of queue %d: %q\n", h.MSN, h.QN, m.buf[:length])
	return nil
}

// A letter is the payload of a message.
type letter []byte

func (l letter) Gather(pieces [][]byte, off, n uint32) ([][]byte, error) {
	return append(pieces, l[off:off+n]), nil
}
func (letter) Release()     {}
func (letter) Stable() bool { return true }

// One message crosses a lower layer that hands segments over as it likes.
func Example() {
	low, peer := ddptest.Pair(ddptest.Options{MULPDU: 128, Reorder: 3, Seed: 1})
	from := ddp.NewStream(low, new(mailbox), 1)
	to := ddp.NewStream(peer, &mailbox{buf: make([]byte, 1000)}, 1)

	text := letter("DDP provides in-order delivery for the ULP. However, DDP differentiates between " +
		"data delivery and data placement: each segment says where it belongs.")
	msg := ddp.Message{Length: uint64(len(text)), Payload: text}
	for {
		done, err := from.Send(&msg)
		if err != nil {
			log.Fatal(err)
		}
		if done {
			break
		}
		if _, err := low.Flush(true); err != nil { // there was no room
			log.Fatal(err)
		}
	}
	if err := from.CloseWrite(); err != nil {
		log.Fatal(err)
	}

	for {
		err := to.Receive()
		if errors.Is(err, io.EOF) {
			fmt.Println("the peer has nothing more to send")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// message 1 of queue 0: "DDP provides in-order delivery for the ULP. However, DDP differentiates between data delivery and data placement: each segment says where it belongs."
	// the peer has nothing more to send
}
