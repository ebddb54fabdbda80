package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ExceptionsFile is where a chart says which advice it does not follow, and why.
const ExceptionsFile = ".zaelint.yaml"

// exception is one entry.
type exception struct {
	rule, file, reason string
	at                 position
}

// exceptions marks what the chart's own list silences, and answers with what is wrong with the list.
func (l *linter) exceptions() []Finding {
	raw, ok := l.src.Extra[ExceptionsFile]
	if !ok {
		packed, there := l.text[ExceptionsFile]
		if !there {
			return nil
		}
		raw = []byte(packed)
	}
	list, out := parseExceptions(raw)
	for _, e := range list {
		used := false
		for _, one := range l.f.list {
			if one.Rule == e.rule && (e.file == "" || e.file == one.File || e.file == one.source) {
				l.f.ignored[one.key()] = true
				used = true
			}
		}
		if !used && l.wouldShow(e.rule) {
			out = append(out, Finding{
				Rule: "ignore-unused", File: ExceptionsFile, Line: e.at.line, Column: e.at.column, Path: e.rule,
				Message: fmt.Sprintf("the entry for %s (line %d) ignores nothing", e.rule, e.at.line),
			})
		}
	}
	return out
}

// againstRules are those of which only the version before shows anything.
var againstRules = []string{"input-removed", "version-not-raised", "input-newly-required", "immutable-field", "claim-deleted"}

// wouldShow tells whether a rule would have been told of if the chart breaks it: all was rendered, and compared.
func (l *linter) wouldShow(rule string) bool {
	if slices.Contains(againstRules, rule) && l.before == nil {
		return false
	}
	return l.rendered && l.more == 0 && l.over == 0 && l.probedAll
}

// parseExceptions reads the list strictly. Entries that are not valid silence nothing.
func parseExceptions(text []byte) (list []exception, wrong []Finding) {
	bad := func(n *yaml.Node, fix, format string, args ...any) {
		one := Finding{Rule: "ignore-invalid", File: ExceptionsFile, Message: fmt.Sprintf(format, args...), Fix: fix}
		if n != nil {
			one.Line, one.Column = n.Line, n.Column
			one.Message += fmt.Sprintf(" (line %d)", n.Line)
		}
		wrong = append(wrong, one)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		bad(&yaml.Node{Line: brokenLine(string(text)), Column: 1}, "", "the file is not valid YAML")
		return nil, wrong
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		bad(root, "", "the file is not a mapping with the key ignore")
		return nil, wrong
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Value != "ignore" || value.Kind != yaml.SequenceNode {
			bad(key, "", "%q is not the key ignore with a list", key.Value)
			continue
		}
		for _, item := range value.Content {
			if e, ok := parseException(item, bad); ok {
				list = append(list, e)
			}
		}
	}
	return list, wrong
}

func parseException(n *yaml.Node, bad func(*yaml.Node, string, string, ...any)) (exception, bool) {
	e := exception{at: position{n.Line, n.Column}}
	if n.Kind != yaml.MappingNode {
		bad(n, "", "an entry is not a mapping of rule, file and reason")
		return e, false
	}
	ok := true
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		var to *string
		switch key.Value {
		case "rule":
			to = &e.rule
		case "file":
			to = &e.file
		case "reason":
			to = &e.reason
		}
		if to == nil || value.Kind != yaml.ScalarNode {
			bad(key, "", "%q is none of rule, file and reason with a text", key.Value)
			ok = false
			continue
		}
		*to = value.Value
	}
	if e.file != "" {
		e.file = path.Clean(e.file)
	}
	rule, known := RuleByID(e.rule)
	switch {
	case !ok:
	case !known:
		bad(n, "Write the id of a rule as findings name it; zae addon explain lists them.", "there is no rule %q", e.rule)
	case rule.Fixed && rule.Guardrail:
		bad(n, "Remove the entry, and the finding's cause.", "%s is a guardrail: the operator refuses it whatever is written here", e.rule)
	case rule.Fixed:
		bad(n, "Remove the entry, and the finding's cause.", "%s cannot be ignored", e.rule)
	case strings.TrimSpace(e.reason) == "":
		bad(n, "Add reason: why this is right here.", "the entry for %s has no reason", e.rule)
	default:
		return e, true
	}
	return e, false
}
