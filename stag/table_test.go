package stag

import (
	"errors"
	"math"
	"strings"
	"testing"

	"urnic/pd"
)

// fixture is a table with two domains.
type fixture struct {
	*testing.T
	m    *pd.Manager
	a, b *pd.Domain
	Table
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, m: pd.NewManager(pd.Limits{}, pd.Limits{})}
	for _, d := range []**pd.Domain{&f.a, &f.b} {
		var err error
		if *d, err = f.m.NewDomain(); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// register registers 4096 bytes at offset 0x10000 in domain a.
func (f *fixture) register(access Access, stream Stream) (*Entry, []byte) {
	f.Helper()
	mem := make([]byte, 4096)
	e, err := f.Register(f.a, Memory{Mem: mem, Base: 0x10000, Access: access, Stream: stream})
	if err != nil {
		f.Fatal(err)
	}
	return e, mem
}

// wantAccess checks what Acquire and Check say; want 0 is success.
func (f *fixture) wantAccess(s STag, by Scope, need Access, to, n uint64, want Violation) {
	f.Helper()
	pin, err := f.Acquire(s, by, need, to, n)
	if err == nil {
		if uint64(len(pin.Bytes())) != n {
			f.Errorf("%d octets opened; want %d", len(pin.Bytes()), n)
		}
		pin.Release()
	}
	for _, err := range []error{err, f.Check(s, by, need, to, n)} {
		var e *AccessError
		switch {
		case want == 0 && err != nil:
			f.Errorf("%v at 0x%x+%d for %v: %v", s, to, n, need, err)
		case want != 0 && (!errors.As(err, &e) || e.Violation != want):
			f.Errorf("%v at 0x%x+%d for %v: %v; want %v", s, to, n, need, err, want)
		case want != 0 && !strings.Contains(e.Error(), s.String()):
			f.Errorf("%q does not name the STag", e)
		}
	}
}

func wantRule(t *testing.T, err error, rule string) {
	t.Helper()
	var e *RegisterError
	if !errors.As(err, &e) || e.Rule != rule {
		t.Errorf("got %v; want a refusal for %q", err, rule)
	}
}

func TestAccessIsCheckedToTheOctet(t *testing.T) {
	f := newFixture(t)
	e, _ := f.register(LocalWrite|RemoteWrite, 0)
	by := Scope{Domain: f.a}
	for _, tt := range []struct {
		to, n uint64
		want  Violation
	}{
		{0x10000, 4096, 0},
		{0x10000, 1, 0},
		{0x10FFF, 1, 0},
		{0x11000, 0, 0},
		{0x0FFFF, 1, OutOfBounds},
		{0x0FFFF, 2, OutOfBounds},
		{0x10000, 4097, OutOfBounds},
		{0x10FFF, 2, OutOfBounds},
		{0x11000, 1, OutOfBounds},
		{0x11001, 0, OutOfBounds},
		{0, 0x10001, OutOfBounds},
		{math.MaxUint64, 2, OutOfBounds}, // the offset's range comes before the wrap
		{0x10010, math.MaxUint64, Wrap},
		{0x10010, math.MaxUint64 - 0x10010, OutOfBounds},
	} {
		f.wantAccess(e.STag(), by, RemoteWrite, tt.to, tt.n, tt.want)
	}
}

func TestWrapAtTheTopOfTheAddressSpace(t *testing.T) {
	f := newFixture(t)
	mem := make([]byte, 16)
	if _, err := f.Register(f.a, Memory{Mem: mem, Base: math.MaxUint64 - 14}); err == nil {
		t.Error("a region whose offsets wrap was registered")
	}
	e, err := f.Register(f.a, Memory{Mem: mem, Base: math.MaxUint64 - 16})
	if err != nil {
		t.Fatal(err)
	}
	f.wantAccess(e.STag(), Scope{Domain: f.a}, 0, math.MaxUint64-16, 16, 0)
	f.wantAccess(e.STag(), Scope{Domain: f.a}, 0, math.MaxUint64-8, 8, 0)
	f.wantAccess(e.STag(), Scope{Domain: f.a}, 0, math.MaxUint64-8, 9, Wrap)
}

func TestPinOpensTheRegisteredMemory(t *testing.T) {
	f := newFixture(t)
	e, mem := f.register(LocalWrite|RemoteWrite, 0)
	pin, err := f.Acquire(e.STag(), Scope{Domain: f.a}, RemoteWrite, 0x10010, 3)
	if err != nil {
		t.Fatal(err)
	}
	copy(pin.Bytes(), "abc")
	if cap(pin.Bytes()) != 3 {
		t.Errorf("the pin's slice can grow to %d octets", cap(pin.Bytes()))
	}
	pin.Release()
	if string(mem[15:20]) != "\x00abc\x00" {
		t.Errorf("memory holds %q", mem[15:20])
	}
	if s := e.Stats(); s.Accesses != 1 || s.OctetsIn != 3 || s.OctetsOut != 0 {
		t.Errorf("counters %+v", s)
	}
}

func TestStreamOfAnotherDomainHasNoAccess(t *testing.T) {
	f := newFixture(t)
	e, _ := f.register(LocalWrite|RemoteWrite, 0)
	f.wantAccess(e.STag(), Scope{f.b, 1}, RemoteWrite, 0x10000, 1, NotAssociated)
	f.wantAccess(e.STag(), Scope{nil, 1}, RemoteWrite, 0x10000, 1, NotAssociated)
	f.wantAccess(e.STag(), Scope{f.a, 1}, RemoteWrite, 0x10000, 1, 0)
	f.wantAccess(e.STag(), Scope{f.a, 2}, RemoteWrite, 0x10000, 1, 0)
}

func TestSTagOfOneStreamIsClosedToOthers(t *testing.T) {
	f := newFixture(t)
	e, _ := f.register(LocalWrite|RemoteWrite, 7)
	f.wantAccess(e.STag(), Scope{f.a, 7}, RemoteWrite, 0x10000, 1, 0)
	f.wantAccess(e.STag(), Scope{f.a, 8}, RemoteWrite, 0x10000, 1, NotAssociated)
	f.wantAccess(e.STag(), Scope{f.a, 0}, RemoteWrite, 0x10000, 1, NotAssociated)
	f.wantAccess(e.STag(), Scope{f.b, 7}, RemoteWrite, 0x10000, 1, NotAssociated)
}

func TestRightsAreCheckedOneByOne(t *testing.T) {
	f := newFixture(t)
	for _, granted := range []Access{0, LocalWrite, RemoteRead, LocalWrite | RemoteWrite, LocalWrite | RemoteAtomic, LocalWrite | RemoteRead | RemoteWrite | RemoteAtomic} {
		e, _ := f.register(granted, 0)
		for _, need := range []Access{0, LocalWrite, RemoteRead, RemoteWrite, RemoteAtomic} {
			want := NoRights
			if granted&need == need {
				want = 0
			}
			f.wantAccess(e.STag(), Scope{Domain: f.a}, need, 0x10000, 8, want)
		}
	}
}

func TestChecksRunInTheOrderOfRFC5041(t *testing.T) {
	f := newFixture(t)
	e, _ := f.register(0, 0)
	s := e.STag()
	// Everything is wrong at once; one thing after the other is put right.
	f.wantAccess(s.WithKey(s.Key()+1), Scope{Domain: f.b}, RemoteWrite, math.MaxUint64, 10, InvalidSTag)
	f.wantAccess(s, Scope{Domain: f.b}, RemoteWrite, math.MaxUint64, 10, NotAssociated)
	f.wantAccess(s, Scope{Domain: f.a}, RemoteWrite, math.MaxUint64, 10, NoRights)
	f.wantAccess(s, Scope{Domain: f.a}, 0, math.MaxUint64, 10, OutOfBounds)
	f.wantAccess(s, Scope{Domain: f.a}, 0, 0x10001, math.MaxUint64, Wrap)
	f.wantAccess(s, Scope{Domain: f.a}, 0, 0x10001, 10, 0)
}

func TestSTagsAreHardToPredict(t *testing.T) {
	f := newFixture(t)
	var indexes []uint32
	keys := map[uint8]bool{}
	ascending := 0
	for range 400 {
		e, _ := f.register(0, 0)
		i := e.STag().Index()
		if i == 0 || i > MaxIndex {
			t.Fatalf("index %#x", i)
		}
		if len(indexes) > 0 && i > indexes[len(indexes)-1] {
			ascending++
		}
		indexes = append(indexes, i)
		keys[e.STag().Key()] = true
	}
	// 400 indexes over 2^24: all different but for a chance of 1 in 200, spread over the whole range.
	low, high := uint32(math.MaxUint32), uint32(0)
	for _, i := range indexes {
		low, high = min(low, i), max(high, i)
	}
	if low > 1<<20 || high < 15<<20 {
		t.Errorf("400 indexes lie between %#x and %#x", low, high)
	}
	if ascending < 120 || ascending > 280 {
		t.Errorf("%d of 400 indexes are larger than the one before", ascending)
	}
	if len(keys) < 100 {
		t.Errorf("400 regions have %d different keys", len(keys))
	}
}

func TestDeregisteredSTagIsInvalid(t *testing.T) {
	f := newFixture(t)
	e, _ := f.register(LocalWrite|RemoteWrite, 0)
	s := e.STag()
	if err := e.Deregister(); err != nil {
		t.Fatal(err)
	}
	f.wantAccess(s, Scope{Domain: f.a}, 0, 0x10000, 1, InvalidSTag)
	for key := range 256 {
		f.wantAccess(s.WithKey(uint8(key)), Scope{Domain: f.a}, 0, 0x10000, 1, InvalidSTag)
	}
	if err := e.Deregister(); err != nil {
		t.Errorf("second deregistration: %v", err)
	}
	if e.Valid() || e.Base() != 0 || e.Len() != 0 {
		t.Error("the entry still shows memory")
	}
	wantRule(t, e.FastRegister(Memory{Mem: make([]byte, 1)}, s.Key()+1), "STag not in invalid state")
}

func TestQuotasAreChargedAndGivenBack(t *testing.T) {
	f := newFixture(t)
	e, _ := f.register(0, 0)
	w, _ := f.AllocateWindow(f.a, Window2)
	if f.a.Held(pd.Regions) != 1 || f.a.Held(pd.MemoryOctets) != 4096 || f.a.Held(pd.Windows) != 1 {
		t.Errorf("held: %d regions, %d octets, %d windows", f.a.Held(pd.Regions), f.a.Held(pd.MemoryOctets), f.a.Held(pd.Windows))
	}
	_ = e.Deregister()
	_ = w.Deregister()
	if err := f.a.Close(); err != nil {
		t.Error(err)
	}
}

func TestRefusedRegistrationHoldsNothing(t *testing.T) {
	f := newFixture(t)
	f.m = pd.NewManager(pd.Limits{pd.Regions: 1, pd.MemoryOctets: 100}, pd.Limits{})
	f.a, _ = f.m.NewDomain()
	var limit *pd.LimitError
	if _, err := f.Register(f.a, Memory{Mem: make([]byte, 101)}); !errors.As(err, &limit) || limit.Resource != pd.MemoryOctets {
		t.Errorf("101 of 100 octets: %v", err)
	}
	if f.m.Held(pd.Regions) != 0 {
		t.Error("the refused region is charged")
	}
	if _, err := f.Register(f.a, Memory{Mem: make([]byte, 50)}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Register(f.a, Memory{Mem: make([]byte, 50)}); !errors.As(err, &limit) || limit.Resource != pd.Regions {
		t.Errorf("the second of one region: %v", err)
	}
	_, err := f.Register(f.a, Memory{})
	wantRule(t, err, "length")
	_, err = f.Register(f.a, Memory{Mem: make([]byte, 1), Access: RemoteWrite})
	wantRule(t, err, "access rights")
	_, err = f.Register(f.a, Memory{Mem: make([]byte, 1), Access: 0x80})
	wantRule(t, err, "access rights")
	_, err = f.Allocate(f.a, 0)
	wantRule(t, err, "length")
	_, err = f.AllocateWindow(f.a, Region)
	wantRule(t, err, "window type")
}

func TestTableFindsEveryEntryThroughGrowthAndRemoval(t *testing.T) {
	f := newFixture(t)
	var live []*Entry
	for round := range 3000 {
		if round%3 == 2 {
			i := round * 7 % len(live)
			if err := live[i].Deregister(); err != nil {
				t.Fatal(err)
			}
			live = append(live[:i], live[i+1:]...)
			continue
		}
		e, err := f.Register(f.a, Memory{Mem: make([]byte, 1)})
		if err != nil {
			t.Fatal(err)
		}
		live = append(live, e)
	}
	for _, e := range live {
		f.wantAccess(e.STag(), Scope{Domain: f.a}, 0, 0, 1, 0)
	}
	if int(f.a.Held(pd.Regions)) != len(live) || f.index.live != len(live) {
		t.Errorf("%d live, %d charged, %d in the table", len(live), f.a.Held(pd.Regions), f.index.live)
	}
}

func TestAcquireAllocatesNothing(t *testing.T) {
	f := newFixture(t)
	e, _ := f.register(LocalWrite|RemoteWrite, 0)
	s, by := e.STag(), Scope{Domain: f.a}
	if n := testing.AllocsPerRun(100, func() {
		pin, err := f.Acquire(s, by, RemoteWrite, 0x10000, 64)
		if err != nil {
			t.Fatal(err)
		}
		pin.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNamesForPeople(t *testing.T) {
	if got := (LocalWrite | RemoteRead).String(); got != "local write, remote read" {
		t.Errorf("got %q", got)
	}
	if got := Access(0).String(); got != "local read" {
		t.Errorf("got %q", got)
	}
	if got := Make(0x123456, 0x78).String(); got != "0x12345678" {
		t.Errorf("got %q", got)
	}
	if got := (RemoteInvalidate | 0xC0).String(); got != "remote invalidate, unknown 0xc0" {
		t.Errorf("got %q", got)
	}
	for v, want := range []string{
		"violation 0", "invalid STag", "STag not associated with this stream", "access rights violation",
		"base or bounds violation", "TO wrap", "violation 6",
	} {
		if got := Violation(v).String(); got != want {
			t.Errorf("violation %d is %q; want %q", v, got, want)
		}
	}
}

func TestErrorsTellWhatWasFound(t *testing.T) {
	f := newFixture(t)
	e, err := f.Register(f.a, Memory{Mem: make([]byte, 64), Base: 0x100, Access: RemoteRead})
	if err != nil {
		t.Fatal(err)
	}
	s := e.STag()
	refused := func(need Access, to, n uint64) error { return f.Check(s, Scope{Domain: f.a}, need, to, n) }
	for _, tt := range []struct {
		err  error
		want string
	}{
		{refused(RemoteWrite, 0x100, 8), "stag: access rights violation: " + s.String() + ", remote write of 8 octets at 0x100; it grants remote read"},
		{refused(RemoteRead, 0x200, 8), "stag: base or bounds violation: " + s.String() + ", remote read of 8 octets at 0x200; it covers 64 octets at 0x100"},
		{
			refused(RemoteRead, 0x101, math.MaxUint64),
			"stag: TO wrap: " + s.String() + ", remote read of 18446744073709551615 octets at 0x101; it covers 64 octets at 0x100",
		},
		{f.Check(0, Scope{}, RemoteRead, 1, 2), "stag: invalid STag: 0x00000000, remote read of 2 octets at 0x1"},
		{
			&AccessError{Violation: NoRights, Wanted: RemoteRead, Refused: true},
			"stag: access rights violation: 0x00000000, remote read of 0 octets at 0x0; the queue pair refuses it",
		},
		{&RegisterError{Rule: "key", Reason: "a reason"}, "stag: key: a reason"},
		{&RegisterError{Rule: "key", Reason: "a reason", STag: 0x101}, "stag: key: a reason (0x00000101)"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
}

func TestSTagIsValidOnlyUnderItsKey(t *testing.T) {
	f := newFixture(t)
	e, _ := f.register(LocalWrite, 0)
	s := e.STag()
	if !f.Valid(s) || f.Valid(s.WithKey(s.Key()+1)) || f.Valid(0) {
		t.Errorf("%v is valid: %v; with another key: %v; 0: %v", s, f.Valid(s), f.Valid(s.WithKey(s.Key()+1)), f.Valid(0))
	}
	if refs(e) != 0 {
		t.Errorf("the entry is held %d times", refs(e))
	}
	if other := s.WithKey(s.Key() + 1); other.Index() != s.Index() || other.Key() != s.Key()+1 {
		t.Errorf("%v with another key is %v", s, other)
	}
	if err := f.Invalidate(s, Scope{Domain: f.a}); err != nil {
		t.Fatal(err)
	}
	if f.Valid(s) || !f.Exists(s) || e.Access() != 0 || e.Kind() != Region {
		t.Errorf("invalidated: valid %v, exists %v, %v", f.Valid(s), f.Exists(s), e.Access())
	}
	if e.mem != nil {
		t.Error("the entry keeps memory alive that it does not open any more")
	}
	w, _ := f.AllocateWindow(f.a, Window2)
	if w.Kind() != Window2 {
		t.Errorf("the kind of a window is %v", w.Kind())
	}
}

func TestReadsAreCountedApartFromWrites(t *testing.T) {
	f := newFixture(t)
	e, _ := f.register(RemoteRead, 0)
	pin, err := f.Acquire(e.STag(), Scope{Domain: f.a}, RemoteRead, 0x10010, 3)
	if err != nil {
		t.Fatal(err)
	}
	pin.Release()
	if s := e.Stats(); s != (Stats{Accesses: 1, OctetsOut: 3}) {
		t.Errorf("counters %+v", s)
	}
}

// The key of a region that is to be fast-registered must be hard to predict as well.
func TestAllocatedRegionsHaveRandomKeys(t *testing.T) {
	f := newFixture(t)
	seen := map[uint8]bool{}
	for range 64 {
		e, err := f.Allocate(f.a, 1)
		if err != nil {
			t.Fatal(err)
		}
		seen[e.STag().Key()] = true
	}
	if len(seen) < 16 { // 57 are to be expected
		t.Errorf("64 regions have %d different keys", len(seen))
	}
}

func BenchmarkAcquire(b *testing.B) {
	m := pd.NewManager(pd.Limits{}, pd.Limits{})
	d, _ := m.NewDomain()
	var table Table
	var s STag
	for range 1000 {
		e, err := table.Register(d, Memory{Mem: make([]byte, 64), Access: LocalWrite | RemoteWrite})
		if err != nil {
			b.Fatal(err)
		}
		s = e.STag()
	}
	by := Scope{Domain: d}
	b.ReportAllocs()
	for b.Loop() {
		pin, err := table.Acquire(s, by, RemoteWrite, 0, 64)
		if err != nil {
			b.Fatal(err)
		}
		pin.Release()
	}
}
