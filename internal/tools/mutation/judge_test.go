package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestAFailureByChanceKillsNoMutant(t *testing.T) {
	for _, tt := range []struct {
		name string
		runs string // what becomes of each run: p passes, f fails, h hangs
		want error
		more string // runs that are not needed
	}{
		{"passes", "p", nil, "fff"},
		{"fails", "fpf", errHangs, "ppp"},
		{"fails once", "fppp", nil, "fff"},
		{"fails without it too", "fffpf", errHangs, "ppp"},
		{"fails whatever it is", "ffffff", nil, "fpf"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runs := strings.Split(tt.runs+tt.more, "")
			took := 0
			_, got, err := fails(nil, func([]*test, int) (string, error) {
				took++
				if runs[took-1] == "p" {
					return "", nil
				}
				return "", errHangs
			}, 7)
			if err != nil || !errors.Is(got, tt.want) {
				t.Errorf("the tests fail with %v, %v; want %v", got, err, tt.want)
			}
			if tt.want == nil && got != nil || took > len(tt.runs) {
				t.Errorf("it took %d runs; want %d", took, len(tt.runs))
			}
		})
	}
	broken := errors.New("the tests can't be run")
	if _, _, err := fails(nil, func([]*test, int) (string, error) { return "", broken }, 7); !errors.Is(err, broken) {
		t.Errorf("got %v; want %v", err, broken)
	}
}

func TestTheTestThatFailedIsBlamed(t *testing.T) {
	tests := []*test{{name: "TestA"}, {name: "TestB"}, {name: "TestC"}}
	const passed = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n=== RUN   TestB/sub\n"
	for out, want := range map[string]string{
		passed + "--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/sub\nFAIL\n": "TestB",
		passed:                    "TestB", // it hangs
		passed + "panic: crash\n": "TestB",
		"":                        "TestA TestB TestC",
		"--- FAIL: TestOther\n":   "TestA TestB TestC",
	} {
		var got []string
		for _, b := range blamed(tests, out) {
			got = append(got, b.name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("blamed %q; want %s:\n%s", got, want, out)
		}
	}

	var runs []string
	by, _, err := fails(tests, func(tests []*test, mutant int) (string, error) {
		runs = append(runs, fmt.Sprint(len(tests), " with ", mutant))
		if mutant == 0 {
			return "", nil
		}
		return "--- FAIL: TestC\n", errHangs
	}, 7)
	if want := "[3 with 7 1 with 0 1 with 7]"; err != nil || len(by) != 1 || by[0] != tests[2] || fmt.Sprint(runs) != want {
		t.Errorf("%d fail, %v, in the runs %v; want the last one in %s", len(by), err, runs, want)
	}
}

// The first runs are short, as most mutants end there.
func TestBatchesGrow(t *testing.T) {
	a, b := &binary{}, &binary{}
	var tests []*test
	for range 100 {
		tests = append(tests, &test{bin: a, took: 100 * time.Millisecond})
	}
	tests = append(tests, &test{bin: b, took: time.Millisecond})
	got, n := batches(tests), 0
	for i, batch := range got {
		for _, one := range batch {
			if one != tests[n] || one.bin != batch[0].bin {
				t.Fatalf("batch %d holds another test", i)
			}
			n++
		}
	}
	if n != len(tests) || len(got[0]) != 2 || len(got[1]) != 8 || len(got[len(got)-1]) != 1 {
		t.Errorf("%d tests in %d batches; the first ones have %d and %d", n, len(got), len(got[0]), len(got[1]))
	}
}
