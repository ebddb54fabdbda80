package cli

import (
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// role is what a text is. How that looks is said here and nowhere else, in the sixteen colours that the
// person's own terminal defines: no background has to be known for them to be readable.
type role int

const (
	ordinary role = iota
	strong        // what to look at first
	faint         // what may be skipped
	good
	changed
	bad
)

func (r role) style() lipgloss.Style {
	s := lipgloss.NewStyle()
	switch r {
	case strong:
		return s.Bold(true)
	case faint:
		return s.Faint(true)
	case good:
		return s.Foreground(lipgloss.Green)
	case changed:
		return s.Foreground(lipgloss.Yellow)
	case bad:
		return s.Foreground(lipgloss.Red)
	default:
		return s
	}
}

type styled struct {
	role role
	text string
}

// style is text that is shown as what it is where colours are.
func style(r role, text string) styled { return styled{r, text} }

// cells is how much room text takes on a terminal.
func cells(text string) int { return lipgloss.Width(text) }

// cut shortens text to a number of cells, the last being an ellipsis.
func cut(text string, room int) string {
	if room <= 0 {
		return ""
	}
	return ansi.Truncate(text, room, "…")
}
