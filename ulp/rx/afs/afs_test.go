package afs_test

import (
	"context"
	"testing"
	"time"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/secure"
)

func TestUUIDIsEncodedAsNumbersAndCharacters(t *testing.T) {
	const text = "00112233-4455-6677-8899-aabbccddeeff"
	u, err := afs.ParseUUID(text)
	if err != nil || u.String() != text {
		t.Fatalf("%v, %v", u, err)
	}
	p, err := rpc.Append(nil, &u)
	if err != nil || len(p) != afs.UUIDLen {
		t.Fatalf("%x, %v", p, err)
	}
	want := []byte{0, 0x11, 0x22, 0x33, 0, 0, 0x44, 0x55, 0, 0, 0x66, 0x77, 0xff, 0xff, 0xff, 0x88, 0xff, 0xff, 0xff, 0x99}
	if string(p[:20]) != string(want) {
		t.Errorf("%x; want %x", p[:20], want)
	}
	var got afs.UUID
	if err := rpc.Decode(p, &got); err != nil || got != u {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "0", text + "00", "z" + text[1:]} {
		if _, err := afs.ParseUUID(bad); err == nil {
			t.Errorf("%q is a UUID", bad)
		}
	}
}

func TestZeroIsNoTime(t *testing.T) {
	if afs.TimeOf(time.Time{}) != 0 || !afs.Time(0).Time().IsZero() || afs.Time(0).String() != "never" {
		t.Error("never")
	}
	if got := afs.TimeOf(time.Unix(1700000000, 5)); got != 1700000000 || got.String() != "2023-11-14 22:13:20" {
		t.Error(got)
	}
}

func TestNobodyIsAdministratorUnlessSaid(t *testing.T) {
	alice := rpc.WithCaller(context.Background(), secure.Caller{Name: "alice", Verified: true})
	var none afs.Admin
	only := afs.Admin(func(c secure.Caller) bool { return c.Verified && c.Name == "alice" })
	if none.Allows(alice) || !only.Allows(alice) || only.Allows(context.Background()) || !afs.Admin(afs.Anybody).Allows(context.Background()) {
		t.Error("wrong")
	}
}

func FuzzUUID(f *testing.F) {
	f.Add(make([]byte, 44))
	f.Fuzz(func(t *testing.T, p []byte) {
		var u, again afs.UUID
		if rpc.Decode(p, &u) != nil {
			return
		}
		q, err := rpc.Append(nil, &u)
		if err != nil || rpc.Decode(q, &again) != nil || again != u {
			t.Fatalf("%v became %v: %v", u, again, err)
		}
	})
}
