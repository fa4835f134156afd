// Package rxdebug asks Rx servers what they do, by debug and version packets (draft §4, §6).
// No connection is needed for that, and no authentication.
//
//	c, err := rxdebug.Dial(ctx, addr, rxdebug.Config{})
//	defer c.Close()
//	report, err := c.Ask(ctx, rxdebug.Want{Version: true, Basic: true, Conns: true})
//	err = report.WriteText(os.Stdout)
//
// A [Client] has a UDP socket of its own. Each of its methods sends a request, again until
// the answer is there, or ends with [ErrSilent]. [Client.Ask] makes a [Report] of several
// answers, which is written as text or as JSON.
//
// # What servers know
//
// [Client.Basic] returns the version of the debug protocol of a server, a letter. Servers
// before M know neither statistics nor a list of all connections, those before Q no peers:
// such a request fails with [ErrUnsupported], and Ask leaves the part out. Linux has no
// debug packets; it answers with an abort, which is an [AbortError], but reports its
// version.
//
// # What a hostile server can do
//
// Answers are taken only from the address that was asked, and with the epoch, the connection
// ID and the number of the request, which are random. Each list ends at [Config.MaxEntries],
// with [ErrUnended]. Text shows what the server has written with its control characters
// escaped.
package rxdebug
