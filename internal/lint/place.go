package lint

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The files of a chart that findings are about.
const (
	chartFile  = "Chart.yaml"
	valuesFile = "values.yaml"
	schemaFile = "values.schema.json"
)

// position is a place in a text, from 1.
type position struct{ line, column int }

// positionAt is the place of a byte of a text.
func positionAt(text string, at int) position {
	at = min(max(at, 0), len(text))
	start := strings.LastIndexByte(text[:at], '\n') + 1
	return position{1 + strings.Count(text[:at], "\n"), 1 + len([]rune(text[start:at]))}
}

// jsonNode is a value in a JSON document, with the place of its key, or of itself in a list.
type jsonNode struct {
	at     int
	scalar any
	keys   []string
	fields map[string]*jsonNode
	items  []*jsonNode
	list   bool
}

// parseJSON reads a document whose keys' places matter. It is nil for what is no JSON.
func parseJSON(text []byte) *jsonNode {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	n, err := readJSON(d, text, 0)
	if err != nil {
		return nil
	}
	return n
}

func readJSON(d *json.Decoder, text []byte, at int) (*jsonNode, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := &jsonNode{at: at, scalar: t}
	switch t {
	case json.Delim('{'):
		n.scalar, n.fields = nil, map[string]*jsonNode{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, _ := key.(string)
			end := int(d.InputOffset())
			start := max(bytes.LastIndexByte(text[:max(end-1, 0)], '"'), 0)
			if n.fields[name], err = readJSON(d, text, start); err != nil {
				return nil, err
			}
			n.keys = append(n.keys, name)
		}
		_, err = d.Token()
	case json.Delim('['):
		n.scalar, n.list = nil, true
		for d.More() {
			item, err := readJSON(d, text, int(d.InputOffset()))
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		_, err = d.Token()
	}
	return n, err
}

// schemaDoc finds places in values.schema.json.
type schemaDoc struct {
	text string
	root *jsonNode
}

func newSchemaDoc(text []byte) *schemaDoc {
	return &schemaDoc{string(text), parseJSON(text)}
}

func (s *schemaDoc) place(n *jsonNode) position {
	if n == nil {
		return position{}
	}
	return positionAt(s.text, n.at)
}

// pointer finds what a place such as #/properties/a, as faults of schemas name it, is in the document.
func (s *schemaDoc) pointer(pointer string) *jsonNode {
	n := s.root
	rest, ok := strings.CutPrefix(pointer, "#")
	if !ok || n == nil {
		return nil
	}
	for _, token := range strings.Split(strings.TrimPrefix(rest, "/"), "/") {
		if token == "" {
			continue
		}
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		next := n.fields[token]
		if next == nil {
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.items) {
				next = n.items[i]
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// inside are the keywords through which a schema applies others to the same value.
var inside = []string{"allOf", "anyOf", "oneOf", "if", "then", "else"}

// around are a schema and those it applies to the same value, each once, as far as local references lead.
func (s *schemaDoc) around(n *jsonNode) []*jsonNode { return s.gather(n, map[*jsonNode]bool{}, nil) }

func (s *schemaDoc) gather(n *jsonNode, seen map[*jsonNode]bool, out []*jsonNode) []*jsonNode {
	if n == nil || n.fields == nil || seen[n] {
		return out
	}
	seen[n] = true
	out = append(out, n)
	if ref := n.fields["$ref"]; ref != nil {
		if to, ok := ref.scalar.(string); ok && strings.HasPrefix(to, "#") {
			out = s.gather(s.pointer(to), seen, out)
		}
	}
	for _, key := range inside {
		sub := n.fields[key]
		if sub == nil {
			continue
		}
		if sub.items == nil {
			out = s.gather(sub, seen, out)
		}
		for _, item := range sub.items {
			out = s.gather(item, seen, out)
		}
	}
	return out
}

// property finds where the schema declares a path, or nil.
func (s *schemaDoc) property(path []string) *jsonNode {
	if all := s.properties(path); len(all) > 0 {
		return all[0]
	}
	return nil
}

// properties are all places where the schema declares a path, the first one first.
func (s *schemaDoc) properties(path []string) []*jsonNode {
	at := s.around(s.root)
	var last []*jsonNode
	for _, key := range path {
		last = nil
		seen := map[*jsonNode]bool{}
		var next []*jsonNode
		for _, n := range at {
			properties := n.fields["properties"]
			if properties == nil || properties.fields[key] == nil {
				continue
			}
			last = append(last, properties.fields[key])
			next = s.gather(properties.fields[key], seen, next)
		}
		if last == nil {
			return nil
		}
		at = next
	}
	return last
}

// each visits every value of the document, with the keys that lead there.
func (n *jsonNode) each(path []string, visit func(path []string, n *jsonNode)) {
	if n == nil || len(path) > 200 {
		return
	}
	visit(path, n)
	for _, key := range n.keys {
		n.fields[key].each(append(path[:len(path):len(path)], key), visit)
	}
	for i, item := range n.items {
		item.each(append(path[:len(path):len(path)], strconv.Itoa(i)), visit)
	}
}

// yamlDoc finds places in a values file.
type yamlDoc struct{ root *yaml.Node }

func newYAMLDoc(text []byte) *yamlDoc {
	var n yaml.Node
	if yaml.Unmarshal(text, &n) != nil || len(n.Content) == 0 {
		return &yamlDoc{}
	}
	return &yamlDoc{n.Content[0]}
}

// place is where the key of a path stands, or of the nearest one around it.
func (y *yamlDoc) place(path []string) position {
	n, at := y.root, position{}
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return at
		}
		var next *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				at, next = position{n.Content[i].Line, n.Content[i].Column}, n.Content[i+1]
			}
		}
		if next == nil {
			return at
		}
		n = next
	}
	return at
}

// has tells whether a path is written in the file.
func (y *yamlDoc) has(path []string) bool {
	n := y.root
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return false
		}
		var next *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				next = n.Content[i+1]
			}
		}
		n = next
	}
	return n != nil
}

// keys visits every mapping key that is written in the file. Aliases are not followed.
func (y *yamlDoc) keys(visit func(key *yaml.Node, path []string)) { walkKeys(y.root, nil, visit) }

func walkKeys(n *yaml.Node, path []string, visit func(*yaml.Node, []string)) {
	if n == nil || len(path) > 200 {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at := append(slices.Clone(path), n.Content[i].Value)
			visit(n.Content[i], at)
			walkKeys(n.Content[i+1], at, visit)
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			walkKeys(item, append(slices.Clone(path), "[]"), visit)
		}
	}
}
