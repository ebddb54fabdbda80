package lint

import (
	"fmt"
	"strings"
)

// Markdown is the catalogue as tables, for the documentation.
func Markdown() string {
	var b strings.Builder
	table := func(guardrails, notices bool) {
		b.WriteString("| rule | severity | what must hold | why | way out |\n|---|---|---|---|---|\n")
		for _, r := range Catalogue() {
			if r.Guardrail == guardrails && r.Notice == notices {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.ID, r.Severity, cell(r.Title), cell(r.Why), cell(r.Fix))
			}
		}
	}
	b.WriteString("## Guardrails\n\nThe operator judges by them, too. One of severity error refuses the plan, and cannot be ignored.\n\n")
	table(true, false)
	b.WriteString("\n## Notices\n\nOnly plans tell of these, to the admin who reads them; they refuse nothing.\n\n")
	table(true, true)
	b.WriteString("\n## For authors\n\nOnly `zae addon lint` tells of these.\n\n")
	table(false, false)
	return b.String()
}

// cell is text in a table of Markdown.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(s)
}
