package lint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// Text is the finding in one line, without its place: object, message, and what it shows with.
func (f Finding) Text() string {
	text := f.Message
	if f.Path != "" && !strings.Contains(f.Message, f.Path) {
		text = f.Path + ": " + text
	}
	if f.Object != "" && !strings.Contains(f.Message, f.Object) {
		text = f.Object + ": " + text
	}
	if len(f.With) > 0 {
		text += " (" + f.shows() + ")"
	}
	return text
}

// shows says with which inputs, and in how many renders if that is not one.
func (f Finding) shows() string {
	text := "with " + strings.Join(f.With, ", ")
	if f.First {
		text = "first " + text
	}
	if f.Renders > 1 {
		text += fmt.Sprintf("; in %d renders", f.Renders)
	}
	return text
}

// fingerprint is the same for the same finding, wherever in its file it stands.
func (f Finding) fingerprint() string {
	f.Message = numbers.ReplaceAllString(f.Message, "#") // lines
	sum := sha256.Sum256([]byte(f.key()))
	return hex.EncodeToString(sum[:16])
}

// The parts of JUnit's format that are written: a suite for each chart, a case for each rule that it breaks.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes a suite for each chart. What does not count, as fails says, is a case that passed, with its text.
func WriteJUnit(w io.Writer, reports []*Report, fails func(Finding) bool) error {
	var all junitSuites
	for _, report := range reports {
		suite := junitSuite{Name: xmlText(report.Source)}
		for _, f := range report.Findings {
			where := report.Where(f)
			if f.Line > 0 {
				where += fmt.Sprintf(":%d", f.Line)
			}
			one := junitCase{Name: f.Rule + " " + xmlText(where), Class: "zae." + string(f.Severity)}
			text := xmlText(f.Text())
			if fails(f) {
				suite.Failures++
				one.Failure = &junitFailure{f.Rule, text, xmlText(where + ": " + f.Text() + "\n" + f.Fix)}
			} else {
				one.Out = text
			}
			suite.Cases = append(suite.Cases, one)
		}
		if len(suite.Cases) == 0 {
			suite.Cases = []junitCase{{Name: "lint", Class: "zae"}}
		}
		suite.Tests = len(suite.Cases)
		all.Suites = append(all.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// xmlText is text that XML can hold.
func xmlText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

var (
	commandData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// WriteGitHub writes one workflow command for each finding, escaped as GitHub Actions reads them.
func WriteGitHub(w io.Writer, reports []*Report) error {
	for _, report := range reports {
		for _, f := range report.Findings {
			command := string(f.Severity)
			if f.Severity == Info {
				command = "notice"
			}
			place := "file=" + commandProperty.Replace(report.Where(f))
			if f.Line > 0 {
				place += fmt.Sprintf(",line=%d", f.Line)
				if f.Column > 0 {
					place += fmt.Sprintf(",col=%d", f.Column)
				}
			}
			_, err := fmt.Fprintf(w, "::%s %s,title=%s::%s\n", command, place, commandProperty.Replace(f.Rule), commandData.Replace(f.Text()+"\n"+f.Fix))
			if err != nil {
				return fmt.Errorf("report: %w", err)
			}
		}
	}
	return nil
}
