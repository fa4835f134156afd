package server

import (
	"bytes"
	"encoding/binary"
	"testing"

	"urnic/conformance/service"
)

func TestSendArrivesInABufferOfTheService(t *testing.T) {
	a, b := pair(t, service.ListenArgs{Recvs: service.Recvs(100, 5)}, service.ConnectArgs{})
	big := service.Pattern(3, 70)
	a.posts(t, service.Post{Op: service.OpSend, Data: big})
	if c := b.completes(t, service.RecvQueue, service.OpRecv); !bytes.Equal(c.Data, big) || c.Length != 70 || c.Solicited {
		t.Errorf("received %+v", c)
	}
	a.posts(t, service.Post{Op: service.OpSendSE, Data: []byte("hello")})
	if c := b.completes(t, service.RecvQueue, service.OpRecv); string(c.Data) != "hello" || !c.Solicited {
		t.Errorf("received %+v", c)
	}
}

func TestLargeSendComesOutOfMemoryOfTheService(t *testing.T) {
	a, b := pair(t, service.ListenArgs{Recvs: service.Recvs(maxData)}, service.ConnectArgs{})
	data := service.Pattern(9, maxData)
	a.posts(t, service.Post{Op: service.OpSend, Data: data})
	if c := b.completes(t, service.RecvQueue, service.OpRecv); !bytes.Equal(c.Data, data) {
		t.Errorf("%d octets came, or others than were sent", len(c.Data))
	}
}

func TestReceiveIntoRegionsScatters(t *testing.T) {
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{})
	r := must(b.Register(t.Context(), service.RegisterArgs{Length: 16, Access: []string{service.LocalWrite}, Fill: 0xEE}))(t)
	ids := must(b.Recv(t.Context(), b.qp, service.Recv{SGL: []service.Piece{r.Piece(8, 4), r.Piece(0, 3)}}))(t)
	a.posts(t, service.Post{Op: service.OpSend, Data: []byte("abcdef")})
	if c := b.completes(t, service.RecvQueue, service.OpRecv); c.ID != ids[0] || c.Length != 6 || c.Data != nil {
		t.Errorf("received %+v as %v", c, ids)
	}
	b.holds(t, r, 0, []byte("ef\xee\xee\xee\xee\xee\xeeabcd\xee\xee\xee\xee"))
}

func TestWriteAndReadMoveMemory(t *testing.T) {
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{})
	theirs := must(b.Register(t.Context(), service.RegisterArgs{
		Length: 5000, Access: []string{service.LocalWrite, service.RemoteWrite, service.RemoteRead}, Fill: 1, ZeroBased: true,
	}))(t)
	ours := must(a.Register(t.Context(), service.RegisterArgs{Length: 5000, Access: []string{service.LocalWrite}, Pattern: new(uint8(7))}))(t)
	a.posts(t, service.Post{Op: service.OpWrite, SGL: []service.Piece{ours.Piece(10, 4000)}, Remote: theirs.Remote(100)})
	check(t, a.MemoryWrite(t.Context(), ours.MR, 0, make([]byte, 5000)))
	a.posts(t, service.Post{Op: service.OpRead, SGL: []service.Piece{ours.Piece(500, 4002)}, Remote: theirs.Remote(99)}) // behind the Write
	b.holds(t, theirs, 99, append(append([]byte{1}, service.Pattern(7, 5000)[10:4010]...), 1))
	a.holds(t, ours, 499, append(append([]byte{0, 1}, service.Pattern(7, 5000)[10:4010]...), 1, 0))
	if tag := must(b.Tag(t.Context(), service.TagArgs{MR: theirs.MR}))(t); tag.OctetsIn != 4000 || tag.OctetsOut != 4002 || !tag.Valid {
		t.Errorf("tag %+v", tag)
	}
}

func TestAtomicsSwapAndAdd(t *testing.T) {
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{})
	r := must(b.Register(t.Context(), service.RegisterArgs{Length: 16, Access: []string{service.LocalWrite, service.RemoteAtomic}}))(t)
	number := func(v uint64) []byte {
		if b.Hello().Features.ByteOrder == "little" {
			return binary.LittleEndian.AppendUint64(nil, v)
		}
		return binary.BigEndian.AppendUint64(nil, v)
	}
	const large = 0xFFFF_FFFF_FFFF_FFF0 // no floating point number
	check(t, b.MemoryWrite(t.Context(), r.MR, 8, number(large)))
	if c := a.posts(t, service.Post{Op: service.OpFetchAdd, Remote: r.Remote(8), Add: 3}); *c.Original != large {
		t.Errorf("FetchAdd returned %v", c.Original)
	}
	if c := a.posts(t, service.Post{Op: service.OpCmpSwap, Remote: r.Remote(8), Compare: large + 3, Swap: large + 1}); *c.Original != large+3 {
		t.Errorf("CmpSwap returned %v", c.Original)
	}
	b.holds(t, r, 8, number(large+1))
	// A mask of no bits compares nothing, and one that swaps the low byte.
	ours := must(a.Register(t.Context(), service.RegisterArgs{Length: 8, Access: []string{service.LocalWrite}}))(t)
	a.posts(t, service.Post{
		Op: service.OpCmpSwap, Remote: r.Remote(8), Swap: 0x1122, SwapMask: new(service.Uint64(0xFF)), CompareMask: new(service.Uint64(0)),
		SGL: []service.Piece{ours.Piece(0, 8)},
	})
	b.holds(t, r, 8, number(0xFFFF_FFFF_FFFF_FF22))
	a.holds(t, ours, 0, number(large+1))
}

func TestImmediateDataComeInNetworkOrder(t *testing.T) {
	a, b := pair(t, service.ListenArgs{Recvs: service.Recvs(0, 8, 0)}, service.ConnectArgs{})
	r := must(b.Register(t.Context(), service.RegisterArgs{Length: 4, Access: []string{service.LocalWrite, service.RemoteWrite}}))(t)
	for _, p := range []service.Post{
		{Op: service.OpImmediate, Immediate: 0x8102030405060708},
		{Op: service.OpImmediateSE, Immediate: 1},
		{Op: service.OpWriteImmediate, Immediate: 2, Data: []byte("data"), Remote: r.Remote(0)},
	} {
		a.posts(t, p)
		c := b.completes(t, service.RecvQueue, service.OpRecvImmediate)
		if *c.Immediate != p.Immediate || c.Solicited != (p.Op == service.OpImmediateSE) {
			t.Errorf("%+v came as %+v", p, c)
		}
	}
	b.holds(t, r, 0, []byte("data"))
}

func TestSendWithInvalidateClosesTheSTag(t *testing.T) {
	a, b := pair(t, service.ListenArgs{Recvs: service.Recvs(8, 8)}, service.ConnectArgs{})
	for _, op := range []string{service.OpSendInvalidate, service.OpSendSEInvalidate} {
		r := must(b.Register(t.Context(), service.RegisterArgs{
			Length: 8, Access: []string{service.LocalWrite, service.RemoteWrite, service.RemoteInvalidate}, QP: b.qp,
		}))(t)
		a.posts(t, service.Post{Op: op, Invalidate: r.STag})
		if c := b.completes(t, service.RecvQueue, service.OpRecv); c.Invalidated != r.STag || c.Solicited != (op == service.OpSendSEInvalidate) {
			t.Errorf("%s: %+v; want %v", op, c, r.STag)
		}
		if tag := must(b.Tag(t.Context(), service.TagArgs{MR: r.MR}))(t); tag.Valid {
			t.Errorf("%s: the STag is valid still", op)
		}
	}
}

func TestFastRegisterAndInvalidateChangeTheKey(t *testing.T) {
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{})
	r := must(b.Register(t.Context(), service.RegisterArgs{Length: 64, Fast: true}))(t)
	for key := range uint8(2) {
		key += uint8(r.STag) + 1
		fast := must(b.FastRegister(t.Context(), service.FastRegisterArgs{
			QP: b.qp, MR: r.MR, Length: 32, Key: key, Access: []string{service.LocalWrite, service.RemoteWrite}, Base: 0x7FFF_0000_0000_1000, Timeout: int(patience.Milliseconds()),
		}))(t)
		if uint8(fast.STag) != key || fast.TO != 0x7FFF_0000_0000_1000 || fast.Length != 32 {
			t.Fatalf("fast registration made %+v", fast)
		}
		a.posts(t, service.Post{Op: service.OpWrite, Data: []byte{key}, Remote: fast.Remote(31)})
		a.posts(t, service.Post{Op: service.OpRead, Remote: fast.Remote(0)}) // of nothing: the Write is there when it is
		b.holds(t, r, 31, []byte{key})
		check(t, b.Invalidate(t.Context(), service.InvalidateArgs{QP: b.qp, STag: fast.STag, Timeout: int(patience.Milliseconds())}))
	}
	refused(t, b.Invalidate(t.Context(), service.InvalidateArgs{QP: b.qp, STag: 0x100, Timeout: int(patience.Milliseconds())}), service.CodeRefused)
}

func TestWindowsOpenAPartOfARegion(t *testing.T) {
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{})
	r := must(b.Register(t.Context(), service.RegisterArgs{Length: 64, Access: []string{service.LocalWrite, service.BindWindow}}))(t)
	for typ := 1; typ <= 2; typ++ {
		w := must(b.Window(t.Context(), service.WindowArgs{Type: typ}))(t)
		key := uint8(w.STag) + 1
		bound := must(b.Bind(t.Context(), service.BindArgs{
			QP: b.qp, MW: w.MW, MR: r.MR, Offset: 16, Length: 8, Access: []string{service.RemoteWrite}, Key: key, Timeout: int(patience.Milliseconds()),
		}))(t)
		if typ == 2 && uint8(bound.STag) != key || bound.TO != r.TO+16 {
			t.Errorf("type %d is bound as %+v", typ, bound)
		}
		a.posts(t, service.Post{Op: service.OpWrite, Data: []byte{0xA0 + byte(typ)}, Remote: bound.Remote(7)})
		a.posts(t, service.Post{Op: service.OpRead, Remote: bound.Remote(0)})
		b.holds(t, r, 22, []byte{0, 0xA0 + byte(typ), 0})
		if tag := must(b.Tag(t.Context(), service.TagArgs{MW: w.MW}))(t); !tag.Valid || tag.STag != bound.STag {
			t.Errorf("tag %+v", tag)
		}
		refused(t, b.Deregister(t.Context(), r.MR), service.CodeState)
		check(t, b.CloseWindow(t.Context(), w.MW))
	}
	check(t, b.Deregister(t.Context(), r.MR))
}

func TestCompletionsBeforeTheOneThatIsWaitedForAreKept(t *testing.T) {
	a, b := pair(t, service.ListenArgs{Recvs: service.Recvs(1, 1)}, service.ConnectArgs{})
	ids := must(a.Post(t.Context(), a.qp, service.Post{Op: service.OpSend, Data: []byte{1}}, service.Post{Op: service.OpSend, Data: []byte{2}}))(t)
	w := must(a.Window(t.Context(), service.WindowArgs{Type: 1}))(t)
	r := must(a.Register(t.Context(), service.RegisterArgs{Length: 1, Access: []string{service.BindWindow}}))(t)
	must(a.Bind(t.Context(), service.BindArgs{QP: a.qp, MW: w.MW, MR: r.MR, Length: 1, Access: []string{service.RemoteRead}, Timeout: int(patience.Milliseconds())}))(t)
	for _, id := range ids {
		if c := a.completes(t, service.SendQueue, service.OpSend); c.ID != id {
			t.Errorf("completion of %d; want %d", c.ID, id)
		}
		b.completes(t, service.RecvQueue, service.OpRecv)
	}
	_, err := a.Completion(t.Context(), a.qp, service.SendQueue, 0)
	refused(t, err, service.CodeTimeout)
}

func TestUnsignaledRequestsCompleteOnlyWithTheNext(t *testing.T) {
	a, b := pair(t, service.ListenArgs{Recvs: service.Recvs(2000, 2000, 2000)}, service.ConnectArgs{})
	p := service.Post{Op: service.OpSend, Data: make([]byte, 2000), Unsignaled: true}
	last := p
	last.Unsignaled = false
	ids := must(a.Post(t.Context(), a.qp, p, p, last))(t)
	if c := a.completes(t, service.SendQueue, service.OpSend); c.ID != ids[2] {
		t.Errorf("completion of %d; want %d", c.ID, ids[2])
	}
	for range 3 {
		b.completes(t, service.RecvQueue, service.OpRecv)
	}
}

func TestSharedReceiveQueueServesTwoStreams(t *testing.T) {
	address := serving(t, Options{})
	a1, a2, b := end{Client: dial(t, address)}, end{Client: dial(t, address)}, end{Client: dial(t, address)}
	srq := must(b.CreateSRQ(t.Context(), service.SRQArgs{Depth: 8, Limit: 1, Recvs: service.Recvs(4)}))(t)
	must(b.RecvShared(t.Context(), srq.SRQ, service.Recvs(4)...))(t)
	b1, b2 := b, b
	l := service.ListenArgs{QP: service.QPAttr{SRQ: srq.SRQ}}
	joined(t, &a1, &b1, l, service.ConnectArgs{})
	joined(t, &a2, &b2, l, service.ConnectArgs{})
	a1.posts(t, service.Post{Op: service.OpSend, Data: []byte{1}})
	if c := b1.completes(t, service.RecvQueue, service.OpRecv); c.ID != srq.IDs[0] || c.Data[0] != 1 {
		t.Errorf("received %+v", c)
	}
	a2.posts(t, service.Post{Op: service.OpSend, Data: []byte{2}})
	if c := b2.completes(t, service.RecvQueue, service.OpRecv); c.Data[0] != 2 {
		t.Errorf("received %+v", c)
	}
	if e := must(b.Event(t.Context(), patience))(t); e.Type != service.EventSRQLimit || e.SRQ != srq.SRQ {
		t.Errorf("event %+v", e)
	}
	refused(t, b.CloseSRQ(t.Context(), srq.SRQ), service.CodeState)
	check(t, b.CloseQP(t.Context(), b1.qp))
	check(t, b.CloseQP(t.Context(), b2.qp))
	check(t, b.CloseSRQ(t.Context(), srq.SRQ))
}

func TestArmedQueueFiresForSolicitedOnly(t *testing.T) {
	a, b := pair(t, service.ListenArgs{Recvs: service.Recvs(1, 1)}, service.ConnectArgs{})
	check(t, b.Arm(t.Context(), service.ArmArgs{QP: b.qp, Queue: service.RecvQueue, Solicited: true}))
	a.posts(t, service.Post{Op: service.OpSend})
	b.completes(t, service.RecvQueue, service.OpRecv)
	refused(t, b.Fired(t.Context(), b.qp, service.RecvQueue, 0), service.CodeTimeout)
	a.posts(t, service.Post{Op: service.OpSendSE})
	check(t, b.Fired(t.Context(), b.qp, service.RecvQueue, patience))
}

func TestReadInvalidatesItsSink(t *testing.T) {
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{})
	theirs := must(b.Register(t.Context(), service.RegisterArgs{Length: 4, Access: []string{service.RemoteRead}, Fill: 5}))(t)
	sink := must(a.Register(t.Context(), service.RegisterArgs{Length: 4, Access: []string{service.LocalWrite}, QP: a.qp}))(t)
	a.posts(t, service.Post{Op: service.OpReadInvalidate, SGL: []service.Piece{sink.Piece(0, 4)}, Remote: theirs.Remote(0)})
	a.holds(t, sink, 0, []byte{5, 5, 5, 5})
	if must(a.Tag(t.Context(), service.TagArgs{MR: sink.MR}))(t).Valid {
		t.Error("the sink's STag is valid still")
	}
}

func TestRefusedRequestSaysWhichWerePosted(t *testing.T) {
	a, b := pair(t, service.ListenArgs{Recvs: service.Recvs(1)}, service.ConnectArgs{QP: service.QPAttr{RecvDepth: 2}})
	r := must(a.Register(t.Context(), service.RegisterArgs{Length: 4}))(t)
	_, err := a.Post(t.Context(), a.qp, service.Post{Op: service.OpSend, Data: []byte{1}}, service.Post{Op: service.OpSend, SGL: []service.Piece{r.Piece(1, 4)}}, service.Post{Op: service.OpSend})
	if e := refused(t, err, service.CodeRefused); len(e.IDs) != 1 {
		t.Errorf("posted: %v", e.IDs)
	}
	b.completes(t, service.RecvQueue, service.OpRecv)
	for _, p := range []service.Post{
		{Op: service.OpRead, Data: []byte{1}},
		{Op: service.OpSend, Data: make([]byte, 2000), SGL: []service.Piece{r.Piece(0, 1)}},
		{Op: service.OpBind},
		{Op: service.OpSend, SGL: []service.Piece{{MR: r.MR, Offset: 1<<64 - 1, Length: 2}}},
		{Op: service.OpSend, SGL: []service.Piece{{MR: 99}}},
	} {
		if _, err := a.Post(t.Context(), a.qp, p); service.CodeOf(err) == "" || service.CodeOf(err) == service.CodeInternal {
			t.Errorf("%+v: error %v", p, err)
		}
	}
	_, err = a.Recv(t.Context(), a.qp, service.Recvs(1, 1, 1)...)
	if e := refused(t, err, service.CodeRefused); len(e.IDs) != 2 {
		t.Errorf("posted: %v", e.IDs)
	}
}

func TestMemoryOfUnsignaledRequestsIsGivenUp(t *testing.T) {
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{})
	r := must(b.Register(t.Context(), service.RegisterArgs{Length: 2000, Access: []string{service.LocalWrite, service.RemoteWrite}}))(t)
	posts := make([]service.Post, 64)
	for i := range posts {
		posts[i] = service.Post{Op: service.OpWrite, Data: make([]byte, 2000), Remote: r.Remote(0), Unsignaled: i < len(posts)-1}
	}
	for range maxObjects/len(posts) + 1 { // each request has a region of the service
		must(a.Post(t.Context(), a.qp, posts...))(t)
		a.completes(t, service.SendQueue, service.OpWrite)
	}
}

func TestSharedReceivesOfAClosedQueuePairAreGivenUp(t *testing.T) {
	address := serving(t, Options{Octets: 2 * maxData})
	b := end{Client: dial(t, address)}
	srq := must(b.CreateSRQ(t.Context(), service.SRQArgs{}))(t)
	for range 3 {
		must(b.RecvShared(t.Context(), srq.SRQ, service.Recvs(maxData)...))(t)
		a := end{Client: dial(t, address)}
		joined(t, &a, &b, service.ListenArgs{QP: service.QPAttr{SRQ: srq.SRQ}}, service.ConnectArgs{})
		check(t, b.Arm(t.Context(), service.ArmArgs{QP: b.qp, Queue: service.RecvQueue}))
		a.posts(t, service.Post{Op: service.OpSend})
		check(t, b.Fired(t.Context(), b.qp, service.RecvQueue, patience)) // and nobody fetches the completion
		check(t, b.CloseQP(t.Context(), b.qp))
	}
}

// Completions that nobody fetches are kept up to a limit.
func TestCompletionsThatAreKeptHaveABound(t *testing.T) {
	const entries = 4
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{QP: service.QPAttr{SendEntries: entries}})
	target := must(b.Register(t.Context(), service.RegisterArgs{Length: 8, Access: []string{service.LocalWrite, service.RemoteWrite}}))(t)
	w := must(a.Window(t.Context(), service.WindowArgs{Type: 1}))(t)
	r := must(a.Register(t.Context(), service.RegisterArgs{Length: 1, Access: []string{service.BindWindow}}))(t)
	bind := func() error {
		_, err := a.Bind(t.Context(), service.BindArgs{QP: a.qp, MW: w.MW, MR: r.MR, Length: 1, Access: []string{service.RemoteRead}, Timeout: int(patience.Milliseconds())})
		return err
	}
	var ids []uint64
	for range entries {
		ids = append(ids, must(a.Post(t.Context(), a.qp, service.Post{Op: service.OpWrite, Data: []byte{1}, Remote: target.Remote(0)}))(t)...)
		check(t, bind()) // which keeps the completion of the Write
	}
	refused(t, bind(), service.CodeLimit)
	for i, id := range ids {
		if c := a.completes(t, service.SendQueue, service.OpWrite); c.ID != id {
			t.Errorf("completion of %d; want %d", c.ID, id)
		}
		if i == 0 {
			check(t, bind())
		}
	}
}
