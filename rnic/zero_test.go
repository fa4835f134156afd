package rnic_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"urnic/pd"
	"urnic/rnic"
)

// objects are the types that only a verb of another object makes.
var objects = []any{
	new(rnic.Device), new(rnic.PD), new(rnic.QP), new(rnic.CQ), new(rnic.SRQ), new(rnic.MR), new(rnic.MW),
	new(rnic.Listener), new(rnic.ConnRequest), new(rnic.CompletionChannel),
}

// values are the types with methods of which anybody may make one.
var values = []any{
	new(rnic.Opcode), new(rnic.Status), new(rnic.State), new(rnic.EventType), new(rnic.Event), new(rnic.WC),
	new(rnic.OpError), new(rnic.WRError), new(rnic.StateError), new(rnic.CompletionError), new(rnic.Trace),
}

// typesWithMethods returns the names of the exported types of the package that
// have exported methods, as its source tells.
func typesWithMethods(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source: %v", err)
	}
	names := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			m, ok := d.(*ast.FuncDecl)
			if !ok || m.Recv == nil || !m.Name.IsExported() {
				continue
			}
			of := m.Recv.List[0].Type
			if p, ok := of.(*ast.StarExpr); ok {
				of = p.X
			}
			if name, ok := of.(*ast.Ident); ok && name.IsExported() {
				names[name.Name] = true
			}
		}
	}
	return names
}

// call calls a method with arguments that are zero, but for the context, and
// returns its results.
func call(ctx context.Context, t testing.TB, what string, method reflect.Value) (results []reflect.Value, ok bool) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s panics: %v", what, r)
		}
	}()
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		in := method.Type().In(i)
		switch {
		case method.Type().IsVariadic() && i == method.Type().NumIn()-1:
			args = append(args, reflect.Zero(in.Elem()))
		case in == reflect.TypeFor[context.Context]() && ctx != nil:
			args = append(args, reflect.ValueOf(ctx))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	results = method.Call(args)
	for _, r := range results {
		if seq, is := reflect.TypeAssert[iter.Seq2[rnic.WC, error]](r); is { // what it yields counts
			for wc, err := range seq {
				return []reflect.Value{reflect.ValueOf(wc), reflect.ValueOf(&err).Elem()}, true
			}
		}
	}
	return results, true
}

// errorOf returns the error among the results of a method, if it returns one.
func errorOf(results []reflect.Value) (has bool, err error) {
	for _, r := range results {
		if r.Type() == reflect.TypeFor[error]() {
			err, _ = reflect.TypeAssert[error](r)
			return true, err
		}
	}
	return false, nil
}

// methods calls f with each exported method of an object.
func methods(object any, f func(name string, method reflect.Value)) {
	v := reflect.ValueOf(object)
	for i := range v.NumMethod() {
		f(v.Type().String()+"."+v.Type().Method(i).Name, v.Method(i))
	}
}

func TestEachTypeWithMethodsIsTriedAsZero(t *testing.T) {
	tried := map[string]bool{}
	for _, o := range slices.Concat(objects, values) {
		tried[reflect.TypeOf(o).Elem().Name()] = true
	}
	for name := range typesWithMethods(t) {
		if !tried[name] {
			t.Errorf("%s is missing from the tables", name)
		}
	}
}

func TestVerbsOfWhatNoVerbHasMadeAreErrors(t *testing.T) {
	for _, o := range objects {
		for kind, object := range map[string]any{"zero": o, "nil": reflect.Zero(reflect.TypeOf(o)).Interface()} {
			methods(object, func(name string, method reflect.Value) {
				results, ok := call(t.Context(), t, kind+" "+name, method)
				if !ok {
					return
				}
				if has, err := errorOf(results); has {
					wantRefused(t, kind+" "+name, err, rnic.ErrNotMade)
					return
				}
				for _, r := range results {
					if !r.IsZero() {
						t.Errorf("%s %s returns %v; want a zero", kind, name, r)
					}
				}
			})
		}
	}
}

func TestMethodsOfZeroValuesDoNotPanic(t *testing.T) {
	for _, v := range values {
		methods(v, func(name string, method reflect.Value) { call(t.Context(), t, "zero "+name, method) })
	}
}

func TestObjectsThatNoVerbHasMadeAreRefusedAsArguments(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p, cq, q := l.domain(), l.cq(rnic.CQAttr{}), l.qp(l.domain(), rnic.QPAttr{})
	mr := l.region(q.PD(), make([]byte, 8), rnic.LocalWrite|rnic.BindWindow)
	w := l.window(q.PD(), rnic.Type1)
	post := func(wr rnic.SendWR) error { return q.PostSend(wr) }
	for name, f := range map[string]func() error{
		"send CQ":    func() error { _, err := p.CreateQP(rnic.QPAttr{SendCQ: new(rnic.CQ), RecvCQ: cq}); return err },
		"receive CQ": func() error { _, err := p.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: new(rnic.CQ)}); return err },
		"no CQ":      func() error { _, err := p.CreateQP(rnic.QPAttr{}); return err },
		"SRQ": func() error {
			_, err := p.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq, SRQ: new(rnic.SRQ)})
			return err
		},
		"PD of a CQ": func() error { _, err := l.dev.CreateCQ(rnic.CQAttr{PD: new(rnic.PD)}); return err },
		"channel":    func() error { _, err := l.dev.CreateCQ(rnic.CQAttr{Channel: new(rnic.CompletionChannel)}); return err },
		"QP of a region": func() error {
			_, err := p.RegisterMemory(rnic.Memory{Slice: make([]byte, 8)}, 0, new(rnic.QP))
			return err
		},
		"window": func() error {
			return post(rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: new(rnic.MW), MR: mr}})
		},
		"region of a window": func() error {
			return post(rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: w, MR: new(rnic.MR)}})
		},
		"no window": func() error { return post(rnic.SendWR{Op: rnic.OpBindWindow}) },
		"region": func() error {
			return post(rnic.SendWR{Op: rnic.OpFastRegister, Register: rnic.FastRegister{MR: new(rnic.MR)}})
		},
		"no region": func() error { return post(rnic.SendWR{Op: rnic.OpFastRegister}) },
		"SGE":       func() error { return post(rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{new(rnic.MR).SGE(0, 8)}}) },
	} {
		wantRefused(t, name, f(), nil)
	}
	if n := l.dev.Held(pd.Resource(200)); n != 0 {
		t.Errorf("%d of an unknown resource are held", n)
	}
}

// With an error, Wait tells of no completions: the caller would read entries that nobody has written.
func TestWaitThatIsRefusedReturnsNothing(t *testing.T) {
	l := newLab(t, rnic.Config{})
	var none context.Context
	for name, wait := range map[string]func() (int, error){
		"no CQ":      func() (int, error) { return new(rnic.CQ).Wait(t.Context(), make([]rnic.WC, 1)) },
		"no context": func() (int, error) { return l.cq(rnic.CQAttr{}).Wait(none, make([]rnic.WC, 1)) },
	} {
		if n, err := wait(); n != 0 || err == nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

// With an error, the descriptor is none: 0 is the standard input.
func TestDescriptorThatIsRefusedIsNone(t *testing.T) {
	for name, descriptor := range map[string]func() (int, error){
		"no device":  new(rnic.Device).EventFD,
		"no channel": new(rnic.CompletionChannel).FD,
	} {
		if fd, err := descriptor(); fd != -1 || err == nil {
			t.Errorf("%s: %d, %v", name, fd, err)
		}
	}
}

func TestRecvWaitIsNotNegative(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p, cq := l.domain(), l.cq(rnic.CQAttr{})
	_, err := p.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq, RecvWait: -1})
	wantRefused(t, "create", err, nil, "RecvWait")
}

// A nil context is refused by each verb that takes one, before it does anything:
// the same call with a context works afterwards.
func TestVerbsWithoutAContextAreErrors(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		l := w.listen(b)
		ch := labOf(w, a).channel()
		w.dial(l.Addr().String()).frame(&plainRequest)
		request, err := l.Accept(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		before := held(b.Device)
		var none context.Context
		tried := map[string]bool{}
		refuse := func(when string) {
			for _, object := range []any{a.Device, a.QP, a.SendCQ, ch, l, request} {
				methods(object, func(name string, method reflect.Value) {
					in := method.Type()
					if in.NumIn() == 0 || in.In(0) != reflect.TypeFor[context.Context]() {
						return
					}
					tried[strings.TrimPrefix(name, "*rnic.")] = true
					results, ok := call(none, w, name, method)
					if _, err := errorOf(results); ok {
						wantRefused(w, when+": "+name+" without a context", err, rnic.ErrNoContext)
					}
				})
			}
		}
		refuse("idle")
		if got := held(b.Device); got != before {
			w.Errorf("the device holds %v; want %v", got, before)
		}
		if err := request.Accept(w.Context(), b.QP, rnic.ConnParam{}); err != nil {
			w.Error(err)
		}
		b = newQP(w, b.Device, b.PD, rnic.QPAttr{})
		if err := errors.Join(w.tryConnect(a, b)); err != nil {
			w.Error(err)
		}
		refuse("connected")
		wantState(w, a.QP, rnic.RTS)
		a.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpWrite})
		wantCompletions(w, a.SendCQ, result{1, rnic.StatusSuccess})
		for _, verb := range []string{
			"Device.Listen", "Device.WaitEvent", "QP.Connect", "QP.Disconnect", "QP.Terminate", "CQ.Wait", "CQ.All",
			"CompletionChannel.Wait", "Listener.Accept", "ConnRequest.Accept", "ConnRequest.Reject",
		} {
			if !tried[verb] {
				w.Errorf("%s was not tried", verb)
			}
		}
	})
}
