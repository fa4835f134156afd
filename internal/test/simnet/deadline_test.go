package simnet

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeadlineEndsAWait(t *testing.T) {
	simulate(t, Options{Buffer: 1}, func(t *testing.T, a, _ *Conn) {
		_, _ = a.Write([]byte{1})
		start := time.Now()
		_ = a.SetReadDeadline(start.Add(2 * time.Second))
		_ = a.SetWriteDeadline(start.Add(3 * time.Second))
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("read: %v after %v", err, time.Since(start))
		}
		if _, err := a.Write([]byte{2}); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("write: %v after %v", err, time.Since(start))
		}
	})
}

func TestDeadlineCanBeMovedDuringAWait(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second time.Duration
	}{
		{"later", 2 * time.Second, 5 * time.Second},
		{"earlier", 5 * time.Second, 2 * time.Second},
		{"from never", 0, 2 * time.Second},
		{"to the past", 5 * time.Second, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			simulate(t, Options{}, func(t *testing.T, a, _ *Conn) {
				start := time.Now()
				if tt.first > 0 {
					_ = a.SetReadDeadline(start.Add(tt.first))
				}
				go func() {
					time.Sleep(time.Second)
					_ = a.SetReadDeadline(start.Add(tt.second))
				}()
				_, err := a.Read(make([]byte, 1))
				if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != tt.second {
					t.Errorf("%v after %v; want a timeout after %v", err, time.Since(start), tt.second)
				}
			})
		})
	}
}

// A timer that fires while the deadline is moved must not end the new wait, nor
// close what is closed.
func TestDeadlineMovedAsItPasses(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var d deadline
			d.set(time.Now().Add(time.Second))
			time.Sleep(time.Second) // both wake at the same time
			d.set(time.Now().Add(time.Second))
			synctest.Wait()
			if d.over() {
				t.Error("the deadline has passed although it was moved")
			}
			time.Sleep(time.Second)
			d.set(time.Unix(1, 0))
			synctest.Wait()
			if !d.over() {
				t.Error("the deadline has not passed")
			}
		})
	}
}
