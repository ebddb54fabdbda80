package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"zaentrum.io/zae/internal/fault"
)

// yamlText writes a tree of JSON types as YAML that every reader reads alike, whichever version of YAML it knows, and
// that holds no character that could steer a terminal. Keys are sorted.
func yamlText(tree any) (string, error) {
	n, err := yamlNode(tree)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return "", fault.New(fault.Internal, "the answer cannot be written as YAML").Because(err)
	}
	return escaped(out.String()), nil
}

// plainWord is text that needs no quotes in any version of YAML, but for the words below.
var plainWord = regexp.MustCompile(`^[A-Za-z_/]([A-Za-z0-9_./:@-]*[A-Za-z0-9_/])?$`)

// otherWords are read as something else than text by some.
var otherWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

func yamlNode(v any) (*yaml.Node, error) {
	switch v := v.(type) {
	case nil:
		return scalar("!!null", "null"), nil
	case bool:
		return scalar("!!bool", strconv.FormatBool(v)), nil
	case int64:
		return scalar("!!int", strconv.FormatInt(v, 10)), nil
	case float64:
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fault.New(fault.Internal, "a number cannot be written as YAML").Because(err)
		}
		return scalar("!!float", string(text)), nil
	case string:
		return yamlString(v), nil
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v {
			child, err := yamlNode(item)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		return n, nil
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			child, err := yamlNode(v[key])
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, yamlKey(key), child)
		}
		return n, nil
	default:
		return nil, fault.New(fault.Internal, "a value of type %s cannot be written as YAML", fmt.Sprintf("%T", v))
	}
}

func scalar(tag, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

// yamlString is a word, a block of lines, or in double quotes, where every character can be escaped.
func yamlString(text string) *yaml.Node {
	n := scalar("!!str", text)
	steering := strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && steers(r) })
	switch {
	case !steering && strings.Contains(strings.TrimRight(text, "\n"), "\n") && !strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "\n"):
		n.Style = yaml.LiteralStyle
	case plainWord.MatchString(text) && !slices.Contains(otherWords, strings.ToLower(text)):
	default:
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func yamlKey(text string) *yaml.Node {
	n := yamlString(text)
	if n.Style == yaml.LiteralStyle {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
