package main

import "testing"

func TestFiguresAreReadOfBothSides(t *testing.T) {
	null, put := trial{mode: "null"}, trial{mode: "put"}
	for _, tt := range []struct {
		name  string
		parse func(trial, string) (figure, error)
		of    trial
		out   string
		want  figure
		bad   bool
	}{
		{"null calls of OpenAFS", parseTheirs, null, "perf mode=null threads=1 calls=14634 seconds=1.000 calls/s=14632 p50=53.5 p90=81.9 p99=133.4 p99.9=3980.3 cpu=0.52", figure{14632, 53.5, 133.4}, false},
		{"a stream of OpenAFS", parseTheirs, put, "perf mode=put threads=1 MiB=64 seconds=0.290 MB/s=231.7 cpu=0.14", figure{rate: 231.7}, false},
		{"nothing of OpenAFS", parseTheirs, put, "perf: code -1", figure{}, true},
		{"null calls of ours", parseOurs, null, `{"calls_per_second":20000,"bytes_per_second":1,"latency_ns":{"p50":50000,"p99":100000}}`, figure{20000, 50, 100}, false},
		{"a stream of ours", parseOurs, put, `{"calls_per_second":1,"bytes_per_second":2e9}`, figure{rate: 2000}, false},
		{"an error of ours", parseOurs, put, `{"error":"it has failed","bytes_per_second":2e9}`, figure{}, true},
		{"no JSON", parseOurs, put, ``, figure{}, true},
	} {
		got, err := tt.parse(tt.of, tt.out)
		if (err != nil) != tt.bad || !tt.bad && got != tt.want {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

func TestRowHasMediansAndTheRatioOfEachRound(t *testing.T) {
	got := row(trial{name: "x", mode: "put"}, []figure{{rate: 300}, {rate: 200}, {rate: 100}}, []figure{{rate: 100}, {rate: 100}, {rate: 100}})
	if want := "| x | 200 MB/s | 100 MB/s | 2.00 (1.00 to 3.00) |"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
