package lint_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"zaentrum.io/zae/internal/lint"
)

func awkward() []*lint.Report {
	return []*lint.Report{{Source: "a chart", Dir: "a chart", Tracked: "charts/a chart", Name: "a", Version: "1", Findings: []lint.Finding{
		{Rule: "no-host-network", Severity: lint.Error, File: "templates/a b,c:d.yaml", Line: 3, Column: 5, Object: "Deployment/a", Path: "spec.x", Message: "100% <wrong> & so on", Fix: "Remove it."},
		{Rule: "hook", Severity: lint.Info, File: "Chart.yaml", Message: "a\nsecond line"},
		{Rule: "lookup", Severity: lint.Warning, File: "Chart.yaml", Message: "warned of", With: []string{"a=b", "c"}},
	}}, {Source: "none", Findings: []lint.Finding{}}}
}

// sarifLog is what is read of a log.
type sarifLog struct {
	Schema  string `json:"$schema"`
	Version string
	Runs    []struct {
		Tool struct {
			Driver struct {
				Name  string
				Rules []struct {
					ID                     string
					ShortDescription, Help struct{ Text string }
					FullDescription        struct{ Text string }
					DefaultConfiguration   struct{ Level string }
				}
			}
		}
		Results []struct {
			RuleID    string
			RuleIndex int
			Level     string
			Message   struct{ Text string }
			Locations []struct {
				PhysicalLocation struct {
					ArtifactLocation struct{ URI, URIBaseID string }
					Region           struct{ StartLine, StartColumn int }
				}
			}
			PartialFingerprints map[string]string
		}
	}
}

// TestSARIFHasWhatGitHubReads: the fields that code scanning wants of a log (GitHub, "SARIF support for code scanning").
func TestSARIFHasWhatGitHubReads(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := lint.WriteSARIF(&out, "1.2.3", awkward()); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || !strings.Contains(log.Schema, "sarif-2.1.0") || len(log.Runs) != 1 {
		t.Fatalf("%s %s %d", log.Version, log.Schema, len(log.Runs))
	}
	driver := log.Runs[0].Tool.Driver
	if driver.Name == "" || len(driver.Rules) != len(lint.Catalogue()) {
		t.Errorf("driver %q with %d rules", driver.Name, len(driver.Rules))
	}
	for _, r := range driver.Rules {
		if r.ID == "" || r.ShortDescription.Text == "" || r.FullDescription.Text == "" || r.Help.Text == "" || r.DefaultConfiguration.Level == "" {
			t.Errorf("rule %+v", r)
		}
	}
	results := log.Runs[0].Results
	if len(results) != 3 {
		t.Fatalf("%d results", len(results))
	}
	levels := []string{"error", "note", "warning"}
	for i, r := range results {
		at := r.Locations[0].PhysicalLocation
		if r.Level != levels[i] || driver.Rules[r.RuleIndex].ID != r.RuleID || r.Message.Text == "" || at.Region.StartLine < 1 || r.PartialFingerprints["zae/v1"] == "" {
			t.Errorf("%+v", r)
		}
	}
	if uri := results[0].Locations[0].PhysicalLocation.ArtifactLocation.URI; uri != "charts/a%20chart/templates/a%20b,c:d.yaml" {
		t.Errorf("uri %s", uri)
	}
	if got := results[2].Message.Text; got != "warned of (with a=b, c)" {
		t.Error(got)
	}
}

func TestJUnitIsWellFormedAndCountsFailures(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := lint.WriteJUnit(&out, awkward(), func(f lint.Finding) bool { return f.Severity == lint.Error })
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Suites []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	first := doc.Suites[0]
	if first.Tests != 3 || first.Failures != 1 || len(first.Cases) != 3 || first.Cases[0].Failure == nil || first.Cases[1].Failure != nil {
		t.Errorf("%+v", first)
	}
	if got := first.Cases[0].Failure.Message; got != "Deployment/a: spec.x: 100% <wrong> & so on" {
		t.Error(got)
	}
	if doc.Suites[1].Tests != 1 || doc.Suites[1].Failures != 0 {
		t.Errorf("a chart without findings: %+v", doc.Suites[1])
	}
}

func TestWorkflowCommandsAreEscaped(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := lint.WriteGitHub(&out, awkward()); err != nil {
		t.Fatal(err)
	}
	want := `::error file=charts/a chart/templates/a b%2Cc%3Ad.yaml,line=3,col=5,title=no-host-network::Deployment/a: spec.x: 100%25 <wrong> & so on%0ARemove it.
::notice file=charts/a chart/Chart.yaml,title=hook::a%0Asecond line
::warning file=charts/a chart/Chart.yaml,title=lookup::warned of (with a=b, c)
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

// TestFilesAreThoseOfTheRepository: reports for a repository name files that are there. What is in an archive is told
// in the text.
func TestFilesAreThoseOfTheRepository(t *testing.T) {
	t.Parallel()
	f := lint.Finding{Rule: "hook", Severity: lint.Info, File: "templates/x.yaml", Line: 3, Column: 5, Message: "m"}
	for name, c := range map[string]struct {
		report       lint.Report
		github, uri  string
		base, region string
	}{
		"a directory": {lint.Report{Source: "./web", Dir: "web", Tracked: "deploy/web"},
			"::notice file=deploy/web/templates/x.yaml,line=3,col=5,title=hook::m\n", "deploy/web/templates/x.yaml", "%SRCROOT%", "3:5"},
		"the directory itself": {lint.Report{Source: ".", Dir: ".", Tracked: "."},
			"::notice file=templates/x.yaml,line=3,col=5,title=hook::m\n", "templates/x.yaml", "%SRCROOT%", "3:5"},
		"a directory elsewhere": {lint.Report{Source: "/srv/my web", Dir: "/srv/my web"},
			"::notice file=/srv/my web/templates/x.yaml,line=3,col=5,title=hook::m\n", "file:///srv/my%20web/templates/x.yaml", "", "3:5"},
		"a directory beside": {lint.Report{Source: "../web", Dir: "../web"},
			"::notice file=../web/templates/x.yaml,line=3,col=5,title=hook::m\n", "../web/templates/x.yaml", "", "3:5"},
		"an archive": {lint.Report{Source: "web-1.0.0.tgz", Tracked: "dist/web-1.0.0.tgz"},
			"::notice file=dist/web-1.0.0.tgz,title=hook::m (templates/x.yaml:3:5)\n", "dist/web-1.0.0.tgz", "%SRCROOT%", "1:0"},
		"a reference": {lint.Report{Source: "oci://ghcr.io/me/charts/web:1.0.0"},
			"::notice title=hook::m (templates/x.yaml:3:5)\n", "oci://ghcr.io/me/charts/web:1.0.0", "", "1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.report.Findings = []lint.Finding{f}
			var github, sarif bytes.Buffer
			if err := lint.WriteGitHub(&github, []*lint.Report{&c.report}); err != nil {
				t.Fatal(err)
			}
			if github.String() != c.github {
				t.Errorf("got %s", github.String())
			}
			if err := lint.WriteSARIF(&sarif, "1", []*lint.Report{&c.report}); err != nil {
				t.Fatal(err)
			}
			var log sarifLog
			if err := json.Unmarshal(sarif.Bytes(), &log); err != nil {
				t.Fatal(err)
			}
			at := log.Runs[0].Results[0].Locations[0].PhysicalLocation
			region := fmt.Sprintf("%d:%d", at.Region.StartLine, at.Region.StartColumn)
			if at.ArtifactLocation.URI != c.uri || at.ArtifactLocation.URIBaseID != c.base || region != c.region {
				t.Errorf("%+v", at)
			}
		})
	}
}
