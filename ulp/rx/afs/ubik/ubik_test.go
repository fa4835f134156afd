package ubik_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/internal/recorded"
	"urnic/ulp/rx/afs/ubik"
	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/rpc/rpctest"
)

var start = time.Unix(1700000000, 0)

func config() ubik.Config {
	return ubik.Config{Addrs: []afs.Addr{0x7f070001}, Now: func() time.Time { return start }}
}

func TestSingleServerIsTheSyncSite(t *testing.T) {
	c := ubik.NewClient(rpctest.Serve(ubik.NewVoteMux(config())))
	s, err := c.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.IsSyncSite != 1 || s.Servers != 1 || s.RecoveryState != ubik.RecoveryComplete || s.SyncHost != 0x7f070001 || len(s.Addrs) != 1 {
		t.Errorf("%+v", s)
	}
	if v := (ubik.Version{Epoch: 1700000000, Counter: 1}); s.LocalVersion != v || s.SyncVersion != v {
		t.Errorf("versions %v and %v; want %v", s.LocalVersion, s.SyncVersion, v)
	}
	if peers, err := c.Peers(t.Context()); err != nil || len(peers) != 0 {
		t.Errorf("%v, %v", peers, err)
	}
}

// A server of a time before clones knows only the oldest operation.
func TestStateIsAskedInTheOldWayIfNeedBe(t *testing.T) {
	m := rpc.NewMux("ubik")
	rpc.NewOp[rpc.Void, ubik.OldState](10001, "DebugOld").Handle(m, func(context.Context, *rpc.Void) (ubik.OldState, error) {
		return ubik.OldState{State: ubik.State{Servers: 3}}, nil
	})
	if s, err := ubik.NewClient(rpctest.Serve(m)).State(t.Context()); err != nil || s.Servers != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestDatabaseTellsItsVersion(t *testing.T) {
	c := &rpc.Client{Begin: rpctest.Serve(ubik.NewDiskMux(config())), Codes: ubik.Codes}
	v, err := rpc.NewOp[rpc.Void, ubik.Version](20004, "GetVersion").Call(t.Context(), c, &rpc.Void{})
	if err != nil || v.Counter != 1 {
		t.Errorf("%v, %v", v, err)
	}
	_, err = rpc.NewOp[rpc.Void, rpc.Void](20001, "Begin").Call(t.Context(), c, &rpc.Void{})
	if !errors.Is(err, rpc.ErrOpcode) {
		t.Errorf("%v", err)
	}
}

// What udebug and a real server have sent.
func TestRecordedCallsDecode(t *testing.T) {
	seen := recorded.Calls{Port: afs.PortPT, Service: afs.ServiceUbikVote}.Check(t, ubik.Operations())
	recorded.Want(t, seen, "XDebug")
}

func TestMessagesSurviveTheirEncoding(t *testing.T) {
	rpctest.RoundTrip(t, ubik.Operations(), func(structure any) {
		switch s := structure.(type) {
		case *ubik.OldState:
			s.Addrs = nil
		case *ubik.OldPeer:
			s.Others = nil
		}
	})
}

func FuzzMessages(f *testing.F) { rpctest.Fuzz(f, ubik.Operations()) }
