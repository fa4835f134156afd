package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"
)

// jsonPage is the page that lists the formats.
const jsonPage = "../../docs/json.md"

// A jsonFormat is a row of the table of docs/json.md.
type jsonFormat struct {
	command, name, schema string
	lines                 bool // an object a line
	unnamed               bool // objects have no format field
}

var jsonRow = regexp.MustCompile("^\\| `urnic ([^`]+)` \\| `(urnic-[a-z-]+/[0-9]+)`(, in no field)? \\| (one object|one object a line) \\| \\[[a-z-]+\\]\\(([a-z./-]+)\\) \\|$")

// jsonFormats returns the rows of the table.
func jsonFormats(t *testing.T) (formats []jsonFormat) {
	t.Helper()
	page, err := os.ReadFile(jsonPage)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| `urnic ") {
			continue
		}
		m := jsonRow.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("docs/json.md: not a row of its form: %s", line)
			continue
		}
		formats = append(formats, jsonFormat{m[1], m[2], filepath.Join(filepath.Dir(jsonPage), m[5]), m[4] == "one object a line", m[3] != ""})
	}
	return formats
}

func (f *jsonFormat) compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(f.schema)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate checks what a command has printed, and returns its objects.
func (f *jsonFormat) validate(t *testing.T, out string) (objects []map[string]any) {
	t.Helper()
	s := f.compile(t)
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			t.Fatalf("not JSON: %v\n%s", err, out)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%v\n%.2000s", err, raw)
		}
		o, _ := v.(map[string]any)
		if format, there := o["format"]; there == f.unnamed || there && format != f.name {
			t.Errorf("the format is %v: %.200s", format, raw)
		}
		objects = append(objects, o)
	}
	if len(objects) == 0 || len(objects) > 1 && !f.lines {
		t.Fatalf("%d objects:\n%s", len(objects), out)
	}
	return objects
}

// Each command with --json is in docs/json.md, and nothing else is there.
func TestEachCommandWithJSONHasASchema(t *testing.T) {
	listed := map[string]bool{}
	schemas := map[string]bool{}
	for _, f := range jsonFormats(t) {
		cmd, _, err := newRootCommand().Find(strings.Fields(strings.ReplaceAll(f.command, "--json", "")))
		if err != nil {
			t.Errorf("docs/json.md: %s: %v", f.command, err)
			continue
		}
		if !strings.Contains(f.command, "--json") || cmd.Flags().Lookup("json") == nil {
			t.Errorf("docs/json.md: %s has no --json", f.command)
		}
		listed[cmd.CommandPath()] = true
		schemas[filepath.Base(f.schema)] = true
		text, err := os.ReadFile(f.schema)
		if err != nil {
			t.Error(err)
		} else if !f.unnamed && !strings.Contains(string(text), `"const": "`+f.name+`"`) {
			t.Errorf("%s is not that of %s", f.schema, f.name)
		}
	}
	var all func(*cobra.Command)
	all = func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("json") != nil && !listed[cmd.CommandPath()] {
			t.Errorf("docs/json.md has no row for %s --json", cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			all(c)
		}
	}
	all(newRootCommand())
	files, err := filepath.Glob("../../docs/schema/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if !schemas[filepath.Base(file)] {
			t.Errorf("docs/json.md does not name %s", file)
		}
	}
}

// captures returns the captures of the dissectors' tests.
func captures(t *testing.T) (all []string) {
	t.Helper()
	for _, dir := range []string{
		"internal/program/dissect/testdata/captures", "ulp/rdp/rdpflow/testdata", "ulp/rds/rdsflow/testdata/captures", "ulp/rx/rxflow/testdata/captures",
	} {
		names, err := filepath.Glob("../../" + dir + "/*.pcap*")
		if err != nil || len(names) == 0 {
			t.Fatal(dir, names, err)
		}
		all = append(all, names...)
	}
	return all
}

// untilSaid runs a server until it has printed a line, and returns what it has printed.
func untilSaid(t *testing.T, args ...string) string {
	t.Helper()
	p := start(t, args...)
	p.out.wait(t, "\n")
	p.interrupt()
	p.wait(t)
	return p.out.String()
}

// Each object that a command prints with --json conforms to its schema, which refuses it with
// a field more, without one that is required, and with one of another type.
func TestJSONConformsToItsSchema(t *testing.T) {
	keepState(t)
	p := startPeers(t)
	pcap, rping, perfServer, target, rpc, rxPort, rdpRecv := p.pcap, p.rping, p.perf, p.conform, p.rpc, p.rxPort, p.rdpRecv
	nfsd, dir := p.nfsd, t.TempDir()
	file, root := p.file, nfsd.urls("/")["tcp"]
	at, stressPort := p.rds, ownPort(t)
	stress := []string{"-p", stressPort, "--transport", "tcp", "--transport-port", at.port}
	passive := start(t, append([]string{"rds", "stress", "-r", at.passive}, stress...)...)
	passive.out.wait(t, "waiting for incoming connection")
	write(t, shownPair(t), 1)
	pcaps := captures(t)
	runs := map[string][][]string{
		"demo --json":              {{"demo", "--json"}},
		"devinfo --json":           {{"devinfo", "--json"}},
		"rping --json":             {{"rping", "-c", "-a", "127.0.0.1", "-p", rping, "-C", "2", "--json"}},
		"dissect --json":           {{"dissect", "--json", pcap}, {"dissect", "--json", "--segments", pcap}},
		"dissect --summary --json": {{"dissect", "--summary", "--json", pcap}},
		"perf local --json": {
			{"perf", "local", "--iters", "5", "--json"},
			{"perf", "local", "--iters", "5", "--test", "lat", "--json"},
			{"perf", "local", "--iters", "5", "--test", "connect", "--baseline", "--json"},
		},
		"perf client --json": {{"perf", "client", perfServer, "--iters", "5", "--json"}},
		"conform --json -":   {{"conform", "--target", target, "--profile", "urnic", "--only", "rfc5041-7.1-4", "--json", "-"}},
		"nfs ls --json":      {{"nfs", "ls", "--json", file}, {"nfs", "ls", "--json", root}},
		"nfs get --json":     {{"nfs", "get", "--json", file, filepath.Join(dir, "copy")}},
		"nfs put --json":     {{"nfs", "put", "--json", pcap, file}},
		"nfs bench --json": {{
			"nfs", "bench", "--duration", "1ms", "--file-size", "64K", "--size", "64K", "--json", nfsd.urls("/memory")["tcp"],
		}},
		"nfs bench --local --json": {{"nfs", "bench", "--local", "--duration", "1ms", "--file-size", "64K", "--size", "64K", "--json"}},
		"rpc info --json":          {{"rpc", "info", "--json", rpc}},
		"rpc call --json":          {{"rpc", "call", rpc, "100000", "4", "0", "--json"}, {"rpc", "call", rpc, "100000", "4", "6", "--json"}},
		"rds info --json":          {{"rds", "info", "--json"}},
		"rds ping --json":          {{"rds", "ping", "-c", "2", "--source", at.own, "--transport-port", at.port, "--json", at.peer}},
		"rds stress --json": {append([]string{
			"rds", "stress", "-r", at.active, "-s", at.passive, "-t", "1", "-d", "1", "--requests", "20", "--json",
		}, stress...)},
		"rx call --json": {{"rx", "call", "127.0.0.1:" + rxPort, "147", "3", "int:3", "int:4", "int:4", "int:0", "int:0", "--json"}},
		"rx debug --json": {
			{"rx", "debug", "127.0.0.1", rxPort, "--json"}, {"rx", "debug", "127.0.0.1", rxPort, "--stats", "--all", "--peers", "--version", "--json"},
		},
		"rx perf client --json": {{"rx", "perf", "client", "127.0.0.1:" + rxPort, "--calls", "5", "--baseline", "--json"}},
		"rdp send --json":       {{"rdp", "send", "--json", pcap, rdpRecv}},
		"rdp ping --json":       {{"rdp", "ping", "-c", "2", "--json", rdpRecv}},
		"rdp status --json":     {{"rdp", "status", "--json"}},
		"top --json":            {{"top", "--once", "--interval", "10ms", "--json"}},
	}
	runs["dissect --json"] = append(runs["dissect --json"], append([]string{"dissect", "--json"}, pcaps...))
	runs["dissect --summary --json"] = append(runs["dissect --summary --json"], append([]string{"dissect", "--summary", "--json"}, pcaps...))
	servers := map[string]func(t *testing.T) string{
		"nfsd --json": func(t *testing.T) string {
			return untilSaid(t, "nfsd", "--tcp", "127.0.0.1:0", "--rdma", "127.0.0.1:0", "--memory", "--json")
		},
		"conform serve --json": func(t *testing.T) string {
			return untilSaid(t, "conform", "serve", "--listen", "127.0.0.1:0", "--json")
		},
		"rdp recv --json": receivedJSON,
		"rds node --json": nodeJSON,
	}
	for _, f := range jsonFormats(t) {
		t.Run(f.command, func(t *testing.T) {
			var objects []map[string]any
			for _, args := range runs[f.command] {
				status, out, errOut := urnic(t, nil, args...)
				if status != 0 {
					t.Errorf("%v: status %d, %s", args, status, errOut)
				}
				objects = append(objects, f.validate(t, out)...)
			}
			if server := servers[f.command]; server != nil {
				objects = append(objects, f.validate(t, server(t))...)
			}
			if len(objects) == 0 {
				t.Fatal("no test runs it")
			}
			s := f.compile(t)
			wantRefused(t, s, objects[0])
			wantRefused(t, s, objects[len(objects)-1])
		})
	}
}

// receivedJSON returns what rdp recv prints of a file.
func receivedJSON(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "rdp", "recv", "-d", t.TempDir(), "-n", "1", "--json", "127.0.0.1:0")
	p.out.wait(t, "\n")
	var at struct{ Listening string }
	if err := json.Unmarshal([]byte(p.out.String()), &at); err != nil {
		t.Fatal(err)
	}
	ok(t, "rdp", "send", name, at.Listening)
	p.out.wait(t, `"duplicates"`)
	p.end(t)
	return p.out.String()
}

// nodeJSON returns what rds node prints of a peer, and of one that is not allowed.
func nodeJSON(t *testing.T) string {
	at := rdsNetOf(t)
	p := start(t, "rds", "node", "--allow", at.own, "--transport-port", at.port, "--json", at.peer)
	p.out.wait(t, "\n")
	ok(t, "rds", "ping", "-c", "1", "--source", at.own, "--transport-port", at.port, at.peer)
	urnic(t, nil, "rds", "ping", "-c", "1", "--timeout", "1ms", "--source", at.none, "--transport-port", at.port, at.peer)
	p.out.wait(t, `"disconnected"`)
	p.interrupt()
	p.end(t)
	return p.out.String()
}

// wantRefused checks that a schema refuses what differs from an object that conforms.
func wantRefused(t *testing.T, s *jsonschema.Schema, object map[string]any) {
	t.Helper()
	with := func(name string, value any) map[string]any {
		o := maps.Clone(object)
		if o[name] = value; value == nil {
			delete(o, name)
		}
		return o
	}
	if err := s.Validate(with("mood", "good")); err == nil {
		t.Error("the schema takes an object with a field more")
	}
	for name := range object {
		if s.Validate(with(name, []any{map[string]any{"mood": "good"}})) == nil {
			t.Errorf("the schema takes any %s", name)
		}
	}
	name := "format"
	if _, there := object[name]; !there {
		name = "event"
	}
	if s.Validate(with(name, nil)) == nil {
		t.Errorf("the schema takes an object without %s", name)
	}
}
