package rds

import "testing"

func TestMemoryIsRoundedUpLittle(t *testing.T) {
	last := -1
	size := 0
	for n := range 1<<20 + 1 {
		class, got := classOf(n)
		if got < n || n > 1<<leastClass && got > n+n/4+1 {
			t.Fatalf("%d bytes take %d", n, got)
		}
		if again, same := classOf(got); again != class || same != got {
			t.Fatalf("%d bytes take class %d of %d; these have class %d of %d", n, class, got, again, same)
		}
		if got != size {
			if class != last+1 {
				t.Fatalf("class %d is behind %d", class, last)
			}
			last, size = class, got
		}
	}
	if last >= classes {
		t.Errorf("there are %d classes", last+1)
	}
}

func TestPoolKeepsNoMoreThanItMay(t *testing.T) {
	made, wasted := 0, 0
	p := pool[int]{
		make:  func(n int) ([]int, error) { made++; return []int{n}, nil },
		waste: func(n int) { wasted++ },
		limit: 3 << 10,
	}
	for range 2 {
		var out []int
		for range 4 {
			n, err := p.get(900)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, n)
		}
		for _, n := range out {
			p.put(n, n)
		}
	}
	if made != 5 || wasted != 2 {
		t.Errorf("made %d, wasted %d; the pool has room for 3 of 4", made, wasted)
	}
	p.close()
	if wasted != made {
		t.Errorf("made %d, wasted %d when it was closed", made, wasted)
	}
	if p.put(1<<10, 1<<10); wasted != made+1 {
		t.Error("it keeps what comes later")
	}
}
