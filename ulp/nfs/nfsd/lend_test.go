package nfsd_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/memfs"
)

// A lender counts what is lent and what is copied of a tree in memory.
type lender struct {
	*memfs.FS
	fails        atomic.Bool
	lent, copied atomic.Int64 // bytes; of loans, those that are not returned
	loans        atomic.Int64 // ever
}

type countedLoan struct {
	vfs.Loan
	l *lender
	n int64
}

func (c countedLoan) Return() {
	c.l.lent.Add(-c.n)
	c.Loan.Return()
}

func (l *lender) Lend(ctx context.Context, h vfs.Handle, n int, off uint64) (vfs.Loan, bool, error) {
	if l.fails.Load() {
		return nil, false, vfs.ErrIO
	}
	loan, end, err := l.FS.Lend(ctx, h, n, off)
	if err != nil {
		return nil, false, err
	}
	l.loans.Add(1)
	l.lent.Add(int64(n))
	return countedLoan{loan, l, int64(n)}, end, nil
}

func (l *lender) Read(ctx context.Context, h vfs.Handle, p []byte, off uint64) (int, bool, error) {
	n, end, err := l.FS.Read(ctx, h, p, off)
	l.copied.Add(int64(n))
	return n, end, err
}

// Long READs copy nothing that is in memory, and return what they borrow once the reply
// is sent; short ones copy.
func TestLongReadsBorrow(t *testing.T) {
	for _, tcp := range []bool{false, true} {
		l := &lender{FS: memfs.New(memfs.Options{Mode: 0o777})}
		t.Cleanup(func() { _ = l.Close() })
		b := on(t, nfsd.Config{}, nfsd.Export{FS: l, Squash: nfsd.SquashNone, Insecure: true})
		if tcp {
			b.overTCP()
		}
		h := b.create(alice, b.root, "file", 0o644)
		data := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
		ok(b, b.write(alice, h, 0, string(data)))
		for _, tc := range []struct {
			off, n int
			lent   bool
		}{{0, len(data), true}, {100, 1 << 17, true}, {len(data) - 40000, 1 << 17, true}, {len(data) - 1000, 1 << 17, false}, {10, 4096, false}, {len(data), 1 << 17, false}} {
			loans, copied := l.loans.Load(), l.copied.Load()
			want := data[tc.off:min(tc.off+tc.n, len(data))]
			r := ok(b, b.read(alice, h, uint64(tc.off), uint32(tc.n)))
			if !bytes.Equal(r.Data, want) || r.EOF != (tc.off+tc.n >= len(data)) {
				t.Errorf("%d bytes at %d: %d read, end %v", tc.n, tc.off, len(r.Data), r.EOF)
			}
			lent, wasCopied := l.loans.Load()-loans, l.copied.Load()-copied
			if tc.lent && (lent != 1 || wasCopied != 0) || !tc.lent && (lent != 0 || int(wasCopied) != len(want)) {
				t.Errorf("%d bytes at %d: %d loans, and %d bytes copied", tc.n, tc.off, lent, wasCopied)
			}
		}
		l.fails.Store(true)
		b.want("what can't be lent", b.read(alice, h, 0, 1<<17), nfs3.ErrIO)
		if err := b.rpc.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if n := l.lent.Load(); n != 0 {
			t.Errorf("over TCP %v: %d bytes are still lent", tcp, n)
		}
	}
}
