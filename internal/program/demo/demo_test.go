package demo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

func TestAllStepsSucceed(t *testing.T) {
	var got []Result
	if err := Run(t.Context(), Options{Step: func(r Result) { got = append(got, r) }}); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(Steps) {
		t.Fatalf("%d of %d steps are told", len(got), len(Steps))
	}
	moves := 0
	for i, r := range got {
		if r.Name != Steps[i].Name || r.Err != nil {
			t.Errorf("step %d: %+v", i, r)
		}
		if r.Checked > 0 {
			moves++
		}
	}
	if moves < 14 {
		t.Errorf("only %d steps check bytes: %+v", moves, got)
	}
}

func TestStepThatFailsEndsTheDemonstration(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var got []Result
	err := Run(ctx, Options{Step: func(r Result) {
		if got = append(got, r); len(got) == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), Steps[3].Name+": ") {
		t.Errorf("error %v", err)
	}
	if len(got) != 4 || got[3].Err == nil || got[2].Err != nil {
		t.Errorf("results: %+v", got)
	}
}

func TestStepIsNotWaitedForInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Step{Name: "wait", run: func(ctx context.Context, _ *demo) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		if err := s.within(t.Context(), time.Minute, nil); err == nil || !strings.Contains(err.Error(), "it was not done within 1m0s") {
			t.Error(err)
		}
	})
}
