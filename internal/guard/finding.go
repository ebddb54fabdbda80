package guard

import "slices"

// Level is what a finding means for the plan.
type Level string

// The levels.
const (
	Refuse Level = "refuse" // a violation: nothing of the chart is applied
	Warn   Level = "warn"   // worth a look; it blocks nothing
)

// Rule is one guardrail. It is a value: its text is the catalogue, its check is the rule.
type Rule struct {
	ID    string   `json:"id"`    // permanent, kebab-case
	Title string   `json:"title"` // what must hold, in a few words
	Level Level    `json:"level"`
	Kinds []string `json:"kinds,omitempty"` // what it looks at; empty for objects of every kind
	// Ours tells that the rule is no row of the contract's table.
	Ours bool `json:"ours,omitempty"`
	// Notice tells that the rule is for the admin who reads a plan, rather than for the author of the chart.
	Notice bool   `json:"notice,omitempty"`
	Why    string `json:"why"`
	Fix    string `json:"fix"` // the way out, for the author of the chart

	// How it is decided: once for the chart, for each object, from what was observed in the cluster, or for each
	// object beside what others have there.
	chart      func(*scope) []hit
	object     func(*scope, *object) []hit
	observed   bool
	neighbours func(Neighbours, *object) []hit
}

func (r Rule) covers(kind string) bool {
	return len(r.Kinds) == 0 || slices.Contains(r.Kinds, kind)
}

func (r Rule) finding(kind, name, source string, h hit) Finding {
	return Finding{
		Rule: r.ID, Level: r.Level,
		Kind: clean(kind, maxKind), Name: clean(name, maxName),
		Path: h.path, What: h.what, Source: clean(source, maxName),
	}
}

// RuleByID finds a rule of the table.
func RuleByID(id string) (Rule, bool) {
	for _, r := range Rules() {
		if r.ID == id {
			return r, true
		}
	}
	return Rule{}, false
}

// Finding is one place where a rule is broken. All its text is fit to be shown.
type Finding struct {
	Rule   string `json:"rule"`
	Level  Level  `json:"level"`
	Kind   string `json:"kind"`             // Chart for the chart itself; empty when the object has none
	Name   string `json:"name,omitempty"`   // empty for the chart, and when the object has none
	Path   string `json:"path,omitempty"`   // the field, such as spec.template.spec.volumes[1]
	What   string `json:"what"`             // what is wrong there
	Source string `json:"source,omitempty"` // the template the object comes from
}

// String is "Kind/name: what (where)", and "Chart: what" for the chart.
func (f Finding) String() string {
	var subject string
	switch {
	case f.Kind == ChartKind && f.Name == "":
		subject = f.Kind
	default:
		subject = or(f.Kind, "(no kind)") + "/" + or(f.Name, "(no name)")
	}
	s := subject + ": " + f.What
	if f.Path != "" {
		s += " (" + f.Path + ")"
	}
	return s
}

// Refused are the findings that block a plan, in their order.
func Refused(found []Finding) []Finding {
	var out []Finding
	for _, f := range found {
		if f.Level == Refuse {
			out = append(out, f)
		}
	}
	return out
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
