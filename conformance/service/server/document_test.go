package server

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"urnic/conformance/service"
)

// results are what operations return that return something.
var results = map[string]any{
	"hello": service.Hello{}, "pd": service.PD{}, "event": service.Event{}, "counters": service.Counters{},
	"listen": service.Listener{}, "accepted": service.Accepted{}, "answer": service.Accepted{}, "connect": service.Connect{}, "connected": service.Connected{},
	"qp": service.QP{}, "state": service.State{}, "register": service.Region{}, "fast_register": service.Region{}, "memory_read": service.Data{},
	"window": service.NewWindow{}, "bind": service.Window{}, "tag": service.Tag{}, "srq": service.SRQ{}, "recv": service.IDs{}, "post": service.IDs{}, "completion": service.Completion{},
}

// sections returns the text of the protocol's document by operation; all that
// stands before those of a chapter is in the one of "".
func sections(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/conform-service.md")
	check(t, err)
	found, name := make(map[string]string), ""
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "### "):
			name = strings.TrimSpace(line[4:])
		case strings.HasPrefix(line, "## "):
			name = ""
		}
		found[name] += line
	}
	return found
}

func TestDocumentDescribesEachOperation(t *testing.T) {
	text := sections(t)
	for name, o := range operations {
		section := text[name]
		if section == "" {
			t.Errorf("there is no section about %s", name)
			continue
		}
		args, err := o.parse(nil)
		check(t, err)
		for _, field := range append(fields(reflect.TypeOf(args)), fields(reflect.TypeOf(results[name]))...) {
			// What several operations share stands at the chapter's head, or at the first of them.
			shared := text[""] + text["accepted"] + text["counters"] + text["recv"] + text["register"]
			if !mentions(section+shared, field) {
				t.Errorf("%s: nothing says what %q is", name, field)
			}
		}
	}
	for name := range text {
		if _, there := operations[name]; !there && name != "" {
			t.Errorf("there is a section about %s, which is no operation", name)
		}
	}
}

func mentions(text, field string) bool { return strings.Contains(text, "`"+field+"`") }

// fields returns the names in JSON of all that a type holds.
func fields(t reflect.Type) (names []string) {
	switch {
	case t == nil:
		return nil
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
		return fields(t.Elem())
	case t.Kind() != reflect.Struct:
		return nil
	}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
		names = append(names, fields(f.Type)...)
	}
	return names
}

func TestExamplesOfTheDocumentAreOfTheProtocol(t *testing.T) {
	for name, section := range sections(t) {
		requests := 0
		for line := range strings.Lines(section) {
			if !strings.HasPrefix(line, `{"id"`) {
				continue
			}
			if r, err := parseRequest([]byte(line)); err == nil {
				requests++
				if r.Op != name && name != "" {
					t.Errorf("%s has an example of %s", name, r.Op)
				}
				if _, _, err := parseArgs(r); err != nil {
					t.Errorf("%s%v", line, err)
				}
				continue
			}
			var a service.Answer
			check(t, strict([]byte(line), &a))
			if name == "" || a.Error != nil {
				continue
			}
			result := reflect.New(reflect.TypeOf(results[name])).Interface()
			if err := strict(a.Result, result); err != nil {
				t.Errorf("%s%v", line, err)
			}
		}
		if requests == 0 {
			t.Errorf("%s has no example", name)
		}
	}
}

func TestDocumentHasEachNameOfTheProtocol(t *testing.T) {
	var all strings.Builder
	for _, s := range sections(t) {
		all.WriteString(s)
	}
	words := names(rights)
	words = append(words, names(postings)...)
	words = append(words, names(rtrs)...)
	words = append(words, names(policies)...)
	for _, code := range []service.Code{
		service.CodeRequest, service.CodeVersion, service.CodeOp, service.CodeUnsupported, service.CodeUnknown, service.CodeLimit, service.CodeForbidden, service.CodeRefused, service.CodeState,
		service.CodeTimeout, service.CodeRejected, service.CodeStartup, service.CodeNetwork, service.CodeStream, service.CodeInternal,
	} {
		words = append(words, string(code))
	}
	for _, s := range statuses {
		words = append(words, s)
	}
	for _, s := range states {
		words = append(words, s)
	}
	for _, s := range events {
		words = append(words, s)
	}
	words = append(words, service.ClassPeer, service.ClassRDMAP, service.ClassMPA, service.ClassRejected, service.ClassLost, service.ClassAborted, service.ClassOther, service.Sent, service.Received)
	for _, w := range words {
		if !mentions(all.String(), w) {
			t.Errorf("nothing says what %q is", w)
		}
	}
	if b, err := json.Marshal(service.Version); err != nil || !strings.Contains(all.String(), "This is version "+string(b)+".") {
		t.Error("the document is of another version")
	}
}
