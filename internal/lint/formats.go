package lint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"path"
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

// Where is the file of a finding as the person knows it: below the chart's directory, or inside the archive.
func (r *Report) Where(f Finding) string {
	if r.Dir != "" && r.Dir != "." {
		return strings.TrimSuffix(r.Dir, "/") + "/" + f.File
	}
	return f.File
}

// tracking is a finding as a report for a repository has it: a file that is there, as far as is known, and what is
// said of it. Of a file inside an archive it is the archive, without a line, and the text has the place.
func (r *Report) tracking(f Finding) (file string, line, column int, text string) {
	switch {
	case r.Dir != "" && r.Tracked != "":
		return path.Join(r.Tracked, f.File), f.Line, f.Column, f.Text()
	case r.Dir != "":
		return r.Where(f), f.Line, f.Column, f.Text()
	}
	return r.Tracked, 0, 0, f.Text() + " (" + f.place() + ")"
}

// place is the file with line and column, as far as they are known.
func (f Finding) place() string {
	switch {
	case f.Line > 0 && f.Column > 0:
		return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	case f.Line > 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return f.File
}

// fingerprint is the same for the same finding, wherever in its file it stands.
func (f Finding) fingerprint() string {
	f.Message = numbers.ReplaceAllString(f.Message, "#") // lines
	sum := sha256.Sum256([]byte(f.key()))
	return hex.EncodeToString(sum[:16])
}

// The parts of JUnit's format that are written, as Jenkins and GitLab read them: a suite for each chart, a case for
// each finding. Nothing is timed.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Time    string        `xml:"time,attr"`
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
	all := junitSuites{Name: "zae addon lint"}
	for _, report := range reports {
		suite := report.junit(fails)
		all.Tests += suite.Tests
		all.Failures += suite.Failures
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

func (r *Report) junit(fails func(Finding) bool) junitSuite {
	const time = "0"
	suite := junitSuite{Name: xmlText(r.Source), Time: time}
	names := map[string]int{} // a case is known by its name
	for _, f := range r.Findings {
		file, line, _, _ := r.tracking(f)
		name := f.Rule + " " + f.place()
		if f.Object != "" {
			name += " " + f.Object
		}
		if names[name]++; names[name] > 1 {
			name += fmt.Sprintf(" (%d)", names[name])
		}
		one := junitCase{Name: xmlText(name), Class: "zae." + string(f.Severity), File: xmlText(file), Line: line, Time: time}
		text := xmlText(f.Text())
		if fails(f) {
			suite.Failures++
			one.Failure = &junitFailure{f.Rule, text, xmlText(r.Where(f) + strings.TrimPrefix(f.place(), f.File) + ": " + f.Text() + "\n" + f.Fix)}
		} else {
			one.Out = text
		}
		suite.Cases = append(suite.Cases, one)
	}
	if len(suite.Cases) == 0 {
		suite.Cases = []junitCase{{Name: "lint", Class: "zae", Time: time}}
	}
	suite.Tests = len(suite.Cases)
	return suite
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
			file, line, column, text := report.tracking(f)
			var place []string
			if file != "" {
				place = append(place, "file="+commandProperty.Replace(file))
			}
			if line > 0 {
				place = append(place, fmt.Sprintf("line=%d", line))
				if column > 0 {
					place = append(place, fmt.Sprintf("col=%d", column))
				}
			}
			place = append(place, "title="+commandProperty.Replace(f.Rule))
			if f.Fix != "" {
				text += "\n" + f.Fix
			}
			if _, err := fmt.Fprintf(w, "::%s %s::%s\n", command, strings.Join(place, ","), commandData.Replace(text)); err != nil {
				return fmt.Errorf("report: %w", err)
			}
		}
	}
	return nil
}
