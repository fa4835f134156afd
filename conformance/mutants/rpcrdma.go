package mutants

// rpcHeaders breaks what both ends of RPC-over-RDMA read and write: RFC 8166 §4, RFC 8797.
var rpcHeaders = []Mutant{
	{
		Name:    "rpc-version-above-taken",
		Fault:   "Versions above one are taken for version one.",
		Clauses: []string{"rfc8166-4.5.1-1"},
		Edits:   one("ulp/rpcrdma/decode.go", `if h.Version != Version {`, `if h.Version < Version {`),
	},
	{
		Name:    "rpc-version-is-err-chunk",
		Fault:   "A version that there is not is answered with ERR_CHUNK.",
		Clauses: []string{"rfc8166-4.5.1-1"},
		Edits:   one("ulp/rpcrdma/decode.go", `return refuse(ErrVers, "4.5.1", ErrVersion)`, `return refuse(ErrChunk, "4.5.1", ErrVersion)`),
	},
	{
		Name:    "rpc-short-message-answered",
		Fault:   "A message that is too short for a header is answered with RDMA_ERROR.",
		Clauses: []string{"rfc8166-4.5-1"},
		Edits: one("ulp/rpcrdma/decode.go",
			`return nil, &HeaderError{Clause: "4.5", Err: ErrShort}`,
			`return nil, &HeaderError{Clause: "4.5", Err: ErrShort, Code: ErrChunk}`),
	},
	{
		Name:    "rpc-error-is-no-procedure",
		Fault:   "An RDMA_ERROR is answered as if there were no such procedure.",
		Clauses: []string{"rfc8166-4.2.4-4"},
		Edits:   one("ulp/rpcrdma/decode.go", `if h.Proc == Error {`, `if h.Proc == Error && h.Version != Version {`),
	},
	{
		Name:    "rpc-unknown-error-answered",
		Fault:   "An RDMA_ERROR with an error that there is not is answered with another one.",
		Clauses: []string{"rfc8166-4.5-7"},
		Edits:   one("ulp/rpcrdma/decode.go", `return refuse(0, "4.5", c.bad)`, `return refuse(ErrChunk, "4.5", c.bad)`),
	},
	{
		Name:    "rpc-done-answered",
		Fault:   "An RDMA_DONE is answered with RDMA_ERROR.",
		Clauses: []string{"rfc8166-4.6.2-2"},
		Edits:   one("ulp/rpcrdma/decode.go", `return refuse(0, "4.6.2", ErrObsolete)`, `return refuse(ErrChunk, "4.6.2", ErrObsolete)`),
	},
	{
		Name:    "rpc-msgp-discarded",
		Fault:   "An RDMA_MSGP is silently discarded by servers too.",
		Clauses: []string{"rfc8166-4.6.1-2"},
		Edits:   one("ulp/rpcrdma/decode.go", `return refuse(ErrChunk, "4.6.1", ErrObsolete)`, `return refuse(0, "4.6.1", ErrObsolete)`),
	},
	{
		Name:    "rpc-unknown-procedure-discarded",
		Fault:   "A procedure that there is not is silently discarded.",
		Clauses: []string{"rfc8166-4.5.2-1", "rfc8166-4.5-2", "rfc8166-4.5-6"},
		Edits:   one("ulp/rpcrdma/decode.go", `return refuse(ErrChunk, "4.5.2", ErrProc)`, `return refuse(0, "4.5.2", ErrProc)`),
	},
	{
		Name:    "rpc-bad-list-is-err-vers",
		Fault:   "Chunk lists that can't be parsed are answered with ERR_VERS.",
		Clauses: []string{"rfc8166-4.5.2-1"},
		Edits:   one("ulp/rpcrdma/decode.go", `return refuse(ErrChunk, "4.5.2", c.bad)`, `return refuse(ErrVers, "4.5.2", c.bad)`),
	},
	{
		Name:    "rpc-nomsg-without-chunks-discarded",
		Fault:   "An RDMA_NOMSG with three empty lists is silently discarded.",
		Clauses: []string{"rfc8166-4.5.2-1", "rfc8166-4.5-2"},
		Edits:   one("ulp/rpcrdma/decode.go", `return refuse(ErrChunk, "4.5.2", ErrNoStream)`, `return refuse(0, "4.5.2", ErrNoStream)`),
	},
	{
		Name:    "rpc-any-number-is-true",
		Fault:   "Any number but zero says that an optional item is there.",
		Clauses: []string{"rfc8166-4.5-2", "rfc8166-4.5.2-1"},
		Edits:   one("ulp/rpcrdma/decode.go", "\t\tc.fail(ErrMark)\n\t}\n", "\t\treturn true\n\t}\n"),
	},
	{
		Name:    "rpc-position-half-checked",
		Fault:   "The position of a Read chunk may be any even number.",
		Clauses: []string{"rfc8166-4.5-2", "rfc8166-4.5.2-1"},
		Edits:   one("ulp/rpcrdma/decode.go", `if s.Position%4 != 0 {`, `if s.Position%2 != 0 {`),
	},
	{
		Name:    "private-reserved-bit-set",
		Fault:   "A reserved bit of the private data is set.",
		Clauses: []string{"rfc8797-4-2"},
		Edits:   one("ulp/rpcrdma/private.go", `flags = flagR`, `flags = flagR | 0x80`),
	},
	{
		Name:    "private-any-flag-is-r",
		Fault:   "Any flag of the private data is taken for R.",
		Clauses: []string{"rfc8797-4-3"},
		Edits:   one("ulp/rpcrdma/private.go", `data[at+5]&flagR != 0`, `data[at+5] != 0`),
	},
	{
		Name:    "private-any-version-taken",
		Fault:   "Private data of any version are taken for version one.",
		Clauses: []string{"rfc8797-5.1-1"},
		Edits:   one("ulp/rpcrdma/private.go", ` || data[at+4] != privateVersion {`, ` {`),
	},
	{
		Name:    "private-identifier-not-compared",
		Fault:   "Any private data are taken for those of RPC-over-RDMA.",
		Clauses: []string{"rfc8797-5.2-1"},
		Edits:   one("ulp/rpcrdma/private.go", `at := bytes.Index(data,`, `at := 0 * bytes.Index(data,`),
	},
	{
		Name:    "private-settings-kept",
		Fault:   "What a peer can receive is what any peer could before.",
		Clauses: []string{"rfc8797-4-1"},
		Edits: []Edit{
			{"ulp/rpcrdma/endpoint.go", "func (e *endpoint) settle(peer []byte) {\n\tp, _ := FindPrivate(peer)\n",
				"func (e *endpoint) settle(peer []byte) {\n\tp, _ := FindPrivate(peer)\n\tp.Receive = max(p.Receive, before)\n\tbefore = p.Receive\n"},
			{"ulp/rpcrdma/endpoint.go", "// IDs of work requests:", "var before int\n\n// IDs of work requests:"},
		},
	},
	{
		Name:    "rpc-threshold-of-the-sender",
		Fault:   "Messages are as long as their sender can make them, whatever the peer can receive.",
		Clauses: []string{"rfc8166-3.3.3-4", "rfc8797-5.1-1", "rfc8166-3.5.3-1", "rfc8166-3.5.3-3"},
		Edits:   one("ulp/rpcrdma/endpoint.go", `min(own.Send, p.Receive), min`, `own.Send, min`),
	},
	{
		Name:    "rpc-invalidates-unasked",
		Fault:   "Replies invalidate STags of peers that have not set R.",
		Clauses: []string{"rfc8797-4.1-2", "rfc8797-5.1-1"},
		Edits:   one("ulp/rpcrdma/endpoint.go", `e.invalidate = own.Invalidate && p.Invalidate`, `e.invalidate = own.Invalidate`),
	},
	{
		Name:    "rpc-memory-open-to-peers",
		Fault:   "Memory that Read chunks go into can be read and written by the peer.",
		Clauses: []string{"rfc8166-8.1-1"},
		Edits:   one("ulp/rpcrdma/endpoint.go", `e.mem.init(e.pd, rnic.LocalWrite|`, `e.mem.init(e.pd, rnic.LocalWrite|rnic.RemoteRead|rnic.RemoteWrite|`),
	},
	{
		Name:    "rpc-few-receives",
		Fault:   "There are two receives, however many credits there are.",
		Clauses: []string{"rfc8166-3.3.1-4", "rfc8166-3.3.1-3"},
		Edits: one("ulp/rpcrdma/endpoint.go", `receives, sends := cfg.Credits+cfg.ReverseCredits+1, sendQueue(&cfg)`,
			`receives, sends := 2, sendQueue(&cfg)`),
	},
}

// rpcResponder breaks servers: RFC 8166 §3.4 to §3.5, and §4.3.
var rpcResponder = []Mutant{
	{
		Name:    "rpc-no-credits",
		Fault:   "Replies grant no credits.",
		Clauses: []string{"rfc8166-3.3.1-2"},
		Edits:   one("ulp/rpcrdma/responder.go", `return uint32(granted)`, `return 0 * uint32(granted)`),
	},
	{
		Name:    "rpc-credits-without-receives",
		Fault:   "Replies grant four times as many credits as there are receives for.",
		Clauses: []string{"rfc8166-3.3.1-3"},
		Edits:   one("ulp/rpcrdma/responder.go", `return uint32(granted)`, `return 4 * uint32(granted)`),
	},
	{
		Name:    "rpc-error-of-our-version",
		Fault:   "RDMA_ERROR has version one, whatever version the request has.",
		Clauses: []string{"rfc8166-4.5-5"},
		Edits:   one("ulp/rpcrdma/responder.go", `Header{XID: bad.XID, Version: bad.Version,`, `Header{XID: bad.XID, Version: Version,`),
	},
	{
		Name:    "rpc-error-without-xid",
		Fault:   "RDMA_ERROR has no XID.",
		Clauses: []string{"rfc8166-4.5-4"},
		Edits:   one("ulp/rpcrdma/responder.go", `Header{XID: bad.XID, Version: bad.Version,`, `Header{Version: bad.Version,`),
	},
	{
		Name:    "rpc-versions-from-two",
		Fault:   "ERR_VERS says that version two alone is supported.",
		Clauses: []string{"rfc8166-4.5.1-1"},
		Edits:   one("ulp/rpcrdma/responder.go", `Low: Version, High: Version}`, `Low: Version + 1, High: Version + 1}`),
	},
	{
		Name:    "rpc-error-as-reply",
		Fault:   "Errors are sent as RDMA_MSG.",
		Clauses: []string{"rfc8166-4.5-6", "rfc8166-4.5-2"},
		Edits:   one("ulp/rpcrdma/responder.go", `Credits: granted, Proc: Error,`, `Credits: granted, Proc: Msg,`),
	},
	{
		Name:    "rpc-xids-not-compared",
		Fault:   "The XIDs of header and RPC message are not compared.",
		Clauses: []string{"rfc8166-4.5.2-1"},
		Edits: one("ulp/rpcrdma/responder.go", `case binary.BigEndian.Uint32(stream) != in.hdr.XID: // RFC 8166 §4.2.1`,
			`case binary.BigEndian.Uint32(stream) != in.hdr.XID && in.hdr.XID == 0: // RFC 8166 §4.2.1`),
	},
	{
		Name:    "rpc-invalidates-another-stag",
		Fault:   "The STag that a reply invalidates is not that of its chunk, but the next one.",
		Clauses: []string{"rfc8797-4.1-1"},
		Edits:   one("ulp/rpcrdma/responder.go", `return c[0].Handle`, `return c[0].Handle + 1`),
	},
	{
		Name:    "rpc-roundup-written",
		Fault:   "Roundup padding is written into Write chunks.",
		Clauses: []string{"rfc8166-3.4.6.2-2", "rfc8166-3.4.6.2-3"},
		Edits: one("ulp/rpcrdma/reply.go", `p, err := in.registered(bulks[i].Data)`,
			`p, err := in.registered(append(bulks[i].Data[:len(bulks[i].Data):len(bulks[i].Data)], make([]byte, -len(bulks[i].Data)&3)...))`),
	},
	{
		Name:    "rpc-chunk-lengths-kept",
		Fault:   "Segments of Write and Reply chunks come back as long as they were given.",
		Clauses: []string{"rfc8166-3.4.6-2", "rfc8166-3.4.6.2-3"},
		Edits: []Edit{
			{"ulp/rpcrdma/reply.go", "\t\ts.Length = 0\n", ""},
			{"ulp/rpcrdma/reply.go", "\t\t\t\ts.Length += uint32(n)\n", ""},
		},
	},
	{
		Name:    "rpc-unused-chunk-as-full",
		Fault:   "A Write chunk without a result comes back as if it were full.",
		Clauses: []string{"rfc8166-4.3.2.2-3"},
		Edits:   one("ulp/rpcrdma/reply.go", `if err := in.fill(chunk); err != nil {`, `if err := in.fits(chunk, 0); err != nil {`),
	},
	{
		Name:    "rpc-write-list-dropped",
		Fault:   "The Write list does not come back.",
		Clauses: []string{"rfc8166-3.4.6-2", "rfc8166-4.3.2.2-3", "rfc8166-4.3.2.3-2"},
		Edits:   one("ulp/rpcrdma/reply.go", `Proc: Msg, Write: h.Write, Reply:`, `Proc: Msg, Reply:`),
	},
	{
		Name:    "rpc-reply-chunk-dropped",
		Fault:   "The Reply chunk does not come back.",
		Clauses: []string{"rfc8166-4.3.3-2", "rfc8166-4.2.4-1", "rfc8166-4.2.4-2"},
		Edits:   one("ulp/rpcrdma/reply.go", `Reply: h.Reply, HasReply: h.HasReply}`, `Reply: h.Reply}`),
	},
	{
		Name:    "rpc-read-list-returned",
		Fault:   "The Read list comes back.",
		Clauses: []string{"rfc8166-4.3.1-1"},
		Edits:   one("ulp/rpcrdma/reply.go", `Proc: Msg, Write: h.Write,`, `Proc: Msg, Read: h.Read, Write: h.Write,`),
	},
	{
		Name:    "rpc-empty-chunk-swallows",
		Fault:   "A result with an empty Write chunk is sent nowhere.",
		Clauses: []string{"rfc8166-4.3.2.3-1"},
		Edits:   one("ulp/rpcrdma/reply.go", `return i < len(in.hdr.Write) && len(in.hdr.Write[i]) > 0`, `return i < len(in.hdr.Write)`),
	},
	{
		Name:    "rpc-write-list-ignored",
		Fault:   "Results are sent inline, though there are Write chunks for them.",
		Clauses: []string{"rfc8166-4.3.2-1", "rfc8166-3.4.4.4-2"},
		Edits:   one("ulp/rpcrdma/reply.go", `return i < len(in.hdr.Write) && len(in.hdr.Write[i]) > 0`, `return i > len(in.hdr.Write)`),
	},
	{
		Name:    "rpc-long-reply-inline",
		Fault:   "Replies up to twice the inline threshold are sent inline.",
		Clauses: []string{"rfc8166-3.5.3-1", "rfc8166-3.5.3-3", "rfc8166-3.3.3-4"},
		Edits:   one("ulp/rpcrdma/reply.go", `if out.Len()+stream <= in.r.e.most {`, `if out.Len()+stream <= 4*in.r.e.most {`),
	},
	{
		Name:    "rpc-reply-of-version-2",
		Fault:   "The version of replies is two.",
		Clauses: []string{"rfc8166-4.2.2-1", "rfc8167-5.2-1"},
		Edits:   one("ulp/rpcrdma/reply.go", `*out = Header{XID: h.XID, Version: Version,`, `*out = Header{XID: h.XID, Version: Version + 1,`),
	},
	{
		Name:    "rpc-reply-xid-off-by-one",
		Fault:   "The XID in the header of replies is one too high.",
		Clauses: []string{"rfc8166-4.2.1-1", "rfc8167-5.2-2"},
		Edits:   one("ulp/rpcrdma/reply.go", `*out = Header{XID: h.XID, Version: Version,`, `*out = Header{XID: h.XID + 1, Version: Version,`),
	},
	{
		Name:    "rpc-reverse-chunks-discarded",
		Fault:   "A reverse call with chunks is silently discarded.",
		Clauses: []string{"rfc8167-5.3-1"},
		Edits: one("ulp/rpcrdma/responder.go", `return in.chunkErrorIn("RFC 8167 §5.3", ErrReverse)`,
			`return &HeaderError{XID: h.XID, Err: ErrReverse}`),
	},
	{
		Name:    "rpc-reply-is-a-call",
		Fault:   "The message type of replies is CALL.",
		Clauses: []string{"rfc8167-5.2-3", "rfc8166-4-1"},
		Edits:   one("ulp/oncrpc/message.go", `e.Uint32(uint32(TypeReply))`, `e.Uint32(uint32(TypeCall))`),
	},
}

// rpcRequester breaks clients: RFC 8166 §3.3, and what they discard.
var rpcRequester = []Mutant{
	{
		Name:    "rpc-two-credits-at-first",
		Fault:   "A client takes two credits for granted on a new connection.",
		Clauses: []string{"rfc8166-3.3.3-1", "rfc8166-3.3.3-2"},
		Edits:   one("ulp/rpcrdma/credits.go", `c.asked, c.granted, c.limit = asked, 1, 1`, `c.asked, c.granted, c.limit = asked, 2, 2`),
	},
	{
		Name:    "rpc-one-call-too-many",
		Fault:   "A client has one call more in flight than it has credits.",
		Clauses: []string{"rfc8166-3.3.1-1"},
		Edits:   one("ulp/rpcrdma/credits.go", `c.granted = max(1, int(min(n, maxCredits)))`, `c.granted = max(1, int(min(n, maxCredits))) + 1`),
	},
	{
		Name:    "rpc-call-xid-off-by-one",
		Fault:   "The XID in the header of calls is one too high.",
		Clauses: []string{"rfc8166-4.2.1-1"},
		Edits:   one("ulp/rpcrdma/chunks_out.go", `*h = Header{XID: r.XID, Version: Version,`, `*h = Header{XID: r.XID + 1, Version: Version,`),
	},
	{
		Name:    "rpc-call-of-version-2",
		Fault:   "The version of calls is two.",
		Clauses: []string{"rfc8166-4.2.2-1"},
		Edits:   one("ulp/rpcrdma/chunks_out.go", `*h = Header{XID: r.XID, Version: Version,`, `*h = Header{XID: r.XID, Version: Version + 1,`),
	},
	{
		Name:    "rpc-bad-reply-is-fatal",
		Fault:   "A reply that is to be discarded ends the connection.",
		Clauses: []string{"rfc8166-4.5-3", "rfc8166-4.6.1-3"},
		Edits: one("ulp/rpcrdma/requester.go", `e.log.Debug("a reply is discarded", "xid", h.XID, "error", err)`,
			`e.fail(errors.Join(errReadList, err))`),
	},
	{
		Name:    "rpc-discarded-message-grants",
		Fault:   "The credits of a message that a client discards are taken for granted.",
		Clauses: []string{"rfc8167-4.1-1", "rfc8166-3.3.3-2"},
		Edits: one("ulp/rpcrdma/requester.go", `e.log.Debug("a reply is discarded", "xid", h.XID, "error", err)`,
			`q.credits.grant(h.Credits)`),
	},
}
