// Package rnictimeline records when work requests are posted, carried out and polled: `urnic timeline`
// makes a page or a Chrome trace of it, and so does `urnic run --timeline` for programs in C.
//
//	var cfg rnic.Config
//	rec, err := rnictimeline.Start("recordings", &cfg)
//	defer rec.Close() // after the device
//	dev, err := rnic.Open(cfg)
//	…
//	err = rec.PostSend(qp, wr) // in place of qp.PostSend
//	n, err := rec.Wait(ctx, cq, wcs)
//
// A [Recorder] writes two files into a directory. PID-N.pcapng is a recording of all that passes, by
// rnic.Config.Record: it says when the bytes of each request left and arrived. PID-N.events is a list of
// [Event], 40 bytes each: posts and polls, for which the program calls the Recorder in place of rnic, messages
// that were delivered, by rnic.Config.Trace, and the addresses of queue pairs. Both can be read of a program
// that was killed, but for the last fifth of a second.
//
// Both are bounded: see [MostEvents] and [MostRecorded].
package rnictimeline
