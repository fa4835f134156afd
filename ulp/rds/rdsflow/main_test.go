package rdsflow

import (
	"testing"

	"urnic/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }
