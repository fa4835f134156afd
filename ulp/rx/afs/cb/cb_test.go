package cb_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/cb"
	"urnic/ulp/rx/afs/internal/recorded"
	"urnic/ulp/rx/rpc/rpctest"
)

func TestServersCallBack(t *testing.T) {
	ctx := t.Context()
	var changed []afs.FID
	var initialized afs.UUID
	config := cb.Config{
		Identity: cb.Identity{UUID: afs.UUID{1, 2}, Interfaces: []cb.Interface{{0x7f000001, 0xff000000, 1500}}},
		Cell:     cb.Cell{Name: "rx.test", Hosts: []afs.Addr{5}},
		Changed:  func(_ context.Context, files []afs.FID) { changed = files },
		Init:     func(_ context.Context, u afs.UUID) { initialized = u },
		XStats:   func(c int32) ([]int32, error) { return []int32{c, 7}, nil },
	}
	c := cb.NewClient(rpctest.Serve(cb.NewMux(config)))
	files := []afs.FID{{Volume: 1, Vnode: 2, Unique: 3}, {Volume: 4, Vnode: 5, Unique: 6}}
	if err := errors.Join(c.Probe(ctx), c.ProbeUUID(ctx, afs.UUID{1, 2}), c.Break(ctx, files), c.Init(ctx, afs.UUID{9})); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(changed, files) || initialized != (afs.UUID{9}) {
		t.Errorf("%v, %v", changed, initialized)
	}
	if a, err := c.About(ctx); err != nil || !reflect.DeepEqual(a.Identity, config.Identity) {
		t.Errorf("%+v, %v", a, err)
	}
	if err := c.ProbeUUID(ctx, afs.UUID{3}); !errors.Is(err, cb.ErrNotThisClient) {
		t.Error(err)
	}
	if cell, err := c.Cell(ctx, 0); err != nil || cell.Name != "rx.test" || len(cell.Hosts) != 1 {
		t.Errorf("%v, %v", cell, err)
	}
	if cell, err := c.Cell(ctx, 1); err != nil || cell.Name != "" {
		t.Errorf("behind the last: %v, %v", cell, err)
	}
	if name, err := c.LocalCell(ctx); err != nil || name != "rx.test" {
		t.Errorf("%v, %v", name, err)
	}
	if s, err := c.XStats(ctx, 2); err != nil || !slices.Equal(s.Words, []int32{2, 7}) || s.Version != 2 {
		t.Errorf("%v, %v", s, err)
	}
}

func TestProgramThatCountsNothingHasZeros(t *testing.T) {
	c := cb.NewClient(rpctest.Serve(cb.NewMux(cb.Config{})))
	for collection, want := range map[int32]int{cb.Calls: 0, cb.Performance: 0, cb.FullPerformance: 775} {
		if s, err := c.XStats(t.Context(), collection); err != nil || len(s.Words) != want {
			t.Errorf("collection %d: %d words, %v", collection, len(s.Words), err)
		}
	}
	if _, err := c.XStats(t.Context(), 3); !errors.Is(err, afs.ErrInvalid) {
		t.Error(err)
	}
}

// What OpenAFS's file server and Linux's kAFS have sent.
func TestRecordedCallsDecode(t *testing.T) {
	seen := recorded.Calls{Port: afs.PortCallback, Service: afs.ServiceCallback}.Check(t, cb.Operations())
	recorded.Want(t, seen, "TellMeAboutYourself", "InitCallBackState3")
}

func TestMessagesSurviveTheirEncoding(t *testing.T) { rpctest.RoundTrip(t, cb.Operations()) }

func FuzzMessages(f *testing.F) { rpctest.Fuzz(f, cb.Operations()) }
