package page

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"strconv"
)

// batchBytes is how large a batch grows, in bytes before it is compressed: as much as a browser decompresses
// without a pause that a person notices.
const batchBytes = 512 << 10

// A part is a piece of JSON, compressed.
type part struct {
	Name string
	Text template.HTML // base64 of the raw DEFLATE form, whose characters need no escapes
}

// Parts are what a page holds compressed. The zero value is empty.
type Parts struct {
	done    []part
	size    int
	batch   []string
	bytes   int
	batches int
}

// Size returns how many bytes of the page the finished parts take.
func (p *Parts) Size() int { return p.size }

// Add adds a value as a part of its own. Its error is that of encoding/json.
func (p *Parts) Add(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	text := base64.StdEncoding.EncodeToString(deflate(b))
	p.done = append(p.done, part{name, template.HTML(text)})
	p.size += len(text)
	return nil
}

// Batch adds a text to the current batch of texts, as many small texts compress well together only. It
// returns the part that will have it, an array of strings, and the place in it.
func (p *Parts) Batch(text string) (name string, index int) {
	if p.bytes > 0 && p.bytes+len(text) > batchBytes {
		p.flush()
	}
	p.batch = append(p.batch, text)
	p.bytes += len(text)
	return p.batchName(), len(p.batch) - 1
}

func (p *Parts) batchName() string { return "batch-" + strconv.Itoa(p.batches) }

// flush ends the current batch.
func (p *Parts) flush() {
	if len(p.batch) == 0 {
		return
	}
	name := p.batchName()
	_ = p.Add(name, p.batch) // strings have a JSON form
	p.batch, p.bytes = nil, 0
	p.batches++
}

func deflate(b []byte) []byte {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestCompression) // the level is valid
	_, _ = w.Write(b)                                    // a Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}
