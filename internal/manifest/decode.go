package manifest

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// DecodeError is a YAML fault with its place. It never quotes the text.
type DecodeError struct {
	Line int // 1-based line in the decoded text; 0 when unknown
	What string
}

// Error is the place and what is wrong there.
func (e *DecodeError) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.What)
}

const (
	maxDepth   = 100       // nesting; the API server refuses deeper objects itself
	maxAliases = 1_000_000 // nodes after alias expansion, per document
)

// Decode reads all documents of a YAML text into trees, in order. Empty documents are left out.
//
// It is strict: duplicate keys, keys that are not strings, anchors that expand without bound and values
// that JSON cannot hold are errors. Scalars follow YAML 1.1 for booleans as Kubernetes' own decoder does
// (on, off, yes, no, y and n are booleans when they stand unquoted as values); keys are always strings as
// written. Integers that fit stay int64; all other numbers are float64.
func Decode(text []byte) ([]any, error) {
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	var docs []any
	for {
		var node yaml.Node
		err := dec.Decode(&node)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, syntaxError(err)
		}
		budget := maxAliases
		v, err := convert(&node, 0, &budget)
		if err != nil {
			return nil, err
		}
		if v != nil {
			docs = append(docs, v)
		}
	}
}

// syntaxError keeps the line of a yaml error and drops its text, which may quote a value.
func syntaxError(err error) *DecodeError {
	_, rest, ok := strings.Cut(err.Error(), "line ")
	if !ok {
		return &DecodeError{What: "not valid YAML"}
	}
	digits := rest
	if i := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = rest[:i]
	}
	line, _ := strconv.Atoi(digits)
	return &DecodeError{Line: line, What: "not valid YAML"}
}

func convert(n *yaml.Node, depth int, budget *int) (any, error) {
	if depth > maxDepth {
		return nil, &DecodeError{n.Line, fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	if *budget--; *budget < 0 {
		return nil, &DecodeError{n.Line, "aliases expand to too much"}
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return convert(n.Content[0], depth, budget)
	case yaml.AliasNode:
		return convert(n.Alias, depth+1, budget)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := convert(c, depth+1, budget)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		return convertMapping(n, depth, budget)
	case yaml.ScalarNode:
		return convertScalar(n)
	default:
		return nil, nil
	}
}

// mergeKey stands for "<<" among the keys of a mapping. In quotes that is a key like any other.
const mergeKey = "\x00<<"

func convertMapping(n *yaml.Node, depth int, budget *int) (any, error) {
	out := make(map[string]any, len(n.Content)/2)
	lines := make(map[string]int, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, &DecodeError{key.Line, "a key that is not a string"}
		}
		if key.Tag == "!!merge" {
			if first, dup := lines[mergeKey]; dup {
				return nil, &DecodeError{key.Line, fmt.Sprintf("duplicate key, first set on line %d", first)}
			}
			lines[mergeKey] = key.Line
			merges = append(merges, value)
			continue
		}
		if first, dup := lines[key.Value]; dup {
			return nil, &DecodeError{key.Line, fmt.Sprintf("duplicate key, first set on line %d", first)}
		}
		lines[key.Value] = key.Line
		v, err := convert(value, depth+1, budget)
		if err != nil {
			return nil, err
		}
		out[key.Value] = v
	}
	for _, m := range merges {
		if err := merge(out, m, depth, budget); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// merge puts the keys of a "<<" value under those already there, as the YAML merge key type says.
func merge(out map[string]any, n *yaml.Node, depth int, budget *int) error {
	v, err := convert(n, depth+1, budget)
	if err != nil {
		return err
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			return &DecodeError{n.Line, "a merge of something that is not a mapping"}
		}
		for k, v := range m {
			if _, set := out[k]; !set {
				out[k] = v
			}
		}
	}
	return nil
}

func convertScalar(n *yaml.Node) (any, error) {
	plain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	if plain && n.Tag == "!!str" {
		switch n.Value {
		case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
			return true, nil
		case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
			return false, nil
		}
	}
	switch n.Tag {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return nil, &DecodeError{n.Line, "not a boolean"}
		}
		return b, nil
	case "!!int":
		return convertInt(n)
	case "!!float":
		var f float64
		if err := n.Decode(&f); err != nil {
			return nil, &DecodeError{n.Line, "not a number"}
		}
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, &DecodeError{n.Line, "a number that JSON cannot hold"}
		}
		return f, nil
	case "!!binary":
		return nil, &DecodeError{n.Line, "binary values are not supported: write base64 text"}
	default: // strings, time stamps and tags of others: the text as written
		return n.Value, nil
	}
}

func convertInt(n *yaml.Node) (any, error) {
	var i int64
	if err := n.Decode(&i); err == nil {
		return i, nil
	}
	var f float64
	if err := n.Decode(&f); err == nil {
		return f, nil
	}
	if b, ok := new(big.Int).SetString(strings.ReplaceAll(n.Value, "_", ""), 0); ok {
		f, _ := new(big.Float).SetInt(b).Float64()
		if !math.IsInf(f, 0) {
			return f, nil
		}
	}
	return nil, &DecodeError{n.Line, "a number that JSON cannot hold"}
}
