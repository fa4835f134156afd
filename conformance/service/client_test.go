package service

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

func TestClientRefusesAnswersThatMakeNoSense(t *testing.T) {
	for name, answer := range map[string]string{
		"another ID": `{"id":9,"result":{}}`, "no JSON": "hello", "another version": `{"id":1,"result":{"version":2}}`,
		"another type": `{"id":1,"result":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			check(t, err)
			defer l.Close()
			var wg sync.WaitGroup
			defer wg.Wait()
			wg.Go(func() {
				if c, err := l.Accept(); err == nil {
					defer c.Close()
					fmt.Fprintln(c, answer)
					_, _ = io.Copy(io.Discard, c)
				}
			})
			if c, err := Dial(t.Context(), l.Addr().String()); err == nil {
				c.Close()
				t.Error("the client is content")
			}
		})
	}
}
