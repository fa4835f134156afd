package main

import (
	"encoding"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"urnic/internal/program/perf"
	"urnic/ulp/rdp/rdpinfo"
	"urnic/ulp/rds/rdsinfo"
	"urnic/ulp/rx/rxdebug"
)

// Each field of the types that are printed is in their schema, also those that the commands of other
// tests leave out, and is required unless it may be left out.
func TestSchemasHaveTheFieldsOfTheTypes(t *testing.T) {
	for _, c := range []struct {
		schema, def string
		typ         reflect.Type
		more        []string // fields that are not of the type
	}{
		{"demo", "", reflect.TypeFor[demoReport](), nil},
		{"rping", "", reflect.TypeFor[rpingReport](), nil},
		{"perf", "", reflect.TypeFor[perf.Report](), nil},
		{"nfs-ls", "file", reflect.TypeFor[nfsEntry](), nil},
		{"nfs-copy", "", reflect.TypeFor[nfsCopy](), nil},
		{"nfs-bench-local", "", reflect.TypeFor[nfsLocalReport](), nil},
		{"rpc-call", "", reflect.TypeFor[rpcCallReport](), nil},
		{"rds-ping", "sum", reflect.TypeFor[rdsPingSum](), nil},
		{"rds-node", "event", reflect.TypeFor[rdsNodeEvent](), nil},
		{"rds-node", "end", reflect.TypeFor[rdsNodeSum](), nil},
		{"rds-info", "", reflect.TypeFor[rdsinfo.Report](), nil},
		{"rds-stress", "", reflect.TypeFor[rdsStressReport](), nil},
		{"rx-call", "", reflect.TypeFor[rxCallReport](), nil},
		{"rx-debug", "", reflect.TypeFor[rxdebug.Report](), []string{"error"}},
		{"rx-perf", "", reflect.TypeFor[rxPerfReport](), nil},
		{"rdp-ping", "sum", reflect.TypeFor[rdpPings](), nil},
		{"rdp-status", "", reflect.TypeFor[rdpinfo.Report](), nil},
	} {
		text, err := os.ReadFile("../../docs/schema/" + c.schema + ".schema.json")
		if err != nil {
			t.Fatal(err)
		}
		var root map[string]any
		if err := json.Unmarshal(text, &root); err != nil {
			t.Fatal(c.schema, err)
		}
		s := schemaFields{t, c.schema, root}
		object := root
		if c.def != "" {
			object = s.follow(map[string]any{"$ref": "#/$defs/" + c.def})
		}
		s.compare(c.typ, object, append(c.more, "format"))
	}
}

// schemaFields compares a schema with a type.
type schemaFields struct {
	t    *testing.T
	name string
	root map[string]any
}

// follow returns what a schema refers to, also if that may be null instead.
func (s *schemaFields) follow(schema map[string]any) map[string]any {
	if either, is := schema["anyOf"].([]any); is {
		schema, _ = either[0].(map[string]any)
	}
	if ref, is := schema["$ref"].(string); is {
		defs, _ := s.root["$defs"].(map[string]any)
		schema, _ = defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	return schema
}

func (s *schemaFields) compare(typ reflect.Type, schema map[string]any, more []string) {
	s.t.Helper()
	schema = s.follow(schema)
	switch {
	case typ.Implements(reflect.TypeFor[json.Marshaler]()) || typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return
	case typ.Kind() == reflect.Pointer:
		s.compare(typ.Elem(), schema, more)
		return
	case typ.Kind() == reflect.Slice || typ.Kind() == reflect.Array:
		items, _ := schema["items"].(map[string]any)
		s.compare(typ.Elem(), items, more)
		return
	case typ.Kind() != reflect.Struct:
		return
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	known := slices.Clone(more)
	for _, field := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		known = append(known, name)
		below, there := properties[name].(map[string]any)
		if !there {
			s.t.Errorf("%s: the schema has no %s of %v", s.name, name, typ)
			continue
		}
		if slices.Contains(required, any(name)) == strings.Contains(options, "omit") {
			s.t.Errorf("%s: %s of %v is required, or not, contrary to its tag %q", s.name, name, typ, field.Tag.Get("json"))
		}
		s.compare(field.Type, below, nil)
	}
	for name := range properties {
		if !slices.Contains(known, name) {
			s.t.Errorf("%s: %v has no %s", s.name, typ, name)
		}
	}
}

// Each object of a schema refuses unknown fields, and each field has a description, which has
// its unit if it is a number with one.
func TestSchemasDescribeEachField(t *testing.T) {
	files, err := filepath.Glob("../../docs/schema/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var schema map[string]any
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(file, err)
		}
		for _, fault := range undescribed(schema, schema["$defs"]) {
			t.Errorf("%s: %s", file, fault)
		}
	}
}

// undescribed returns the faults of a schema and of those in it.
func undescribed(schema map[string]any, defs any) (faults []string) {
	properties, _ := schema["properties"].(map[string]any)
	if properties != nil && schema["additionalProperties"] != false {
		faults = append(faults, "an object takes unknown fields")
	}
	for name, p := range properties {
		p, _ := p.(map[string]any)
		if ref, is := p["$ref"].(string); is {
			defs, _ := defs.(map[string]any)
			p, _ = defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		if text, _ := p["description"].(string); text == "" {
			faults = append(faults, name+" has no description")
		}
	}
	for _, v := range schema {
		below, _ := v.(map[string]any)
		if below == nil {
			continue
		}
		faults = append(faults, undescribed(below, defs)...)
	}
	return faults
}
