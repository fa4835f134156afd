package service

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func TestSendArrivesInABufferOfTheService(t *testing.T) {
	a, b := pair(t, ListenArgs{Recvs: Recvs(100, 5)}, ConnectArgs{})
	big := Pattern(3, 70)
	a.posts(t, Post{Op: OpSend, Data: big})
	if c := b.completes(t, RecvQueue, OpRecv); !bytes.Equal(c.Data, big) || c.Length != 70 || c.Solicited {
		t.Errorf("received %+v", c)
	}
	a.posts(t, Post{Op: OpSendSE, Data: []byte("hello")})
	if c := b.completes(t, RecvQueue, OpRecv); string(c.Data) != "hello" || !c.Solicited {
		t.Errorf("received %+v", c)
	}
}

func TestLargeSendComesOutOfMemoryOfTheService(t *testing.T) {
	a, b := pair(t, ListenArgs{Recvs: Recvs(maxData)}, ConnectArgs{})
	data := Pattern(9, maxData)
	a.posts(t, Post{Op: OpSend, Data: data})
	if c := b.completes(t, RecvQueue, OpRecv); !bytes.Equal(c.Data, data) {
		t.Errorf("%d octets came, or others than were sent", len(c.Data))
	}
}

func TestReceiveIntoRegionsScatters(t *testing.T) {
	a, b := pair(t, ListenArgs{}, ConnectArgs{})
	r := must(b.Register(t.Context(), RegisterArgs{Length: 16, Access: []string{LocalWrite}, Fill: 0xEE}))(t)
	ids := must(b.Recv(t.Context(), b.qp, Recv{SGL: []Piece{r.Piece(8, 4), r.Piece(0, 3)}}))(t)
	a.posts(t, Post{Op: OpSend, Data: []byte("abcdef")})
	if c := b.completes(t, RecvQueue, OpRecv); c.ID != ids[0] || c.Length != 6 || c.Data != nil {
		t.Errorf("received %+v as %v", c, ids)
	}
	b.holds(t, r, 0, []byte("ef\xee\xee\xee\xee\xee\xeeabcd\xee\xee\xee\xee"))
}

func TestWriteAndReadMoveMemory(t *testing.T) {
	a, b := pair(t, ListenArgs{}, ConnectArgs{})
	theirs := must(b.Register(t.Context(), RegisterArgs{
		Length: 5000, Access: []string{LocalWrite, RemoteWrite, RemoteRead}, Fill: 1, ZeroBased: true,
	}))(t)
	ours := must(a.Register(t.Context(), RegisterArgs{Length: 5000, Access: []string{LocalWrite}, Pattern: new(uint8(7))}))(t)
	a.posts(t, Post{Op: OpWrite, SGL: []Piece{ours.Piece(10, 4000)}, Remote: theirs.Remote(100)})
	check(t, a.MemoryWrite(t.Context(), ours.MR, 0, make([]byte, 5000)))
	a.posts(t, Post{Op: OpRead, SGL: []Piece{ours.Piece(500, 4002)}, Remote: theirs.Remote(99)}) // behind the Write
	b.holds(t, theirs, 99, append(append([]byte{1}, Pattern(7, 5000)[10:4010]...), 1))
	a.holds(t, ours, 499, append(append([]byte{0, 1}, Pattern(7, 5000)[10:4010]...), 1, 0))
	if tag := must(b.Tag(t.Context(), TagArgs{MR: theirs.MR}))(t); tag.OctetsIn != 4000 || tag.OctetsOut != 4002 || !tag.Valid {
		t.Errorf("tag %+v", tag)
	}
}

func TestAtomicsSwapAndAdd(t *testing.T) {
	a, b := pair(t, ListenArgs{}, ConnectArgs{})
	r := must(b.Register(t.Context(), RegisterArgs{Length: 16, Access: []string{LocalWrite, RemoteAtomic}}))(t)
	number := func(v uint64) []byte {
		if b.Hello().Features.ByteOrder == "little" {
			return binary.LittleEndian.AppendUint64(nil, v)
		}
		return binary.BigEndian.AppendUint64(nil, v)
	}
	const large = 0xFFFF_FFFF_FFFF_FFF0 // no floating point number
	check(t, b.MemoryWrite(t.Context(), r.MR, 8, number(large)))
	if c := a.posts(t, Post{Op: OpFetchAdd, Remote: r.Remote(8), Add: 3}); *c.Original != large {
		t.Errorf("FetchAdd returned %v", c.Original)
	}
	if c := a.posts(t, Post{Op: OpCmpSwap, Remote: r.Remote(8), Compare: large + 3, Swap: large + 1}); *c.Original != large+3 {
		t.Errorf("CmpSwap returned %v", c.Original)
	}
	b.holds(t, r, 8, number(large+1))
	// A mask of no bits compares nothing, and one that swaps the low octet.
	ours := must(a.Register(t.Context(), RegisterArgs{Length: 8, Access: []string{LocalWrite}}))(t)
	a.posts(t, Post{
		Op: OpCmpSwap, Remote: r.Remote(8), Swap: 0x1122, SwapMask: new(Uint64(0xFF)), CompareMask: new(Uint64(0)),
		SGL: []Piece{ours.Piece(0, 8)},
	})
	b.holds(t, r, 8, number(0xFFFF_FFFF_FFFF_FF22))
	a.holds(t, ours, 0, number(large+1))
}

func TestImmediateDataComeInNetworkOrder(t *testing.T) {
	a, b := pair(t, ListenArgs{Recvs: Recvs(0, 8, 0)}, ConnectArgs{})
	r := must(b.Register(t.Context(), RegisterArgs{Length: 4, Access: []string{LocalWrite, RemoteWrite}}))(t)
	for _, p := range []Post{
		{Op: OpImmediate, Immediate: 0x8102030405060708},
		{Op: OpImmediateSE, Immediate: 1},
		{Op: OpWriteImmediate, Immediate: 2, Data: []byte("data"), Remote: r.Remote(0)},
	} {
		a.posts(t, p)
		c := b.completes(t, RecvQueue, OpRecvImmediate)
		if *c.Immediate != p.Immediate || c.Solicited != (p.Op == OpImmediateSE) {
			t.Errorf("%+v came as %+v", p, c)
		}
	}
	b.holds(t, r, 0, []byte("data"))
}

func TestSendWithInvalidateClosesTheSTag(t *testing.T) {
	a, b := pair(t, ListenArgs{Recvs: Recvs(8, 8)}, ConnectArgs{})
	for _, op := range []string{OpSendInvalidate, OpSendSEInvalidate} {
		r := must(b.Register(t.Context(), RegisterArgs{
			Length: 8, Access: []string{LocalWrite, RemoteWrite, RemoteInvalidate}, QP: b.qp,
		}))(t)
		a.posts(t, Post{Op: op, Invalidate: r.STag})
		if c := b.completes(t, RecvQueue, OpRecv); c.Invalidated != r.STag || c.Solicited != (op == OpSendSEInvalidate) {
			t.Errorf("%s: %+v; want %v", op, c, r.STag)
		}
		if tag := must(b.Tag(t.Context(), TagArgs{MR: r.MR}))(t); tag.Valid {
			t.Errorf("%s: the STag is valid still", op)
		}
	}
}

func TestFastRegisterAndInvalidateChangeTheKey(t *testing.T) {
	a, b := pair(t, ListenArgs{}, ConnectArgs{})
	r := must(b.Register(t.Context(), RegisterArgs{Length: 64, Fast: true}))(t)
	for key := range uint8(2) {
		key += uint8(r.STag) + 1
		fast := must(b.FastRegister(t.Context(), FastRegisterArgs{
			QP: b.qp, MR: r.MR, Length: 32, Key: key, Access: []string{LocalWrite, RemoteWrite}, Base: 0x7FFF_0000_0000_1000, Timeout: 5000,
		}))(t)
		if uint8(fast.STag) != key || fast.TO != 0x7FFF_0000_0000_1000 || fast.Length != 32 {
			t.Fatalf("fast registration made %+v", fast)
		}
		a.posts(t, Post{Op: OpWrite, Data: []byte{key}, Remote: fast.Remote(31)})
		a.posts(t, Post{Op: OpRead, Remote: fast.Remote(0)}) // of nothing: the Write is there when it is
		b.holds(t, r, 31, []byte{key})
		check(t, b.Invalidate(t.Context(), InvalidateArgs{QP: b.qp, STag: fast.STag, Timeout: 5000}))
	}
	refused(t, b.Invalidate(t.Context(), InvalidateArgs{QP: b.qp, STag: 0x100, Timeout: 5000}), CodeRefused)
}

func TestWindowsOpenAPartOfARegion(t *testing.T) {
	a, b := pair(t, ListenArgs{}, ConnectArgs{})
	r := must(b.Register(t.Context(), RegisterArgs{Length: 64, Access: []string{LocalWrite, BindWindow}}))(t)
	for typ := 1; typ <= 2; typ++ {
		w := must(b.Window(t.Context(), WindowArgs{Type: typ}))(t)
		key := uint8(w.STag) + 1
		bound := must(b.Bind(t.Context(), BindArgs{
			QP: b.qp, MW: w.MW, MR: r.MR, Offset: 16, Length: 8, Access: []string{RemoteWrite}, Key: key, Timeout: 5000,
		}))(t)
		if typ == 2 && uint8(bound.STag) != key || bound.TO != r.TO+16 {
			t.Errorf("type %d is bound as %+v", typ, bound)
		}
		a.posts(t, Post{Op: OpWrite, Data: []byte{0xA0 + byte(typ)}, Remote: bound.Remote(7)})
		a.posts(t, Post{Op: OpRead, Remote: bound.Remote(0)})
		b.holds(t, r, 22, []byte{0, 0xA0 + byte(typ), 0})
		if tag := must(b.Tag(t.Context(), TagArgs{MW: w.MW}))(t); !tag.Valid || tag.STag != bound.STag {
			t.Errorf("tag %+v", tag)
		}
		refused(t, b.Deregister(t.Context(), r.MR), CodeState)
		check(t, b.CloseWindow(t.Context(), w.MW))
	}
	check(t, b.Deregister(t.Context(), r.MR))
}

func TestCompletionsBeforeTheOneThatIsWaitedForAreKept(t *testing.T) {
	a, b := pair(t, ListenArgs{Recvs: Recvs(1, 1)}, ConnectArgs{})
	ids := must(a.Post(t.Context(), a.qp, Post{Op: OpSend, Data: []byte{1}}, Post{Op: OpSend, Data: []byte{2}}))(t)
	w := must(a.Window(t.Context(), WindowArgs{Type: 1}))(t)
	r := must(a.Register(t.Context(), RegisterArgs{Length: 1, Access: []string{BindWindow}}))(t)
	must(a.Bind(t.Context(), BindArgs{QP: a.qp, MW: w.MW, MR: r.MR, Length: 1, Access: []string{RemoteRead}, Timeout: 5000}))(t)
	for _, id := range ids {
		if c := a.completes(t, SendQueue, OpSend); c.ID != id {
			t.Errorf("completion of %d; want %d", c.ID, id)
		}
		b.completes(t, RecvQueue, OpRecv)
	}
	_, err := a.Completion(t.Context(), a.qp, SendQueue, 0)
	refused(t, err, CodeTimeout)
}

func TestUnsignaledRequestsCompleteOnlyWithTheNext(t *testing.T) {
	a, b := pair(t, ListenArgs{Recvs: Recvs(2000, 2000, 2000)}, ConnectArgs{})
	p := Post{Op: OpSend, Data: make([]byte, 2000), Unsignaled: true}
	last := p
	last.Unsignaled = false
	ids := must(a.Post(t.Context(), a.qp, p, p, last))(t)
	if c := a.completes(t, SendQueue, OpSend); c.ID != ids[2] {
		t.Errorf("completion of %d; want %d", c.ID, ids[2])
	}
	for range 3 {
		b.completes(t, RecvQueue, OpRecv)
	}
}

func TestSharedReceiveQueueServesTwoStreams(t *testing.T) {
	address := serving(t, Options{})
	a1, a2, b := end{Client: dial(t, address)}, end{Client: dial(t, address)}, end{Client: dial(t, address)}
	srq := must(b.CreateSRQ(t.Context(), SRQArgs{Depth: 8, Limit: 1, Recvs: Recvs(4)}))(t)
	must(b.RecvShared(t.Context(), srq.SRQ, Recvs(4)...))(t)
	b1, b2 := b, b
	l := ListenArgs{QP: QPAttr{SRQ: srq.SRQ}}
	joined(t, &a1, &b1, l, ConnectArgs{})
	joined(t, &a2, &b2, l, ConnectArgs{})
	a1.posts(t, Post{Op: OpSend, Data: []byte{1}})
	if c := b1.completes(t, RecvQueue, OpRecv); c.ID != srq.IDs[0] || c.Data[0] != 1 {
		t.Errorf("received %+v", c)
	}
	a2.posts(t, Post{Op: OpSend, Data: []byte{2}})
	if c := b2.completes(t, RecvQueue, OpRecv); c.Data[0] != 2 {
		t.Errorf("received %+v", c)
	}
	if e := must(b.Event(t.Context(), patience))(t); e.Type != EventSRQLimit || e.SRQ != srq.SRQ {
		t.Errorf("event %+v", e)
	}
	refused(t, b.CloseSRQ(t.Context(), srq.SRQ), CodeState)
	check(t, b.CloseQP(t.Context(), b1.qp))
	check(t, b.CloseQP(t.Context(), b2.qp))
	check(t, b.CloseSRQ(t.Context(), srq.SRQ))
}

func TestArmedQueueFiresForSolicitedOnly(t *testing.T) {
	a, b := pair(t, ListenArgs{Recvs: Recvs(1, 1)}, ConnectArgs{})
	check(t, b.Arm(t.Context(), ArmArgs{QP: b.qp, Queue: RecvQueue, Solicited: true}))
	a.posts(t, Post{Op: OpSend})
	b.completes(t, RecvQueue, OpRecv)
	refused(t, b.Fired(t.Context(), b.qp, RecvQueue, 0), CodeTimeout)
	a.posts(t, Post{Op: OpSendSE})
	check(t, b.Fired(t.Context(), b.qp, RecvQueue, patience))
}

func TestReadInvalidatesItsSink(t *testing.T) {
	a, b := pair(t, ListenArgs{}, ConnectArgs{})
	theirs := must(b.Register(t.Context(), RegisterArgs{Length: 4, Access: []string{RemoteRead}, Fill: 5}))(t)
	sink := must(a.Register(t.Context(), RegisterArgs{Length: 4, Access: []string{LocalWrite}, QP: a.qp}))(t)
	a.posts(t, Post{Op: OpReadInvalidate, SGL: []Piece{sink.Piece(0, 4)}, Remote: theirs.Remote(0)})
	a.holds(t, sink, 0, []byte{5, 5, 5, 5})
	if must(a.Tag(t.Context(), TagArgs{MR: sink.MR}))(t).Valid {
		t.Error("the sink's STag is valid still")
	}
}

func TestRefusedRequestSaysWhichWerePosted(t *testing.T) {
	a, b := pair(t, ListenArgs{Recvs: Recvs(1)}, ConnectArgs{QP: QPAttr{RecvDepth: 2}})
	r := must(a.Register(t.Context(), RegisterArgs{Length: 4}))(t)
	_, err := a.Post(t.Context(), a.qp, Post{Op: OpSend, Data: []byte{1}}, Post{Op: OpSend, SGL: []Piece{r.Piece(1, 4)}}, Post{Op: OpSend})
	if e := refused(t, err, CodeRefused); len(e.IDs) != 1 {
		t.Errorf("posted: %v", e.IDs)
	}
	b.completes(t, RecvQueue, OpRecv)
	for _, p := range []Post{
		{Op: OpRead, Data: []byte{1}},
		{Op: OpSend, Data: make([]byte, 2000), SGL: []Piece{r.Piece(0, 1)}},
		{Op: OpBind},
		{Op: OpSend, SGL: []Piece{{MR: r.MR, Offset: 1<<64 - 1, Length: 2}}},
		{Op: OpSend, SGL: []Piece{{MR: 99}}},
	} {
		if _, err := a.Post(t.Context(), a.qp, p); CodeOf(err) == "" || CodeOf(err) == CodeInternal {
			t.Errorf("%+v: error %v", p, err)
		}
	}
	_, err = a.Recv(t.Context(), a.qp, Recvs(1, 1, 1)...)
	if e := refused(t, err, CodeRefused); len(e.IDs) != 2 {
		t.Errorf("posted: %v", e.IDs)
	}
}

func TestMemoryOfUnsignaledRequestsIsGivenUp(t *testing.T) {
	a, b := pair(t, ListenArgs{}, ConnectArgs{})
	r := must(b.Register(t.Context(), RegisterArgs{Length: 2000, Access: []string{LocalWrite, RemoteWrite}}))(t)
	posts := make([]Post, 64)
	for i := range posts {
		posts[i] = Post{Op: OpWrite, Data: make([]byte, 2000), Remote: r.Remote(0), Unsignaled: i < len(posts)-1}
	}
	for range maxObjects/len(posts) + 1 { // each request has a region of the service
		must(a.Post(t.Context(), a.qp, posts...))(t)
		a.completes(t, SendQueue, OpWrite)
	}
}

func TestSharedReceivesOfAClosedQueuePairAreGivenUp(t *testing.T) {
	address := serving(t, Options{Octets: 2 * maxData})
	b := end{Client: dial(t, address)}
	srq := must(b.CreateSRQ(t.Context(), SRQArgs{}))(t)
	for range 3 {
		must(b.RecvShared(t.Context(), srq.SRQ, Recvs(maxData)...))(t)
		a := end{Client: dial(t, address)}
		joined(t, &a, &b, ListenArgs{QP: QPAttr{SRQ: srq.SRQ}}, ConnectArgs{})
		check(t, b.Arm(t.Context(), ArmArgs{QP: b.qp, Queue: RecvQueue}))
		a.posts(t, Post{Op: OpSend})
		check(t, b.Fired(t.Context(), b.qp, RecvQueue, patience)) // and nobody fetches the completion
		check(t, b.CloseQP(t.Context(), b.qp))
	}
}

// Completions that nobody fetches are kept up to a limit.
func TestCompletionsThatAreKeptHaveABound(t *testing.T) {
	const entries = 4
	a, b := pair(t, ListenArgs{}, ConnectArgs{QP: QPAttr{SendEntries: entries}})
	target := must(b.Register(t.Context(), RegisterArgs{Length: 8, Access: []string{LocalWrite, RemoteWrite}}))(t)
	w := must(a.Window(t.Context(), WindowArgs{Type: 1}))(t)
	r := must(a.Register(t.Context(), RegisterArgs{Length: 1, Access: []string{BindWindow}}))(t)
	bind := func() error {
		_, err := a.Bind(t.Context(), BindArgs{QP: a.qp, MW: w.MW, MR: r.MR, Length: 1, Access: []string{RemoteRead}, Timeout: 5000})
		return err
	}
	var ids []uint64
	for range entries {
		ids = append(ids, must(a.Post(t.Context(), a.qp, Post{Op: OpWrite, Data: []byte{1}, Remote: target.Remote(0)}))(t)...)
		check(t, bind()) // which keeps the completion of the Write
	}
	refused(t, bind(), CodeLimit)
	for i, id := range ids {
		if c := a.completes(t, SendQueue, OpWrite); c.ID != id {
			t.Errorf("completion of %d; want %d", c.ID, id)
		}
		if i == 0 {
			check(t, bind())
		}
	}
}
