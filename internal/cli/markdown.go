package cli

import (
	"fmt"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/guard"
	"zaentrum.io/zae/internal/inputs"
)

// markdownPlan is a summary of a plan for a pull request. show makes text fit to be seen; nothing of what a chart
// wrote is read as markup.
func markdownPlan(show func(string) string, v *planView, findings []guard.Finding) string {
	m := &markdown{show: show}
	p := v.doc.Plan
	verdict := "can be installed"
	if p.Blocked() {
		verdict = fmt.Sprintf("is refused (%d)", len(p.Violations)+len(p.ValuesErrors))
	}
	m.line("### Plan of " + m.code(v.doc.Name) + " " + m.code(p.Chart.Version))
	m.line("")
	m.line(fmt.Sprintf("The plan **%s**: %s, %s, %s, %s, %s.", verdict, count(len(p.Objects), "object"), count(len(p.Workloads), "workload"),
		count(len(p.Violations), "violation"), count(len(p.ValuesErrors), "values error"), count(len(p.Warnings), "warning")))
	m.line("")
	m.line("Chart " + m.code(p.Chart.Name) + ", archive " + m.code(p.Chart.Digest))

	m.table("Violations", []string{"what", "rule", "template", "way out"}, violationRows(m, findings))
	m.table("Values errors", []string{"what", "way out"}, valuesRows(m, v))
	m.table("Warnings", []string{"what"}, rows(p.Warnings, func(w string) []string { return []string{m.code(w)} }))
	m.table("Objects", []string{"kind", "name", "waits for"}, rows(p.Objects, func(o v1alpha1.ObjectRef) []string {
		return []string{m.code(o.Kind), m.code(o.Name), waitsFor(o)}
	}))
	m.table("Workloads", []string{"workload", "ports"}, rows(p.Workloads, func(w v1alpha1.Workload) []string {
		var ports []string
		for _, port := range w.Ports {
			ports = append(ports, fmt.Sprint(port))
		}
		return []string{m.code(w.Kind + "/" + w.Name), orDash(strings.Join(ports, ", "))}
	}))
	m.table("Images", []string{"image", "workload"}, imageRows(m, p.Workloads))
	states := map[string]v1alpha1.InputState{}
	for _, in := range p.Inputs {
		states[in.Path] = in.State
	}
	m.table("Inputs", []string{"input", "type", "state", "title"}, rows(v.inputs, func(in inputs.Input) []string {
		return []string{m.code(in.Path), inputKind(in), orDash(string(states[in.Path])), m.code(in.Title)}
	}))
	return m.out.String()
}

func violationRows(m *markdown, findings []guard.Finding) [][]string {
	return rows(guard.Refused(findings), func(f guard.Finding) []string {
		rule, _ := guard.RuleByID(f.Rule)
		return []string{m.code(f.String()), m.code(f.Rule), m.code(f.Source), m.code(rule.Fix)}
	})
}

func valuesRows(m *markdown, v *planView) [][]string {
	shown := map[string]bool{}
	return rows(v.doc.Plan.ValuesErrors, func(text string) []string {
		place, _, _ := strings.Cut(text, ": ")
		var ways []string
		for _, in := range v.inputs {
			if !shown[in.Path] && (in.Path == place || v.missing(in) && strings.HasPrefix(in.Path, place+".")) {
				shown[in.Path] = true
				ways = append(ways, m.code(v.howToGive(in)))
			}
		}
		if words := v.hiddenWords(text); words != "" {
			ways = append(ways, m.code(words))
		}
		return []string{m.code(text), orDash(strings.Join(ways, "<br>"))}
	})
}

func imageRows(m *markdown, workloads []v1alpha1.Workload) [][]string {
	var out [][]string
	for _, w := range workloads {
		for _, image := range w.Images {
			out = append(out, []string{m.code(image), m.code(w.Kind + "/" + w.Name)})
		}
	}
	return out
}

// inputKind is the type of an input, and how it comes about.
func inputKind(in inputs.Input) string {
	return strings.Join(nonEmpty(in.Type, secrecy(in)), ", ")
}

// secrecy tells secret and generated inputs.
func secrecy(in inputs.Input) string {
	var parts []string
	switch {
	case in.Secret:
		parts = append(parts, "secret")
	case in.HoldsSecrets:
		parts = append(parts, "parts are secret")
	}
	if in.Generate != "" {
		parts = append(parts, "generated")
	}
	return strings.Join(parts, ", ")
}

func rows[T any](list []T, row func(T) []string) [][]string {
	var out [][]string
	for _, item := range list {
		out = append(out, row(item))
	}
	return out
}

// markdown is a document being written. Its own words are plain; everything else goes through code.
type markdown struct {
	show func(string) string
	out  strings.Builder
}

func (m *markdown) line(text string) { m.out.WriteString(text + "\n") }

// table is left out when it has no rows.
func (m *markdown) table(title string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	m.line(fmt.Sprintf("\n#### %s (%d)\n", title, len(rows)))
	m.line("| " + strings.Join(head, " | ") + " |")
	m.line("|" + strings.Repeat(" --- |", len(head)))
	for _, row := range rows {
		m.line("| " + strings.Join(row, " | ") + " |")
	}
}

// code shows text as it is. Every character that could be markup is a numeric reference, which is never read as one;
// the element around it keeps a site from making mentions, references and links of what is left.
func (m *markdown) code(text string) string {
	text = m.show(text)
	if strings.TrimSpace(text) == "" {
		return "-"
	}
	var b strings.Builder
	b.WriteString("<code>")
	for i, r := range text {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == ' ', r == '-', r == '/', r == ',', r > 0x7f,
			r == ':' && !strings.HasPrefix(text[i:], "://"),
			r == '.' && !strings.HasSuffix(strings.ToLower(text[:i]), "www"):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "&#%d;", r)
		}
	}
	b.WriteString("</code>")
	return b.String()
}
