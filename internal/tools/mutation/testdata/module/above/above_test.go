package above

import (
	"testing"

	"example.org/module/calc"
)

func TestDouble(t *testing.T) {
	if calc.Double(3) != 6 {
		t.Error("wrong double")
	}
}
