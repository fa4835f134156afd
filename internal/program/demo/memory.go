package demo

import (
	"context"
	"fmt"

	"urnic/rnic"
)

func fastRegister(ctx context.Context, d *demo) error {
	source, _, err := d.b.data(256, 6)
	if err != nil {
		return err
	}
	open, err := d.b.pd.Register(source, rnic.RemoteRead)
	if err != nil {
		return err
	}
	mr, err := d.a.pd.AllocMR(4096)
	if err != nil {
		return err
	}
	// Three requests in a row: the region is valid for the Read, and closed by it.
	sink := make([]byte, 256)
	key := mr.STag().Key() + 1
	tag := mr.STag().WithKey(key)
	if _, err := d.a.do(ctx, rnic.SendWR{Op: rnic.OpFastRegister, Register: rnic.FastRegister{
		MR: mr, Memory: rnic.Memory{Slice: sink, ZeroBased: true}, Access: rnic.LocalWrite, Key: key,
	}}); err != nil {
		return err
	}
	if _, err := d.a.do(ctx, rnic.SendWR{Op: rnic.OpReadInvalidate, SGL: []rnic.SGE{{LKey: tag, Length: 256}}, Remote: open.Remote(0)}); err != nil {
		return err
	}
	if mr.Valid() {
		return fmt.Errorf("%v is still valid", mr.STag())
	}
	return d.compare("Read into a fast-registered region", sink, source)
}

func windows(ctx context.Context, d *demo) error {
	mem, _, err := d.a.data(4096, 7)
	if err != nil {
		return err
	}
	region, err := d.a.pd.Register(mem, rnic.LocalWrite|rnic.BindWindow)
	if err != nil {
		return err
	}
	for _, typ := range []rnic.WindowType{rnic.Type1, rnic.Type2} {
		w, err := d.a.pd.AllocMW(typ)
		if err != nil {
			return err
		}
		if _, err := d.a.do(ctx, rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{
			MW: w, MR: region, Addr: region.Base() + 1000, Length: 2000, Access: rnic.RemoteRead, Key: w.STag().Key() + 1,
		}}); err != nil {
			return err
		}
		// B reads through the window.
		sink, sinkMR, err := d.b.memory(2000, rnic.LocalWrite)
		if err != nil {
			return err
		}
		if _, err := d.b.do(ctx, rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{sinkMR.SGE(0, 2000)}, Remote: rnic.Remote{STag: w.STag(), TO: region.Base() + 1000}}); err != nil {
			return err
		}
		if err := d.compare("Read through a window", sink, mem[1000:3000]); err != nil {
			return err
		}
		if _, err := d.a.do(ctx, rnic.SendWR{Op: rnic.OpLocalInvalidate, Invalidate: w.STag()}); err != nil {
			return err
		}
		if w.Valid() {
			return fmt.Errorf("the type %d window is still valid", typ)
		}
	}
	return nil
}
