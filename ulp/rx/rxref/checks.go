package rxref

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"urnic/ulp/rx/rpc"
)

// A Check is a call, or a few, that must go as the interface says.
type Check struct {
	Name string
	Run  func(ctx context.Context, c *Client) error
}

// Checks are for every operation in every way: lengths around those of packets and
// windows, aborts and stops amid a stream, and calls at the same time. WhoAmI is not
// among them, which Linux's peer lacks. They take some 2 s, for most of which the server
// sleeps.
func Checks() []Check {
	checks := []Check{{"null", func(ctx context.Context, c *Client) error { return c.Null(ctx) }}}
	for _, n := range []uint64{0, 1, 3, 4, 1000, 1404, 1408, 1412, 1413, 5000, 65_536, 1_000_000} {
		checks = append(checks,
			Check{fmt.Sprint("echo ", n), func(ctx context.Context, c *Client) error { return c.echo(ctx, int(n)) }},
			Check{fmt.Sprint("put ", n), streaming((*Client).Put, How{Length: n}, 0)},
			Check{fmt.Sprint("get ", n), streaming((*Client).Get, How{Length: n}, 0)},
			Check{fmt.Sprint("both ", n), streaming((*Client).Both, How{Length: n}, 0)},
		)
	}
	for _, code := range []int32{12345, -7777, 13} {
		checks = append(checks, Check{fmt.Sprint("fail ", code), func(ctx context.Context, c *Client) error {
			return wantCode(c.Fail(ctx, code), code)
		}})
	}
	abort := How{Length: 200_000, FailCode: 4711, FailAt: 50_000}
	pause := How{Length: 200_000, PauseMS: 500, PauseAt: 50_000}
	return append(checks,
		Check{"slow", func(ctx context.Context, c *Client) error { return c.Slow(ctx, time.Second) }},
		Check{"put, aborted amid it", streaming((*Client).Put, abort, 4711)},
		Check{"get, aborted amid it", streaming((*Client).Get, abort, 4711)},
		Check{"put, reader stops", streaming((*Client).Put, pause, 0)},
		Check{"get, writer stops", streaming((*Client).Get, pause, 0)},
		Check{"put, given up", func(ctx context.Context, c *Client) error { return c.Quit(ctx, pause, true, 20_000) }},
		Check{"get, given up", func(ctx context.Context, c *Client) error { return c.Quit(ctx, pause, false, 20_000) }},
		Check{"calls at the same time", together},
		Check{"null at the end", func(ctx context.Context, c *Client) error { return c.Null(ctx) }},
	)
}

func (c *Client) echo(ctx context.Context, n int) error {
	sent := bytesAt(0, n)
	got, err := c.Echo(ctx, sent)
	if err == nil && !bytes.Equal(got, sent) {
		err = &DamagedError{Operation: opEcho.Name, Length: uint64(n), Mine: Seen{Length: uint64(len(got))}}
	}
	return err
}

// streaming makes a streaming call that is to fail with a code, or to succeed if that is 0.
func streaming(call func(*Client, context.Context, How) (Seen, error), how How, code int32) func(context.Context, *Client) error {
	return func(ctx context.Context, c *Client) error {
		_, err := call(c, ctx, how)
		if code != 0 {
			return wantCode(err, code)
		}
		return err
	}
}

// wantCode reports a call that has not ended with an abort code.
func wantCode(err error, want int32) error {
	got, ok := rpc.AbortCode(err)
	switch {
	case ok && got == want:
		return nil
	case err == nil:
		return fmt.Errorf("rxref: the call has succeeded, and code %d was wanted", want)
	}
	return fmt.Errorf("rxref: the call has not ended with code %d: %w", want, err)
}

// together makes more calls at once than a connection has channels.
func together(ctx context.Context, c *Client) error {
	const calls = 9
	ended := make(chan error, calls)
	for i := range calls {
		go func() {
			switch i % 3 {
			case 0:
				ended <- c.Slow(ctx, 100*time.Millisecond)
			case 1:
				_, err := c.Put(ctx, How{Length: 100_000})
				ended <- err
			default:
				ended <- c.echo(ctx, 10_000)
			}
		}()
	}
	var all error
	for range calls {
		all = errors.Join(all, <-ended)
	}
	return all
}
