package cases

import (
	"errors"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/rpc"
)

// A lent is a case about what clients lend for their calls of READ and WRITE: check is told
// each of their calls, and says whether it is one that the case is about.
type lent struct {
	clause, name, title string
	also                []string
	check               func(t *conformance.T, f *rpc.Filing) bool
}

// rpcClientChunks holds what a client of files lends. It needs one that reads and writes.
func rpcClientChunks() []conformance.Case {
	var cases []conformance.Case
	for _, l := range append(lentForWrites(), lentForResults()...) {
		cases = append(cases, conformance.Case{
			Clause: l.clause, Name: l.name, Also: l.also, Title: l.title, Needs: conformance.NeedExport,
			Run: func(t *conformance.T) {
				found := 0
				watchFiling(t, func(s *rpc.Server, f *rpc.Filing) bool {
					if l.check(t, f) {
						found++
					}
					s.File(f)
					return found < 3
				})
				if found == 0 {
					t.Inconclusive("the client has made no such call")
				}
			},
		})
	}
	return ofClient(append(cases, lentMemory()...))
}

// watchFiling serves a client's calls as long as there are some, and serve wants more.
func watchFiling(t *conformance.T, serve func(s *rpc.Server, f *rpc.Filing) bool) {
	const most = 1000
	s := rpc.Serve(t, modest())
	for range most {
		f, err := s.Filing()
		if err != nil || !serve(s, f) {
			return
		}
	}
}

// ofWrite makes a check of WRITEs that are reduced.
func ofWrite(check func(t *conformance.T, f *rpc.Filing, w rpc.Writing)) func(t *conformance.T, f *rpc.Filing) bool {
	return func(t *conformance.T, f *rpc.Filing) bool {
		if !f.Is(rpc.Write) || f.Chunks == 0 {
			return false
		}
		w, err := f.Writing()
		t.Check(err == nil, "the arguments of WRITE up to the count of its data", "%v", err)
		check(t, f, w)
		return true
	}
}

func lentForWrites() []lent {
	return []lent{
		{
			clause: "rfc8166-3.4.5-1", name: "write-of-a-client",
			title: "The position of a WRITE's Read chunk is where its data stand in the unreduced Payload stream",
			check: ofWrite(func(t *conformance.T, f *rpc.Filing, w rpc.Writing) {
				at := len(f.Stream) - len(w.Rest)
				t.Check(int(f.Position) == at, fmt.Sprintf("position %d", at), "%d", f.Position)
			}),
		},
		{
			clause: "rfc8166-3.4.5-2", name: "write-of-a-client",
			title: "The position of a WRITE's Read chunk is a multiple of four",
			check: ofWrite(func(t *conformance.T, f *rpc.Filing, _ rpc.Writing) {
				t.Check(f.Position%4 == 0, "a multiple of four", "%d", f.Position)
			}),
		},
		{
			clause: "rfc8166-3.4.5.2-1", name: "write-of-a-client",
			title: "The Read chunk of a WRITE has no roundup padding",
			check: ofWrite(func(t *conformance.T, f *rpc.Filing, w rpc.Writing) {
				t.Check(f.Moved <= int(w.Length), fmt.Sprintf("at most %d octets", w.Length), "%d", f.Moved)
			}),
		},
		{
			clause: "rfc8166-3.4.5.2-3", name: "write-of-a-client", also: []string{"rfc8166-3.4.5.2-2"},
			title: "The Read chunk of a WRITE is as long as the data, or as data and roundup together",
			check: ofWrite(func(t *conformance.T, f *rpc.Filing, w rpc.Writing) {
				n := int(w.Length)
				t.Check(f.Moved == n || f.Moved == n+rpc.Roundup(n), fmt.Sprintf("%d octets, or %d more", n, rpc.Roundup(n)), "%d", f.Moved)
			}),
		},
		{
			clause: "rfc8166-3.4.4.1-1", name: "write-of-a-client",
			title: "The count of a WRITE's data stays in the Payload stream",
			check: ofWrite(func(t *conformance.T, _ *rpc.Filing, w rpc.Writing) {
				t.Check(w.Length == w.Count, fmt.Sprintf("the count %d in front of the data", w.Count), "%d", w.Length)
			}),
		},
		{
			clause: "rfc8166-3.4.4.1-2", name: "write-of-a-client",
			title: "All octets of a WRITE's data are in its Read chunk",
			check: ofWrite(func(t *conformance.T, f *rpc.Filing, w rpc.Writing) {
				t.Check(f.Moved >= int(w.Length), fmt.Sprintf("%d octets", w.Length), "%d", f.Moved)
			}),
		},
		{
			clause: "rfc8166-3.4.4.4-1", name: "write-of-a-client",
			title: "A WRITE has one Read chunk, beside that of a Long Call: its data",
			check: ofWrite(func(t *conformance.T, f *rpc.Filing, _ rpc.Writing) {
				t.Check(f.Chunks == 1, "one Read chunk", "%d", f.Chunks)
			}),
		},
		{
			clause: "rfc8166-3.4.4.4-2", name: "write-of-a-client",
			title: "Nothing is left behind the count of a WRITE's data, no roundup either",
			check: ofWrite(func(t *conformance.T, _ *rpc.Filing, w rpc.Writing) {
				t.Check(len(w.Rest) == 0, "nothing behind the count", "%d octets", len(w.Rest))
			}),
		},
		{
			clause: "rfc8166-6.1-1", name: "calls", also: []string{"rfc8166-3.4.2-1"},
			title: "Of the calls of NFS version 3, only WRITE and SYMLINK are reduced",
			check: func(t *conformance.T, f *rpc.Filing) bool {
				const symlink = 10
				t.Check(f.Chunks == 0 || f.Is(rpc.Write) || f.Is(symlink), "no Read chunk but that of a Long Call", "%s", f.Incoming)
				return f.Chunks > 0
			},
		},
		{
			clause: "rfc8166-3.5.3-2", name: "long-call-of-a-client", also: []string{"rfc8166-4.2.4-2"},
			title: "The segments of position zero of a Long Call are a whole call",
			check: ofLongCall(func(t *conformance.T, f *rpc.Filing) {
				t.Check(len(f.Stream) > 0 && f.Reads[0].Position == 0, "a call in segments of position zero", "%s", f.Header)
			}),
		},
		{
			clause: "rfc8166-3.5.3-4", name: "long-call-of-a-client",
			title: "The Payload stream in a Position Zero chunk has its roundup: it is a multiple of four octets",
			check: ofLongCall(func(t *conformance.T, f *rpc.Filing) {
				t.Check(len(f.Stream)%4 == 0, "a multiple of four octets", "%d", len(f.Stream))
			}),
		},
		{
			clause: "rfc8166-4.2.4-1", name: "long-call-of-a-client",
			title: "A Long Call has a Read list",
			check: ofLongCall(func(t *conformance.T, f *rpc.Filing) {
				t.Check(len(f.Reads) > 0, "a Read list", "%s", f.Header)
			}),
		},
		{
			clause: "rfc8166-4.2.1-1", name: "long-call-of-a-client",
			title: "The XID of a Long Call's header is that of the RPC message in the Read chunk",
			check: ofLongCall(func(t *conformance.T, f *rpc.Filing) {
				t.Check(f.Call.XID == f.XID, "the header's XID in the RPC message", "0x%08x, and 0x%08x in the header", f.Call.XID, f.XID)
			}),
		},
	}
}

func ofLongCall(check func(t *conformance.T, f *rpc.Filing)) func(t *conformance.T, f *rpc.Filing) bool {
	return func(t *conformance.T, f *rpc.Filing) bool {
		if f.Proc != rpc.NoMsg {
			return false
		}
		check(t, f)
		return true
	}
}

// ofRead makes a check of READs with a Write list.
func ofRead(check func(t *conformance.T, f *rpc.Filing, count int)) func(t *conformance.T, f *rpc.Filing) bool {
	return func(t *conformance.T, f *rpc.Filing) bool {
		if !f.Is(rpc.Read) || len(f.Writes) == 0 || len(f.Writes[0]) == 0 {
			return false
		}
		count, err := f.Reading()
		t.Check(err == nil, "the arguments of READ", "%v", err)
		check(t, f, int(count))
		return true
	}
}

func lentForResults() []lent {
	return []lent{
		{
			clause: "rfc8166-3.4.6-1", name: "read-of-a-client", also: []string{"rfc8166-4.3.2.2-2"},
			title: "The Write chunk of a READ has room for as many octets as are wanted",
			check: ofRead(func(t *conformance.T, f *rpc.Filing, count int) {
				t.Check(f.Writes[0].Len() >= count, fmt.Sprintf("%d octets at least", count), "%d", f.Writes[0].Len())
			}),
		},
		{
			clause: "rfc8166-3.4.6.2-1", name: "read-of-a-client",
			title: "The Write chunk of a READ has no room for roundup",
			check: ofRead(func(t *conformance.T, f *rpc.Filing, count int) {
				t.Check(f.Writes[0].Len() <= count, fmt.Sprintf("%d octets at most", count), "%d", f.Writes[0].Len())
			}),
		},
		{
			clause: "rfc8166-4.3.3-1", name: "read-of-a-client",
			title: "A READ of more than fits into a Send, without a Write list, has a Reply chunk",
			check: func(t *conformance.T, f *rpc.Filing) bool {
				if !f.Is(rpc.Read) || len(f.Writes) > 0 {
					return false
				}
				count, err := f.Reading()
				t.Check(err == nil, "the arguments of READ", "%v", err)
				if count <= rpc.DefaultThreshold {
					return false
				}
				t.Check(f.Reply.Len() > int(count), fmt.Sprintf("a Reply chunk of more than %d octets", count), "%s", f.Header)
				return true
			},
		},
	}
}

// lentMemory holds that what a client lends can be used for what it is lent for, and
// for as long as that (RFC 8166 §8.1).
func lentMemory() []conformance.Case {
	awaitTerminate := func(t *conformance.T, s *rpc.Server) {
		for {
			_, err := s.Next(t.Timeout())
			if err == nil {
				continue // a call that was on its way
			}
			if _, ok := errors.AsType[*rpc.TerminateError](err); !ok {
				t.Fail("a Terminate", "%v", err)
			}
			return
		}
	}
	isRead := ofRead(func(*conformance.T, *rpc.Filing, int) {})
	isWrite := ofWrite(func(*conformance.T, *rpc.Filing, rpc.Writing) {})
	wrongly := func(name, title string, is func(*conformance.T, *rpc.Filing) bool, do func(s *rpc.Server, f *rpc.Filing)) conformance.Case {
		return conformance.Case{
			Clause: "rfc8166-8.1-1", Name: name, Title: title, Needs: conformance.NeedExport,
			Run: func(t *conformance.T) {
				found := false
				watchFiling(t, func(s *rpc.Server, f *rpc.Filing) bool {
					if found = is(t, f); found {
						do(s, f)
						awaitTerminate(t, s)
						return false
					}
					s.File(f)
					return true
				})
				if !found {
					t.Inconclusive("the client has made no such call")
				}
			},
		}
	}
	return []conformance.Case{
		wrongly("beyond-a-clients-write-chunk", "An RDMA Write behind the end of a Write chunk is refused, Terminate", isRead,
			func(s *rpc.Server, f *rpc.Filing) {
				last := f.Writes[0][len(f.Writes[0])-1]
				last.Offset += uint64(last.Length)
				s.Push(last, make([]byte, 4), "behind the end of the Write chunk")
			}),
		wrongly("write-to-a-clients-read-chunk", "An RDMA Write into a Read chunk is refused, Terminate", isWrite,
			func(s *rpc.Server, f *rpc.Filing) {
				s.Push(f.Reads[0].Segment, make([]byte, 4), "into a Read chunk")
			}),
		wrongly("read-of-a-clients-write-chunk", "An RDMA Read of a Write chunk is refused, Terminate", isRead,
			func(s *rpc.Server, f *rpc.Filing) {
				g := f.Writes[0][0]
				s.Stream.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 4, g.Handle, g.Offset))
			}),
		{
			Clause: "rfc8166-8.1-1", Name: "a-clients-earlier-write-chunk", Needs: conformance.NeedExport,
			Title: "An RDMA Write into the Write chunk of a READ that is over, as two others were made since, is refused, Terminate",
			Run: func(t *conformance.T) {
				var reads []rpc.Segment
				watchFiling(t, func(s *rpc.Server, f *rpc.Filing) bool {
					if isRead(t, f) {
						reads = append(reads, f.Writes[0][0])
					}
					if n := len(reads); n >= 3 && reads[n-3].Handle != reads[n-1].Handle {
						s.Push(reads[n-3], make([]byte, 4), "into the Write chunk of a call that is over")
						awaitTerminate(t, s)
						return false
					}
					s.File(f)
					return true
				})
				if len(reads) < 3 {
					t.Inconclusive("the client has made too few calls")
				}
			},
		},
	}
}
