package peeruid

import (
	"testing"

	"urnic/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }
