package inputs

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// WithoutSecretDefaults is a values.schema.json without the defaults of secret inputs, and of what holds secrets. It is
// the same text where there are none, and where the schema cannot be read.
func WithoutSecretDefaults(schema []byte) []byte {
	if len(schema) > MaxSchemaBytes || !bytes.Contains(schema, []byte("writeOnly")) && !bytes.Contains(schema, []byte(`\u`)) {
		return schema
	}
	doc, err := read(schema)
	if err != nil {
		return schema
	}
	g, err := resolve(doc)
	if err != nil {
		return schema
	}
	d := &describer{views: map[*subschema]view{}, loose: map[string]bool{}}
	if err := d.describe(d.view(g.root)); err != nil {
		return schema
	}
	drop := map[*node]bool{}
	for _, s := range g.all {
		if s.secrets {
			drop[s.doc], drop[s.src] = true, true
		}
	}
	seen := map[*subschema]bool{}
	var below func(s *subschema)
	below = func(s *subschema) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		drop[s.doc], drop[s.src] = true, true
		for _, kids := range s.kids {
			for _, k := range kids {
				below(k.sub)
			}
		}
		below(s.target)
	}
	for _, v := range d.secrets {
		for _, s := range v {
			below(s)
		}
	}
	w := &publisher{drop: drop}
	w.write(doc)
	if !w.dropped {
		return schema
	}
	var out bytes.Buffer
	if err := json.Indent(&out, w.out.Bytes(), "", "  "); err != nil {
		return schema
	}
	return append(out.Bytes(), '\n')
}

// publisher writes a document in its own order, without the defaults of some objects.
type publisher struct {
	drop    map[*node]bool
	dropped bool
	out     bytes.Buffer
}

func (p *publisher) write(n *node) {
	switch n.kind {
	case kindNull:
		p.out.WriteString("null")
	case kindBool:
		p.out.WriteString(strconv.FormatBool(n.truth))
	case kindNumber:
		p.out.WriteString(n.text)
	case kindString:
		p.text(n.text)
	case kindArray:
		p.out.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				p.out.WriteByte(',')
			}
			p.write(item)
		}
		p.out.WriteByte(']')
	case kindObject:
		p.out.WriteByte('{')
		first := true
		for _, key := range n.keys {
			if key == "default" && p.drop[n] {
				p.dropped = true
				continue
			}
			if !first {
				p.out.WriteByte(',')
			}
			first = false
			p.text(key)
			p.out.WriteByte(':')
			p.write(n.fields[key])
		}
		p.out.WriteByte('}')
	}
}

func (p *publisher) text(text string) {
	e := json.NewEncoder(&p.out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text always can be; the line end behind it is none that matters
}
