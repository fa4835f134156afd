package mpa

import (
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
)

func TestInitiatorWaitsForTheResponderToSettle(t *testing.T) {
	for name, early := range map[string]bool{"the time passes": false, "the Responder sends": true} {
		t.Run(name, func(t *testing.T) {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				c := initiated(t, conn, p, Config{Revision: 1, CRC: CRCOff, Settle: time.Minute}, plainReply)
				start := time.Now()
				if c.MaySend() {
					t.Error("FPDUs may be sent at once")
				}
				in := receives(c)
				post(t, c, "hello")
				if done, err := c.Flush(false); done || err != nil {
					t.Errorf("Flush without wait: %v, %v", done, err)
				}
				flushed := make(chan error)
				go func() {
					_, err := c.Flush(true)
					flushed <- err
				}()
				synctest.Wait()
				want := time.Minute
				if early {
					time.Sleep(time.Second)
					want = time.Second
					p.says(fpdus(&Framer{}, []byte("ready")))
					if got, err := in.now(); len(got) != 1 || err != nil {
						t.Errorf("%q, %v", got, err)
					}
				}
				if err := <-flushed; err != nil || time.Since(start) != want || !c.MaySend() {
					t.Errorf("sent after %v, %v; want %v", time.Since(start), err, want)
				}
				p.hears(len(fpdus(&Framer{}, []byte("hello"))))
			})
		})
	}
}

func TestCloseEndsTheWaitForSettling(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		c := initiated(t, conn, p, Config{Revision: 1, CRC: CRCOff, Settle: time.Hour}, plainReply)
		post(t, c, "hello")
		flushed := make(chan error)
		go func() {
			_, err := c.Flush(true)
			flushed <- err
		}()
		synctest.Wait()
		_ = c.Close()
		wantCode(t, "Flush", <-flushed, CodeConnectionLost)
	})
}
