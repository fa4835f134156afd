package demo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"urnic/rnic"
)

func connect(ctx context.Context, d *demo) error {
	err := d.link(ctx, rnic.QPAttr{}, rnic.ConnParam{PrivateData: []byte("hello"), IRD: 4, ORD: 8}, rnic.ConnParam{PrivateData: []byte("welcome")})
	if err != nil {
		return err
	}
	p, _ := d.a.qp.Params()
	q, _ := d.b.qp.Params()
	if err := d.compare("private data", append(p.PrivateData, q.PrivateData...), []byte("welcomehello")); err != nil {
		return err
	}
	if !p.CRC || p.ORD != 8 || q.IRD != 8 || p.Revision != 2 {
		return fmt.Errorf("settled %+v and %+v", p, q)
	}
	return nil
}

// sendTo sends data from A to B and returns B's completion.
func (d *demo) sendTo(ctx context.Context, what string, n int, wr rnic.SendWR) (rnic.WC, error) {
	data, mr, err := d.a.data(n, byte(n))
	if err != nil {
		return rnic.WC{}, err
	}
	buf, id, err := d.b.recv(n + 10)
	if err != nil {
		return rnic.WC{}, err
	}
	wr.SGL = []rnic.SGE{mr.SGE(0, n)}
	if _, err := d.a.do(ctx, wr); err != nil {
		return rnic.WC{}, err
	}
	wc, err := d.b.want(ctx, d.b.recvCQ, id)
	if err != nil {
		return wc, err
	}
	return wc, d.compare(what, buf[:wc.ByteLen], data)
}

func sends(ctx context.Context, d *demo) error {
	for _, flags := range []rnic.Flags{0, rnic.FlagSolicited} {
		wc, err := d.sendTo(ctx, "Send", 3000, rnic.SendWR{Op: rnic.OpSend, Flags: flags})
		if err != nil {
			return err
		}
		if wc.Solicited != (flags != 0) {
			return fmt.Errorf("solicited: %v", wc.Solicited)
		}
	}
	return nil
}

func invalidates(ctx context.Context, d *demo) error {
	for _, flags := range []rnic.Flags{0, rnic.FlagSolicited} {
		mr, err := d.b.pd.RegisterMemory(rnic.Memory{Slice: make([]byte, 64)}, rnic.RemoteRead|rnic.RemoteInvalidate, d.b.qp)
		if err != nil {
			return err
		}
		wc, err := d.sendTo(ctx, "Send with Invalidate", 100, rnic.SendWR{Op: rnic.OpSendInvalidate, Flags: flags, Invalidate: mr.STag()})
		if err != nil {
			return err
		}
		if wc.Invalidated != mr.STag() || mr.Valid() {
			return fmt.Errorf("%v was to be invalidated; the completion says %v, the region is valid: %v", mr.STag(), wc.Invalidated, mr.Valid())
		}
	}
	return nil
}

func write(ctx context.Context, d *demo) error {
	data, mr, err := d.a.data(5000, 1)
	if err != nil {
		return err
	}
	sink, sinkMR, err := d.b.memory(6000, rnic.LocalWrite|rnic.RemoteWrite)
	if err != nil {
		return err
	}
	if _, err := d.a.do(ctx, rnic.SendWR{
		Op: rnic.OpWrite, SGL: []rnic.SGE{mr.SGE(0, 1), mr.SGE(1, 2999), mr.SGE(3000, 2000)}, Remote: sinkMR.Remote(500),
	}); err != nil {
		return err
	}
	// A Write says nothing to the peer; a Send behind it does (RFC 5040 §5.5 rule 10).
	if _, err := d.sendTo(ctx, "Send behind the Write", 1, rnic.SendWR{Op: rnic.OpSend}); err != nil {
		return err
	}
	return errors.Join(
		d.compare("RDMA Write", sink[500:5500], data),
		d.compare("bytes beside the Write", append(sink[:500:500], sink[5500:]...), make([]byte, 1000)),
	)
}

func reads(ctx context.Context, d *demo) error {
	const n, size = 8, 3000
	data, mr, err := d.b.data(n*size, 2)
	if err != nil {
		return err
	}
	source, err := d.b.pd.Register(data, rnic.RemoteRead)
	if err != nil {
		return errors.Join(err, mr.Close())
	}
	sink, sinkMR, err := d.a.memory(n*size, rnic.LocalWrite)
	if err != nil {
		return err
	}
	var ids []uint64
	for i := range n {
		id, err := d.a.post(rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{sinkMR.SGE(i*size, size)}, Remote: source.Remote(i * size)})
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if _, err := d.a.want(ctx, d.a.sendCQ, id); err != nil {
			return err
		}
	}
	return d.compare("RDMA Reads", sink, data)
}

func immediates(ctx context.Context, d *demo) error {
	data, mr, err := d.a.data(2000, 3)
	if err != nil {
		return err
	}
	sink, sinkMR, err := d.b.memory(2000, rnic.LocalWrite|rnic.RemoteWrite)
	if err != nil {
		return err
	}
	for i, wr := range []rnic.SendWR{
		{Op: rnic.OpWriteImmediate, SGL: []rnic.SGE{mr.SGE(0, 2000)}, Remote: sinkMR.Remote(0)},
		{Op: rnic.OpImmediate},
		{Op: rnic.OpImmediate, Flags: rnic.FlagSolicited},
	} {
		_, id, err := d.b.recv(0)
		if err != nil {
			return err
		}
		wr.Immediate = [8]byte{'i', 'm', 'm', byte(i)}
		if _, err := d.a.do(ctx, wr); err != nil {
			return err
		}
		wc, err := d.b.want(ctx, d.b.recvCQ, id)
		if err != nil {
			return err
		}
		if wc.Op != rnic.OpRecvImmediate {
			return fmt.Errorf("it completed as %v", wc.Op)
		}
		if err := d.compare("Immediate Data", wc.Immediate[:], wr.Immediate[:]); err != nil {
			return err
		}
	}
	return d.compare("Write with Immediate", sink, data)
}

func atomics(ctx context.Context, d *demo) error {
	target := make([]uint64, 1) // 64-bit aligned, as atomics want it
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&target[0])), 8)
	mr, err := d.b.pd.Register(mem, rnic.LocalWrite|rnic.RemoteAtomic)
	if err != nil {
		return err
	}
	result, resultMR, err := d.a.memory(8, rnic.LocalWrite)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		op     rnic.Opcode
		atomic rnic.Atomic
		before uint64
	}{
		{rnic.OpFetchAdd, rnic.Atomic{Add: 0x7FFFFFFF}, 0},
		{rnic.OpFetchAdd, rnic.Atomic{Add: 0x80000001, AddMask: 1<<63 | 1<<31}, 0x7FFFFFFF}, // two fields: no carry between them
		{rnic.OpCmpSwap, rnic.Atomic{Compare: 0, Swap: 42}, 0},
		{rnic.OpCmpSwap, rnic.Atomic{Compare: 0, Swap: 43}, 42}, // does not compare
	} {
		wc, err := d.a.do(ctx, rnic.SendWR{Op: step.op, SGL: []rnic.SGE{resultMR.SGE(0, 8)}, Remote: mr.Remote(0), Atomic: step.atomic})
		if err != nil {
			return err
		}
		if wc.Original != step.before {
			return fmt.Errorf("%v found 0x%x, not 0x%x", step.op, wc.Original, step.before)
		}
		if err := d.compare("atomic", result, binary.NativeEndian.AppendUint64(nil, step.before)); err != nil {
			return err
		}
	}
	return d.compare("target of the atomics", mem, binary.NativeEndian.AppendUint64(nil, 42))
}

func flags(ctx context.Context, d *demo) error {
	source, sourceMR, err := d.b.data(4000, 4)
	if err != nil {
		return err
	}
	open, err := d.b.pd.Register(source, rnic.RemoteRead)
	if err != nil {
		return errors.Join(err, sourceMR.Close())
	}
	sink, sinkMR, err := d.a.memory(4000, rnic.LocalWrite)
	if err != nil {
		return err
	}
	buf, recvID, err := d.b.recv(64)
	if err != nil {
		return err
	}
	inline := []byte("these bytes may be used again at once")
	want := append([]byte(nil), inline...)
	// The Send waits for the Read: it would overtake its response otherwise.
	if _, err := d.a.post(rnic.SendWR{Op: rnic.OpRead, Flags: rnic.FlagUnsignaled, SGL: []rnic.SGE{sinkMR.SGE(0, 4000)}, Remote: open.Remote(0)}); err != nil {
		return err
	}
	id, err := d.a.post(rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline | rnic.FlagReadFence, Inline: inline})
	if err != nil {
		return err
	}
	clear(inline)
	if _, err := d.a.want(ctx, d.a.sendCQ, id); err != nil {
		return err
	}
	wc, err := d.b.want(ctx, d.b.recvCQ, recvID)
	if err != nil {
		return err
	}
	return errors.Join(d.compare("inline Send", buf[:wc.ByteLen], want), d.compare("Read before the fence", sink, source))
}

func empties(ctx context.Context, d *demo) error {
	if _, err := d.sendTo(ctx, "empty Send", 0, rnic.SendWR{Op: rnic.OpSend}); err != nil {
		return err
	}
	// The STag of an empty Write or Read is not looked at (RFC 5041 §5.2, RFC 5040 §5.2.1).
	for _, op := range []rnic.Opcode{rnic.OpWrite, rnic.OpRead} {
		if _, err := d.a.do(ctx, rnic.SendWR{Op: op, Remote: rnic.Remote{STag: 0xDEADBEEF}}); err != nil {
			return err
		}
	}
	return nil
}

func large(ctx context.Context, d *demo) error {
	const n = 1 << 20
	data, mr, err := d.a.data(n, 5)
	if err != nil {
		return err
	}
	remote, remoteMR, err := d.b.memory(n, rnic.LocalWrite|rnic.RemoteWrite|rnic.RemoteRead)
	if err != nil {
		return err
	}
	back, backMR, err := d.a.memory(n, rnic.LocalWrite)
	if err != nil {
		return err
	}
	if _, err := d.a.do(ctx, rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{mr.SGE(0, n)}, Remote: remoteMR.Remote(0)}); err != nil {
		return err
	}
	// The Read sees what was written before it (RFC 5040 §5.5 rule 12).
	if _, err := d.a.do(ctx, rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{backMR.SGE(0, n)}, Remote: remoteMR.Remote(0)}); err != nil {
		return err
	}
	if _, err := d.sendTo(ctx, "large Send", n, rnic.SendWR{Op: rnic.OpSend}); err != nil {
		return err
	}
	return errors.Join(d.compare("large Write", remote, data), d.compare("large Read", back, data))
}

func disconnect(ctx context.Context, d *demo) error {
	if err := d.a.qp.Disconnect(ctx); err != nil {
		return err
	}
	// B's queue pair is given up only when it has told of the close: it may
	// learn of its end later than A does.
	e, err := d.b.WaitEvent(ctx)
	if err != nil {
		return err
	}
	if e.Type != rnic.EventCloseComplete {
		return fmt.Errorf("the event of B is %v", e)
	}
	return errors.Join(d.a.drop(), d.b.drop())
}
