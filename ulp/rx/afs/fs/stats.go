package fs

import (
	"context"
	"sync"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// statistics are what a Server has done.
type statistics struct {
	mu                        sync.Mutex
	start                     afs.Time
	calls                     [operations]opCount
	other                     int // calls of operations that are not counted one by one
	bytesFetched, bytesStored uint64
}

// An opCount counts the calls of an operation.
type opCount struct{ all, good int32 }

const (
	firstCounted = 130
	operations   = 31 // from FetchData to GetXStats
)

// count counts a call.
func (s *statistics) count(opcode uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if opcode-firstCounted >= operations {
		s.other++
		return
	}
	c := &s.calls[opcode-firstCounted]
	c.all++
	if err == nil {
		c.good++
	}
}

func (s *statistics) fetched(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytesFetched += uint64(n)
}

func (s *statistics) stored(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytesStored += uint64(n)
}

// counted adds an operation whose calls are counted.
func counted[A, R any](m *rpc.Mux, s *Server, op *rpc.Op[A, R], h func(context.Context, *A) (R, error)) {
	op.Handle(m, func(ctx context.Context, a *A) (R, error) {
		r, err := h(ctx, a)
		s.stats.count(op.Opcode, err)
		return r, err
	})
}

// Collections of statistics.
const (
	Calls           int32 = iota // not counted: empty
	Performance                  // general numbers
	FullPerformance              // those, and each operation's
	CallbackCounts               // promises
)

// Lengths of collections, in words. They are those of OpenAFS 1.8 on a 64-bit machine of which
// the lower word comes first: a time takes four.
const (
	performanceWords = 1 + 13 + 3 + 41 + 8 + 1 + 31
	timeWords        = 4
	opWords          = 2 + 4*timeWords
	transferWords    = 2 + 4*timeWords + 3 + 9
	countedOps       = 28
	fullWords        = performanceWords + timeWords + countedOps*opWords + 2*transferWords
	callbackWords    = 16
)

func (s *Server) handleStats(m *rpc.Mux) {
	counted(m, s, opXVersion, func(context.Context, *rpc.Void) (rpc.Int32, error) { return xstatsVersion, nil })
	counted(m, s, opXStats, func(_ context.Context, a *afs.XStatsArgs) (afs.XStats, error) {
		words, err := s.collection(a.Collection)
		return afs.XStats{Version: xstatsVersion, Time: s.time(), Words: words}, err
	})
	counted(m, s, opViceStats, func(context.Context, *rpc.Void) (Statistics, error) { return s.statistics(), nil })
	counted(m, s, opStatistics, func(_ context.Context, n *rpc.Int32) (Counters, error) {
		all := s.counters()
		return Counters{all[:max(0, min(int(*n), len(all)))]}, nil
	})
}

// collection returns a collection's words.
func (s *Server) collection(c int32) ([]int32, error) {
	s.mu.Lock()
	promises := int32(s.promises.n)
	s.mu.Unlock()
	st := &s.stats
	st.mu.Lock()
	defer st.mu.Unlock()
	switch c {
	case Calls:
		return nil, nil
	case Performance:
		return st.performance(), nil
	case FullPerformance:
		return st.full(), nil
	case CallbackCounts:
		words := make([]int32, callbackWords)
		words[0] = promises
		return words, nil
	}
	return nil, afs.ErrInvalid
}

// performance counts calls; what a server with disks counts besides is 0.
func (s *statistics) performance() []int32 {
	words := make([]int32, performanceWords)
	for _, c := range s.calls {
		words[0] += c.all
	}
	return words
}

// full are the numbers of each operation. Their times are not taken.
func (s *statistics) full() []int32 {
	words := append(make([]int32, 0, fullWords), s.performance()...)
	words = append(words, int32(s.start), 0, 0, 0)
	for i := range countedOps {
		words = append(words, s.calls[place(i)].all, s.calls[place(i)].good)
		words = append(words, make([]int32, opWords-2)...)
	}
	for i, bytes := range []uint64{s.bytesFetched, s.bytesStored} {
		c := s.calls[3*i] // FetchData and StoreData
		words = append(words, c.all, c.good)
		words = append(words, make([]int32, 4*timeWords)...)
		words = append(words, int32(bytes), 0, 0)
		words = append(words, make([]int32, 9)...)
	}
	return words
}

// place is the place of an operation of the statistics among the opcodes: the locks' old forms
// are left out.
func place(i int) int {
	switch {
	case i < 13:
		return i
	case i < 16: // SetLock, ExtendLock, ReleaseLock
		return i + 13
	case i < 26: // GetStatistics to BulkStatus
		return i
	}
	return i + 3 // XStatsVersion and GetXStats
}

// counters are the counters of GetStatistics64.
func (s *Server) counters() []uint64 {
	now := uint64(s.time())
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	st := &s.stats
	fetches := uint64(st.calls[0].all) + uint64(st.calls[1].all) + uint64(st.calls[2].all)
	stores := uint64(st.calls[3].all) + uint64(st.calls[4].all) + uint64(st.calls[5].all)
	var all uint64
	for _, c := range st.calls {
		all += uint64(c.all)
	}
	return []uint64{
		now, uint64(st.start), uint64(st.start), 0, fetches, uint64(st.calls[0].all), st.bytesFetched, 0, stores, uint64(st.calls[3].all),
		st.bytesStored, 0, all + uint64(st.other), 0, 0, 0,
	}
}

// statistics are those of GetStatistics: the counters in 32 bits, and one disk.
func (s *Server) statistics() Statistics {
	c := s.counters()
	words := func(i int) uint32 { return uint32(c[i]) }
	st := Statistics{
		Now: afs.Time(words(0)), Booted: afs.Time(words(1)), Started: afs.Time(words(2)),
		Calls: words(12), Fetches: words(4), FetchDatas: words(5), FetchedBytes: words(6),
		Stores: words(8), StoreDatas: words(9), StoredBytes: words(10),
	}
	for _, v := range s.Volumes() {
		st.Disks[0].Total += v.PartitionSize
		st.Disks[0].Free += v.PartitionFree
	}
	copy(st.Disks[0].Name[:], "/vicepa")
	return st
}
