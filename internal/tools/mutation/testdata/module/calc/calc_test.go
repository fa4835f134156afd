package calc

import "testing"

func TestGrade(t *testing.T) {
	if Grade(10) != 0 || Grade(90) != 1 {
		t.Error("wrong grades")
	}
}

func TestSum(t *testing.T) {
	if got := Sum(4); got != 10 {
		t.Errorf("Sum(4) is %d", got)
	}
}

func TestCheck(t *testing.T) {
	if err := Check(1); err != nil {
		t.Error(err)
	}
}

func TestPositive(t *testing.T) {
	if Positive(-1) || Positive(0) || !Positive(1) {
		t.Error("wrong signs")
	}
}

func TestGuard(t *testing.T) {
	if !Guard(func() { panic("told to") }) || Guard(func() {}) {
		t.Error("Guard does not tell what panics")
	}
}

func ExampleScale() {
	println(Scale(3))
	// Output:
}

func TestFails(t *testing.T) { t.Error("fails without a mutant too") }
