package mpa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
)

// connect starts MPA between the two ends of a stream.
func connect(t testing.TB, a, b net.Conn, initiator, responder Config) (ini, res *Conn) {
	t.Helper()
	type result struct {
		c   *Conn
		err error
	}
	done := make(chan result)
	go func() {
		req, err := ReceiveRequest(context.Background(), b, responder)
		if err != nil {
			done <- result{err: err}
			return
		}
		c, err := req.Accept(context.Background(), responder)
		done <- result{c, err}
	}()
	ini, err := Initiate(t.Context(), a, initiator)
	r := <-done
	if err != nil || r.err != nil {
		t.Fatalf("initiator: %v; responder: %v", err, r.err)
	}
	t.Cleanup(func() {
		_ = ini.Close()
		_ = r.c.Close()
	})
	return ini, r.c
}

// send posts ULPDUs and flushes them, while the peer receives.
func send(t *testing.T, c *Conn, ulpdus ...[]byte) {
	t.Helper()
	for _, u := range ulpdus {
		for {
			ok, err := c.Post(u[:min(2, len(u))], [][]byte{u[min(2, len(u)):]}, true)
			if err != nil {
				t.Error(err)
				return
			}
			if ok {
				break
			}
			if _, err := c.Flush(true); err != nil {
				t.Error(err)
				return
			}
		}
	}
	for {
		if done, err := c.Flush(true); err != nil {
			t.Error(err)
			return
		} else if done {
			return
		}
	}
}

// receive takes n ULPDUs.
func receive(t *testing.T, c *Conn, n int) [][]byte {
	t.Helper()
	var got [][]byte
	for len(got) < n {
		if err := c.Receive(each(func(u []byte, order uint64) {
			if order != uint64(len(got)) {
				t.Errorf("ULPDU %d has order %d", len(got), order)
			}
			got = append(got, bytes.Clone(u))
		})); err != nil {
			t.Errorf("after %d ULPDUs: %v", len(got), err)
			break
		}
	}
	return got
}

func TestULPDUBoundariesSurviveAnySegmentation(t *testing.T) {
	for _, crc := range []CRCPolicy{CRCPrefer, CRCOff} {
		for _, markers := range []bool{false, true} {
			for seed := range uint64(6) {
				t.Run(fmt.Sprintf("crc=%v markers=%v seed=%d", crc, markers, seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := simnet.Faults{Seed: seed, ShortReads: seed > 0, ShortWrites: seed > 1}
						a, b := simnet.Pipe(simnet.Options{AB: f, BA: f, MSS: 1448})
						ini, res := connect(t, a, b, Config{CRC: crc, Markers: markers}, Config{CRC: crc, Markers: markers})
						ulpdus, _ := fpduStream(seed, false, false, 40, 3000<<(seed%3*2))
						for i, u := range ulpdus {
							ulpdus[i] = u[:min(len(u), MaxMULPDU)]
						}
						go send(t, ini, ulpdus...)
						for i, u := range receive(t, res, len(ulpdus)) {
							if !bytes.Equal(u, ulpdus[i]) {
								t.Fatalf("ULPDU %d: %d octets; want %d", i, len(u), len(ulpdus[i]))
							}
						}
						go send(t, res, ulpdus...)
						for i, u := range receive(t, ini, len(ulpdus)) {
							if !bytes.Equal(u, ulpdus[i]) {
								t.Fatalf("ULPDU %d back: %d octets; want %d", i, len(u), len(ulpdus[i]))
							}
						}
						synctest.Wait()
						if ini.Posted() != ini.Accepted() || ini.out.arena != nil {
							t.Errorf("%d octets posted, %d accepted", ini.Posted(), ini.Accepted())
						}
						if err := ini.CloseWrite(); err != nil {
							t.Error(err)
						}
						if err := res.Receive(ignore); !errors.Is(err, io.EOF) {
							t.Errorf("after the peer's end: %v", err)
						}
						if res.in.buf != nil {
							t.Error("the receiver still holds a buffer")
						}
					})
				})
			}
		}
	}
}
