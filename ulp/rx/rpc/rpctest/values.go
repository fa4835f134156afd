package rpctest

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rx/rpc"
)

// RoundTrip checks that random arguments and results of operations survive being encoded and
// decoded, and that nothing which is cut short is decoded. Each of the functions adjust is
// called with a pointer to each structure that was filled at random, inner ones first: it
// clears what the encoding does not have.
func RoundTrip(t *testing.T, ops []rpc.Description, adjust ...func(structure any)) {
	t.Helper()
	r := &filler{rand.New(rand.NewPCG(1, 2)), adjust}
	for _, op := range ops {
		for range 20 {
			roundTrip(t, r, op.Name+" arguments", op.NewArgs)
			roundTrip(t, r, op.Name+" results", op.NewResults)
		}
	}
}

func roundTrip(t *testing.T, r *filler, what string, newValue func() rpc.Value) {
	t.Helper()
	v := newValue()
	r.fill(reflect.ValueOf(v).Elem())
	p, err := rpc.Append(nil, v)
	if err != nil {
		t.Errorf("%s: %v can't be encoded: %v", what, v, err)
		return
	}
	got := newValue()
	if err := rpc.Decode(p, got); err != nil || !reflect.DeepEqual(v, got) {
		t.Errorf("%s: %+v became %+v: %v", what, v, got, err)
	}
	for _, n := range []int{0, 1, len(p) / 2, len(p) - 4, len(p) - 1} {
		if n < 0 || n >= len(p) {
			continue
		}
		if err := rpc.Decode(p[:n], newValue()); !errors.Is(err, xdr.ErrShort) {
			t.Errorf("%s: %d bytes of %d: %v", what, n, len(p), err)
		}
	}
	if err := rpc.Decode(append(p, 0), newValue()); err == nil {
		t.Errorf("%s: a byte more is accepted", what)
	}
}

// A filler makes random values.
type filler struct {
	*rand.Rand
	adjust []func(structure any)
}

// fill sets v to something. Numbers are not 0, as zeros end some lists; strings and lists
// are short.
func (r *filler) fill(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // values have no other kinds
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 1)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(1 + int64(r.Uint64()>>1))
		if v.Int() == 0 {
			v.SetInt(1)
		}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64())
		if v.Uint() == 0 {
			v.SetUint(1)
		}
	case reflect.String:
		v.SetString(strings.Repeat("xy", r.IntN(4)))
	case reflect.Slice:
		if n := r.IntN(4); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		r.elements(v)
	case reflect.Array:
		r.elements(v)
	case reflect.Struct:
		for _, f := range v.Fields() {
			if f.CanSet() {
				r.fill(f)
			}
		}
		for _, adjust := range r.adjust {
			adjust(v.Addr().Interface())
		}
	}
}

func (r *filler) elements(v reflect.Value) {
	for i := range v.Len() {
		r.fill(v.Index(i))
	}
}

// Fuzz fuzzes the decoders of operations: what decodes can be encoded, to bytes that decode
// to the same.
func Fuzz(f *testing.F, ops []rpc.Description) {
	r := &filler{Rand: rand.New(rand.NewPCG(3, 4))}
	for i, op := range ops {
		for _, results := range []bool{false, true} {
			v := value(op, results)
			r.fill(reflect.ValueOf(v).Elem())
			p, err := rpc.Append(nil, v)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint(i), results, p)
		}
	}
	f.Fuzz(func(t *testing.T, i uint, results bool, p []byte) {
		op := ops[i%uint(len(ops))]
		v, again := value(op, results), value(op, results)
		if rpc.Decode(p, v) != nil {
			return
		}
		q, err := rpc.Append(nil, v)
		if err != nil {
			t.Fatalf("%s: %+v can't be encoded: %v", op.Name, v, err)
		}
		if err := rpc.Decode(q, again); err != nil || !reflect.DeepEqual(v, again) {
			t.Fatalf("%s: %+v became %+v: %v", op.Name, v, again, err)
		}
	})
}

func value(op rpc.Description, results bool) rpc.Value {
	if results {
		return op.NewResults()
	}
	return op.NewArgs()
}
