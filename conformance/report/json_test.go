package report

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"urnic/conformance"
	"urnic/conformance/wire"
)

const schemaFile = "../../docs/conform.schema.json"

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func asJSON(t *testing.T, r *conformance.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := JSON(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decoded returns the value of a JSON text, as the validator wants it.
func decoded(t *testing.T, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestJSONReportFitsTheSchema(t *testing.T) {
	s := schema(t)
	for name, r := range map[string]*conformance.Report{
		"sample": sample(t), "empty": {}, "many": many(t, 100),
	} {
		if err := s.Validate(decoded(t, asJSON(t, r))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The schema refuses what is no report, so that fitting it says something.
func TestSchemaRefusesWhatIsNoReport(t *testing.T) {
	s := schema(t)
	first := func(v map[string]any) map[string]any { return v["results"].([]any)[0].(map[string]any) }
	for name, spoil := range map[string]func(map[string]any){
		"another format":          func(v map[string]any) { v["format"] = "urnic-conform/2" },
		"no target":               func(v map[string]any) { delete(v, "target") },
		"a field more":            func(v map[string]any) { v["mood"] = "good" },
		"an unknown outcome":      func(v map[string]any) { v["outcome"] = "perhaps" },
		"an unknown verdict":      func(v map[string]any) { first(v)["verdict"] = "perhaps" },
		"a failure for no reason": func(v map[string]any) { first(v)["verdict"] = "fail" },
		"no clauses":              func(v map[string]any) { first(v)["clauses"] = []any{} },
		"octets not in hex":       func(v map[string]any) { first(v)["exchange"].([]any)[1].(map[string]any)["octets"] = "4d5" },
		"no moment":               func(v map[string]any) { v["began"] = "yesterday" },
		"a negative count":        func(v map[string]any) { v["totals"].(map[string]any)["pass"] = json.Number("-1") },
	} {
		v := decoded(t, asJSON(t, sample(t))).(map[string]any)
		spoil(v)
		if s.Validate(v) == nil {
			t.Errorf("%s is taken for a report", name)
		}
	}
}

// Each field of the types is in the schema under its name, and none is there that
// is not in the types.
func TestSchemaHasEveryField(t *testing.T) {
	s := schema(t)
	def := func(name string) *jsonschema.Schema {
		c := jsonschema.NewCompiler()
		d, err := c.Compile(schemaFile + "#/$defs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, c := range []struct {
		typ    reflect.Type
		schema *jsonschema.Schema
		more   []string
	}{
		{reflect.TypeFor[conformance.Report](), s, []string{"format", "outcome", "headline"}},
		{reflect.TypeFor[conformance.Result](), def("result"), nil},
		{reflect.TypeFor[conformance.Totals](), def("totals"), nil},
		{reflect.TypeFor[conformance.Coverage](), def("coverage"), nil},
		{reflect.TypeFor[conformance.Clauses](), def("clauses"), nil},
		{reflect.TypeFor[conformance.ClauseState](), def("clauseState"), nil},
		{reflect.TypeFor[wire.Event](), def("event"), nil},
	} {
		names := map[string]bool{}
		for _, name := range c.more {
			names[name] = true
		}
		for field := range c.typ.Fields() {
			if !field.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names[name] = true
		}
		for name := range names {
			if c.schema.Properties[name] == nil {
				t.Errorf("%v: the schema has no %s", c.typ, name)
			}
		}
		for name := range c.schema.Properties {
			if !names[name] {
				t.Errorf("%v has no %s", c.typ, name)
			}
		}
	}
}

// A report that is read again is the same, and is written the same.
func TestJSONReportIsStable(t *testing.T) {
	r := sample(t)
	first := asJSON(t, r)
	var again conformance.Report
	if err := json.Unmarshal(first, &again); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(asJSON(t, r), first) {
		t.Error("the same report is written otherwise")
	}
	for i := range r.Results {
		if strings.Contains(r.Results[i].Reason, hostile) {
			continue // what is no UTF-8 comes back as U+FFFD
		}
		if !reflect.DeepEqual(again.Results[i], r.Results[i]) {
			t.Errorf("%s came back as %+v", r.Results[i].Case, again.Results[i])
		}
	}
	if !bytes.HasPrefix(first, []byte("{\n  \"format\": \"urnic-conform/1\",\n  \"outcome\": \"fail\",\n  \"headline\": \"4 of 13 cases failed\",\n  \"tool\": \"urnic v0.9.1\",\n")) {
		t.Errorf("it begins with %.80s", first)
	}
}

// A terminal can show the report, whatever the target has said: encoding/json leaves C1
// controls and what changes the direction of text as they are.
func TestJSONReportHasNoControls(t *testing.T) {
	for _, r := range string(asJSON(t, sample(t))) {
		if r != '\n' && (!unicode.IsPrint(r) || r == unicode.ReplacementChar) {
			t.Fatalf("it has %q", r)
		}
	}
}
