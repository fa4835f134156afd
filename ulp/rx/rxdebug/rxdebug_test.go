package rxdebug

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ulp/rx/wire"
)

var update = flag.Bool("update", false, "write what reports look like to testdata")

var everything = Want{Version: true, Basic: true, Stats: true, Conns: true, AllConns: true, Peers: true}

// All that OpenAFS's volserver has told its own rxdebug, while it sent a volume.
func TestReportOfOpenAFS(t *testing.T) {
	all := recorded(t, "rxdebug-volserver-active")
	maps.Copy(all, recorded(t, "rx-version"))
	r, err := askRecorded(t, all).Ask(t.Context(), everything)
	if err != nil {
		t.Fatal(err)
	}
	if *r.Version != "OpenAFS 1.8.9-1+deb12u1-debian 2024-12-25" || r.Protocol != "S" || r.Missing != nil {
		t.Errorf("%q, %q, %q", *r.Version, r.Protocol, r.Missing)
	}
	if b := r.Basic; b.FreePackets != 325 || *b.Packets != 975 || b.CallsExecuted != 150 || b.UsedFDs != 14 || *b.IdleThreads != 17 || *b.CallsWaiting != 0 ||
		*b.CallsWaited != 0 || b.WaitingForPackets {
		t.Errorf("%+v", b)
	}
	if s := r.Stats; s.Packets.Read["data"] != 3285 || s.Packets.Read["ack"] != 2266 || s.Packets.Read["version"] != 0 || s.Packets.Read["response"] != 36 ||
		s.Packets.Read["debug"] != 69 || s.Packets.Sent["challenge"] != 36 || s.Data.DataRead != 3285 || s.RTT.Samples != 2945 || s.RTT.Max != 0.007863 || s.RTT.Min != 0.000017 ||
		s.Objects != (Objects{ServerConns: 30, Peers: 28, Calls: 49, FreeCalls: 48}) {
		t.Errorf("%+v", s)
	}
	if len(r.Conns) != 30 || len(r.Peers) != 28 {
		t.Errorf("%d connections and %d peers", len(r.Conns), len(r.Peers))
	}
	var busy []Conn
	for _, c := range r.Conns {
		if c.Calls[0].State == "active" {
			busy = append(busy, c)
		}
	}
	if len(busy) != 1 || busy[0].Side != "server" || busy[0].Security.Class != "rxkad" || busy[0].Security.Level != "clear" ||
		!reflect.DeepEqual(busy[0].Security.Flags, []string{"authenticated", "packet checksums"}) || busy[0].Calls[0].Mode != "sending" ||
		!reflect.DeepEqual(busy[0].Calls[0].Queues, []string{"output"}) {
		t.Errorf("%+v", busy)
	}
	golden(t, "volserver.txt", r)
}

// golden compares what a report looks like.
func golden(t *testing.T, name string, r *Report) {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("it looks otherwise than %s:\n%s", file, b.String())
	}
}

// Without all connections, those are asked for that do something.
func TestOnlyConnectionsThatDoSomething(t *testing.T) {
	c := askRecorded(t, recorded(t, "rxdebug-volserver-active"))
	r, err := c.Ask(t.Context(), Want{Conns: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Conns) != 1 || r.Peers != nil || r.Stats != nil || r.Version != nil {
		t.Errorf("%d connections: %+v", len(r.Conns), r)
	}
	for _, conn := range r.Conns {
		active := false
		for _, call := range conn.Calls {
			active = active || call.State != "none"
		}
		if !active {
			t.Errorf("%+v does nothing", conn)
		}
	}
}

// A request that is not answered is sent again after 0.5, 1, 2 and 4 s, and given up after 10.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		c, _ := ask(t, Config{}, func(wire.Header, []byte) [][]byte {
			at = append(at, time.Since(begin))
			return nil
		})
		_, err := c.Version(t.Context())
		synctest.Wait() // for what at has last
		if !errors.Is(err, ErrSilent) || time.Since(begin) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		if want := []time.Duration{0, ms(500), ms(1500), ms(3500), ms(7500)}; !reflect.DeepEqual(at, want) {
			t.Errorf("requests at %v; want %v", at, want)
		}
	})
}

func TestAnswerToARepetition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, n := time.Now(), 0
		c, _ := ask(t, Config{}, func(h wire.Header, _ []byte) [][]byte {
			if n++; n < 3 {
				return nil
			}
			return [][]byte{reply(h, wire.AppendVersion(nil, "late"))}
		})
		v, err := c.Version(t.Context())
		if v != "late" || err != nil || time.Since(begin) != 1500*time.Millisecond {
			t.Errorf("%q, %v after %v", v, err, time.Since(begin))
		}
	})
}

func TestContextEndsARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c, _ := ask(t, Config{}, func(wire.Header, []byte) [][]byte {
			cancel()
			return nil
		})
		begin := time.Now()
		if _, err := c.Basic(ctx); !errors.Is(err, context.Canceled) || time.Since(begin) > 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if _, err := c.Basic(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// What is not the answer to this request is not taken for it.
func TestStrayAnswers(t *testing.T) {
	c, _ := ask(t, Config{}, func(h wire.Header, _ []byte) [][]byte {
		lie := wire.AppendVersion(nil, "lie")
		stray := func(change func(*wire.Header)) []byte {
			h := h
			change(&h)
			return reply(h, lie)
		}
		echo := h // a request that came back
		return [][]byte{
			stray(func(h *wire.Header) { h.Epoch++ }),
			stray(func(h *wire.Header) { h.CID += 4 }),
			stray(func(h *wire.Header) { h.CID++ }),
			stray(func(h *wire.Header) { h.Call-- }),
			stray(func(h *wire.Header) { h.Type = wire.TypeDebug }),
			stray(func(h *wire.Header) { h.Type = wire.TypeData }),
			append(echo.Append(nil), lie...),
			reply(h, lie)[:wire.HeaderLen-1],
			{},
			reply(h, wire.AppendVersion(nil, "truth")),
		}
	})
	if v, err := c.Version(t.Context()); v != "truth" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
}

// Linux answers debug packets by an abort, which the report survives up to there.
func TestAbortForDebugPackets(t *testing.T) {
	c, _ := ask(t, Config{}, func(h wire.Header, _ []byte) [][]byte {
		if h.Type == wire.TypeVersion {
			return [][]byte{reply(h, wire.AppendVersion(nil, "linux-6.1.0 AF_RXRPC"))}
		}
		h.Type = wire.TypeAbort
		return [][]byte{reply(h, wire.AppendAbort(nil, int32(wire.ProtocolError)))}
	})
	r, err := c.Ask(t.Context(), everything)
	var abort *AbortError
	if !errors.As(err, &abort) || abort.AbortCode() != -5 || r == nil || *r.Version != "linux-6.1.0 AF_RXRPC" || r.Basic != nil {
		t.Errorf("%v, %+v", err, r)
	}
}

// endless answers as a server whose lists have so many entries, or no end if it is negative.
func endless(letter byte, entries int32) func(h wire.Header, body []byte) [][]byte {
	return func(h wire.Header, body []byte) [][]byte {
		q, err := wire.ParseDebugRequest(body)
		if err != nil {
			return nil
		}
		end := entries >= 0 && q.Index >= entries
		switch q.Type {
		case wire.DebugGetBasic:
			d := wire.DebugBasic{Version: letter, Packets: 7}
			return [][]byte{reply(h, d.Append(nil))}
		case wire.DebugGetConn, wire.DebugGetAllConns:
			d := wire.DebugConn{CID: uint32(q.Index) << 2, Security: uint8(q.Type)}
			if end {
				d.CID = wire.DebugEnd
			}
			return [][]byte{reply(h, d.Append(nil))}
		case wire.DebugGetPeer:
			d := wire.DebugPeer{Host: uint32(q.Index)}
			if end {
				d.Host = wire.DebugEnd
			}
			return [][]byte{reply(h, d.Append(nil))}
		default:
			return [][]byte{reply(h, wire.AppendDebugBadType(nil))}
		}
	}
}

func TestListsWithoutEnd(t *testing.T) {
	c, s := ask(t, Config{MaxEntries: 10}, endless('S', -1))
	r, err := c.Ask(t.Context(), Want{Conns: true})
	if !errors.Is(err, ErrUnended) || len(r.Conns) != 10 || s.asked != 12 {
		t.Errorf("%v with %d connections for %d requests", err, len(r.Conns), s.asked)
	}
	peers, err := c.Peers(t.Context())
	if !errors.Is(err, ErrUnended) || len(peers) != 10 {
		t.Errorf("%v with %d peers", err, len(peers))
	}
}

func TestListsOfAsManyEntriesAsThereMayBe(t *testing.T) {
	c, _ := ask(t, Config{MaxEntries: 10}, endless('S', 10))
	r, err := c.Ask(t.Context(), Want{Conns: true, Peers: true})
	if err != nil || len(r.Conns) != 10 || len(r.Peers) != 10 {
		t.Errorf("%v with %+v", err, r)
	}
}

// What a server knows follows from the letter of its version.
func TestVersionsOfTheDebugProtocol(t *testing.T) {
	for letter, want := range map[byte]struct {
		missing string
		index   uint8 // the type of request for connections
		stats   bool
	}{
		'L': {"stats connections peers all connections", 0, false},
		'M': {"stats peers", 3, true},
		'P': {"stats peers", 3, true},
		'Q': {"stats", 3, true},
		'S': {"stats", 3, true},
		'T': {"stats", 3, true},
	} {
		var statsAsked bool
		answer := endless(letter, 1)
		c, _ := ask(t, Config{}, func(h wire.Header, body []byte) [][]byte {
			q, _ := wire.ParseDebugRequest(body)
			statsAsked = statsAsked || q.Type == wire.DebugGetStats
			if letter == 'L' && (q.Type == wire.DebugGetConn || q.Type == wire.DebugGetAllConns) {
				return [][]byte{reply(h, wire.AppendDebugBadType(nil))}
			}
			return answer(h, body)
		})
		r, err := c.Ask(t.Context(), Want{Basic: true, Stats: true, Conns: true, AllConns: true, Peers: true})
		if err != nil || strings.Join(r.Missing, " ") != want.missing || r.Protocol != string(rune(letter)) || statsAsked != want.stats {
			t.Errorf("%c: %v, %q, asked for statistics: %v; want %+v", letter, err, r.Missing, statsAsked, want)
			continue
		}
		if letter != 'L' && (len(r.Conns) != 1 || r.Conns[0].Index != want.index) {
			t.Errorf("%c: %+v", letter, r.Conns)
		}
		if (r.Basic.Packets != nil) != (letter >= 'S') || (r.Basic.CallsWaited != nil) != (letter >= 'R') || (r.Basic.IdleThreads != nil) != (letter >= 'O') {
			t.Errorf("%c: %+v", letter, r.Basic)
		}
	}
}

// Before version P, statistics counted packets of 11 types.
func TestStatisticsOfElevenTypes(t *testing.T) {
	full := wire.DebugStats{PacketRequests: 1, Selects: 2, DataRead: 3, SpuriousRead: 4, AcksSent: 5, RTTSamples: 6, Busies: 7}
	for i := range 11 {
		full.PacketsRead[i], full.PacketsSent[i] = int32(100+i), int32(200+i)
	}
	b := full.Append(nil)
	old := append([]byte(nil), b[:(11+11)*4]...)
	old = append(old, b[(11+13)*4:(11+13+4+11)*4]...)
	old = append(old, b[(11+13+4+13)*4:]...)
	c, _ := ask(t, Config{}, func(h wire.Header, body []byte) [][]byte {
		if q, _ := wire.ParseDebugRequest(body); q.Type == wire.DebugGetStats {
			return [][]byte{reply(h, old)}
		}
		d := wire.DebugBasic{Version: 'O'}
		return [][]byte{reply(h, d.Append(nil))}
	})
	if got, err := c.Stats(t.Context()); err != nil || got != full {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnswersThatAreTooShort(t *testing.T) {
	version := byte('S')
	c, _ := ask(t, Config{}, func(h wire.Header, body []byte) [][]byte {
		if q, _ := wire.ParseDebugRequest(body); q.Type == wire.DebugGetBasic {
			d := wire.DebugBasic{CallsExecuted: 9, Version: version}
			return [][]byte{reply(h, d.Append(nil)[:20])} // of an old server
		}
		return [][]byte{reply(h, []byte{1, 2, 3})}
	})
	var short *wire.ShortError
	if d, err := c.Basic(t.Context()); err != nil || d.CallsExecuted != 9 {
		t.Errorf("%+v, %v", d, err)
	}
	_, err := c.Stats(t.Context())
	if !errors.As(err, &short) {
		t.Error(err)
	}
	_, err = c.Conns(t.Context(), true)
	if !errors.As(err, &short) {
		t.Error(err)
	}
	_, err = c.Peers(t.Context())
	if !errors.As(err, &short) {
		t.Error(err)
	}
	version = 'A'
	var old *VersionError
	if _, err := c.Basic(t.Context()); !errors.As(err, &old) || old.Version != 'A' {
		t.Error(err)
	}
}

// JSON has the same as the report.
func TestJSONOfAReport(t *testing.T) {
	r, err := askRecorded(t, recorded(t, "rxdebug-volserver-active")).Ask(t.Context(), Want{Stats: true, Conns: true, AllConns: true, Peers: true})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	back := Report{asked: r.asked}
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(&back, r) {
		t.Errorf("%v: %s", err, b)
	}
}
