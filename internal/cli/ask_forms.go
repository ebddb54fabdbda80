package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
)

// forms asks with what huh draws, on the streams it is given and on nothing else. What was asked and
// answered stays on the screen as the line that lineByLine would have left there.
type forms struct {
	p         *printer
	in, out   *os.File
	term      string
	interrupt func() // what Ctrl-C does while the terminal makes no signal of it
}

func (f *forms) keys() string { return "Enter takes an answer, Esc or Ctrl-C ends" }

func (f *forms) confirm(ctx context.Context, title string) (bool, error) {
	title = f.p.show(title) + " [y/N]"
	yes := false
	field := huh.NewConfirm().Title(title + " ").Inline(true).WithButtonAlignment(lipgloss.Left).Value(&yes)
	if err := f.run(ctx, field, title, new(keyboard)); err != nil {
		return false, err
	}
	answer := "no"
	if yes {
		answer = "yes"
	}
	f.p.printf("%s %s\n", title, answer)
	return yes, nil
}

func (f *forms) text(ctx context.Context, q question) (string, error) {
	var text string
	k := new(keyboard)
	field := huh.NewInput().Title(f.p.show(q.label)).Description(f.p.show(q.help)).Prompt("> ").Value(&text).
		Validate(func(text string) error {
			switch {
			case k.torn:
				k.torn = false
				return errTorn
			case q.judge == nil:
				return nil
			}
			if err := q.judge(text); err != nil {
				return errors.New(f.p.show(err.Error()))
			}
			return nil
		})
	if q.secret {
		field.EchoMode(huh.EchoModePassword)
	}
	if err := f.run(ctx, field, q.label, k); err != nil {
		return "", err
	}
	shown := text
	if q.secret {
		shown = ""
	}
	f.p.printf("%s\n", strings.TrimRight(q.label+" "+shown, " "))
	return text, nil
}

func (f *forms) choose(ctx context.Context, q question, options []string) (int, error) {
	var chosen int
	var list []huh.Option[int]
	for i, text := range options {
		list = append(list, huh.NewOption(f.p.show(text), i))
	}
	field := huh.NewSelect[int]().Title(f.p.show(q.label)).Description(f.p.show(q.help)).Options(list...).Value(&chosen)
	if err := f.run(ctx, field, q.label, new(keyboard)); err != nil {
		return 0, err
	}
	f.p.printf("%s %s\n", q.label, options[chosen])
	return chosen, nil
}

// run shows one field until it is answered or given up. Afterwards nothing of it is on the screen.
func (f *forms) run(ctx context.Context, field huh.Field, label string, k *keyboard) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	keys := huh.NewDefaultKeyMap()
	keys.Quit.SetKeys(givingUp...)
	keys.Select.Filter.SetEnabled(false) // it would take Esc
	form := huh.NewForm(huh.NewGroup(field)).
		WithAccessible(false).WithShowHelp(false).WithTheme(huh.ThemeFunc(theme)).WithKeyMap(keys).
		WithViewHook(func(v tea.View) tea.View { v.ReportFocus = false; return v }).
		WithProgramOptions(
			tea.WithInput(f.in), tea.WithOutput(&quiet{tty: f.out}),
			tea.WithEnvironment([]string{"TERM=" + f.term}), tea.WithColorProfile(colorprofile.ANSI),
			tea.WithoutSignalHandler(), tea.WithFilter(k.filter),
		)
	forget(f.in)
	err := form.RunWithContext(ctx)
	if err == nil {
		return nil
	}
	f.p.printf("%s\n", label)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case k.gaveUp == "ctrl+c":
		f.interrupt()
		<-ctx.Done()
		return context.Cause(ctx)
	case errors.Is(err, huh.ErrUserAborted):
		return noAnswer(err)
	default:
		return fmt.Errorf("the question could not be shown: %w", err)
	}
}

var givingUp = []string{"ctrl+c", "ctrl+d", "esc"}

// errTorn is what is said of a text that a field would have changed without a word.
var errTorn = errors.New("a text of several lines cannot be pasted here: end with Ctrl-C, and give it in a file")

// keyboard looks at what comes from the person before a form does.
type keyboard struct {
	gaveUp string // the key that ended it
	torn   bool   // something was pasted that does not fit in a line, and was dropped
}

func (k *keyboard) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		key := msg.String()
		for _, end := range givingUp {
			if key == end && k.gaveUp == "" {
				k.gaveUp = key
			}
		}
		if key == "ctrl+v" {
			return nil // would run a program to read the clipboard; a terminal pastes by itself
		}
	case tea.PasteMsg:
		msg.Content = strings.TrimRight(msg.Content, "\r\n")
		if strings.ContainsFunc(msg.Content, unicode.IsControl) {
			k.torn = true
			return nil
		}
		return msg
	}
	return msg
}

// theme is how forms look.
func theme(dark bool) *huh.Styles {
	t := huh.ThemeBase(dark)
	field := &t.Focused
	field.Base = lipgloss.NewStyle()
	field.Title = strong.style()
	field.Description = faint.style()
	field.ErrorIndicator = bad.style().SetString(" !")
	field.ErrorMessage = bad.style()
	field.SelectSelector = strong.style().SetString("> ")
	field.SelectedOption = strong.style()
	field.UnselectedOption = ordinary.style()
	button := lipgloss.NewStyle().Padding(0, 1)
	field.FocusedButton = button.Reverse(true)
	field.BlurredButton = button
	t.Blurred = t.Focused
	return t
}
