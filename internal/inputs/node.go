package inputs

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"zaentrum.io/zae/internal/fault"
)

// MaxSchemaBytes is the largest values.schema.json, in bytes (decisions §3).
const MaxSchemaBytes = 256 << 10

const (
	maxDepth    = 200 // levels of nesting, in the schema and in values
	maxDigits   = 200 // characters of a number in the schema
	maxExponent = 400 // of a number in the schema: float64 ends at 308, and exact arithmetic on more takes memory without end
)

type kind int

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// node is JSON with the order of its keys.
type node struct {
	kind   kind
	truth  bool             // of a bool
	text   string           // of a string; a number as written
	items  []*node          // of an array
	keys   []string         // of an object, in document order, each once
	fields map[string]*node // of an object
}

func (n *node) field(key string) *node {
	if n == nil || n.kind != kindObject {
		return nil
	}
	return n.fields[key]
}

func (n *node) str(key string) (string, bool) {
	if f := n.field(key); f != nil && f.kind == kindString {
		return f.text, true
	}
	return "", false
}

func (n *node) isTrue(key string) bool {
	f := n.field(key)
	return f != nil && f.kind == kindBool && f.truth
}

// value is the node as plain JSON: integers that fit are int64, other numbers float64.
func (n *node) value() any {
	switch n.kind {
	case kindBool:
		return n.truth
	case kindNumber:
		return number(json.Number(n.text))
	case kindString:
		return n.text
	case kindArray:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = item.value()
		}
		return out
	case kindObject:
		out := make(map[string]any, len(n.keys))
		for _, key := range n.keys {
			out[key] = n.fields[key].value()
		}
		return out
	default:
		return nil
	}
}

// raw is the node as plain JSON with numbers as written, for exact comparison.
func (n *node) raw() any {
	switch n.kind {
	case kindNumber:
		return json.Number(n.text)
	case kindArray:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = item.raw()
		}
		return out
	case kindObject:
		out := make(map[string]any, len(n.keys))
		for _, key := range n.keys {
			out[key] = n.fields[key].raw()
		}
		return out
	default:
		return n.value()
	}
}

func number(n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, _ := n.Float64()
	f = max(-math.MaxFloat64, min(math.MaxFloat64, f)) // JSON has no infinity
	if f == float64(int64(f)) && f < 1<<53 && f > -(1<<53) {
		return int64(f)
	}
	return f
}

// read turns the text of a schema into nodes. Depth and numbers are bounded before anything recurses.
func read(text []byte) (*node, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, notJSON(text, err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return readValue(dec, text, 0)
}

func readValue(dec *json.Decoder, text []byte, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, invalid(line(text, dec.InputOffset()), "nested deeper than %d levels", maxDepth)
	}
	token, err := dec.Token()
	if err != nil {
		return nil, notJSON(text, err)
	}
	switch token := token.(type) {
	case nil:
		return &node{kind: kindNull}, nil
	case bool:
		return &node{kind: kindBool, truth: token}, nil
	case string:
		return &node{kind: kindString, text: token}, nil
	case json.Number:
		if !reasonable(string(token)) {
			return nil, invalid(line(text, dec.InputOffset()), "a number with too many digits")
		}
		return &node{kind: kindNumber, text: string(token)}, nil
	case json.Delim:
		if token == '[' {
			return readArray(dec, text, depth)
		}
		return readObject(dec, text, depth)
	}
	return nil, invalid(line(text, dec.InputOffset()), "not valid JSON")
}

func readArray(dec *json.Decoder, text []byte, depth int) (*node, error) {
	n := &node{kind: kindArray}
	for dec.More() {
		item, err := readValue(dec, text, depth+1)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
	}
	_, err := dec.Token()
	return n, err
}

func readObject(dec *json.Decoder, text []byte, depth int) (*node, error) {
	n := &node{kind: kindObject, fields: map[string]*node{}}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, notJSON(text, err)
		}
		key, _ := token.(string)
		if _, again := n.fields[key]; again { // which one counts is each reader's choice
			return nil, invalid(line(text, dec.InputOffset()), "%s is there twice", showKey(key))
		}
		value, err := readValue(dec, text, depth+1)
		if err != nil {
			return nil, err
		}
		n.keys = append(n.keys, key)
		n.fields[key] = value
	}
	_, err := dec.Token()
	return n, err
}

// reasonable tells whether exact arithmetic on the number stays small.
func reasonable(number string) bool {
	if len(number) > maxDigits {
		return false
	}
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return true
	}
	exponent, err := strconv.Atoi(number[i+1:])
	return err == nil && exponent <= maxExponent && exponent >= -maxExponent
}

// magnitude is how long the number is when written out.
func magnitude(number string) int {
	n := len(number)
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		exponent, _ := strconv.Atoi(number[i+1:])
		n += max(exponent, -exponent)
	}
	return n
}

// bulk is how many values there are in the node, and how many bytes of text.
func (n *node) bulk() (values, bytes int) {
	if n == nil {
		return 0, 0
	}
	values = 1
	if n.kind == kindString {
		bytes = len(n.text)
	}
	inside := func(n *node) {
		v, b := n.bulk()
		values += v
		bytes += b
	}
	for _, item := range n.items {
		inside(item)
	}
	for _, key := range n.keys {
		bytes += len(key)
		inside(n.fields[key])
	}
	return values, bytes
}

func notJSON(text []byte, err error) error {
	place := ""
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		place = line(text, syntax.Offset)
	}
	return invalid(place, "not valid JSON")
}

// line is where an offset is, for people.
func line(text []byte, offset int64) string {
	offset = min(max(offset, 0), int64(len(text)))
	return "line " + strconv.Itoa(1+bytes.Count(text[:offset], []byte("\n")))
}

// invalid is a fault of the schema at a place, which may be empty.
func invalid(place, format string, args ...any) *fault.Fault {
	if place != "" {
		place = " " + place
	}
	return fault.New(fault.Chart, "values.schema.json"+strings.ReplaceAll(place, "%", "%%")+": "+format, args...)
}
