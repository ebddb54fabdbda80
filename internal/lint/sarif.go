package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
)

// The parts of SARIF 2.1.0 that are written (OASIS, "Static Analysis Results Interchange Format").
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool        sarifTool         `json:"tool"`
	Invocations []sarifInvocation `json:"invocations"`
	Results     []sarifResult     `json:"results"`
	// ColumnKind says that columns count characters.
	ColumnKind string `json:"columnKind"`
}

// sarifInvocation says that the program came to its end, whatever it found.
type sarifInvocation struct {
	ExecutionSuccessful bool `json:"executionSuccessful"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version,omitempty"`
	Rules   []sarifRule `json:"rules"`
}

type sarifText struct {
	Text     string `json:"text"`
	Markdown string `json:"markdown,omitempty"`
}

type sarifRule struct {
	ID                   string         `json:"id"`
	ShortDescription     sarifText      `json:"shortDescription"`
	FullDescription      sarifText      `json:"fullDescription"`
	Help                 sarifText      `json:"help"`
	DefaultConfiguration sarifLevel     `json:"defaultConfiguration"`
	Properties           map[string]any `json:"properties,omitempty"`
}

type sarifLevel struct {
	Level string `json:"level"`
}

type sarifResult struct {
	RuleID              string            `json:"ruleId"`
	RuleIndex           int               `json:"ruleIndex"`
	Level               string            `json:"level"`
	Message             sarifText         `json:"message"`
	Locations           []sarifLocation   `json:"locations"`
	PartialFingerprints map[string]string `json:"partialFingerprints"`
}

type sarifLocation struct {
	PhysicalLocation sarifPhysical  `json:"physicalLocation"`
	LogicalLocations []sarifLogical `json:"logicalLocations,omitempty"`
}

type sarifPhysical struct {
	ArtifactLocation sarifArtifact `json:"artifactLocation"`
	Region           sarifRegion   `json:"region"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
	// URIBaseID says of a relative URI that it is below the root of the sources.
	URIBaseID string `json:"uriBaseId,omitempty"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
}

type sarifLogical struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
	Kind               string `json:"kind"`
}

func sarifLevelOf(s Severity) string {
	if s == Info {
		return "note"
	}
	return string(s)
}

// WriteSARIF writes all reports as one run. Each result has a place, as GitHub wants it: the first line of the
// file where none is known.
func WriteSARIF(w io.Writer, version string, reports []*Report) error {
	driver := sarifDriver{Name: "zae addon lint", Version: version}
	index := map[string]int{}
	for i, r := range Catalogue() {
		index[r.ID] = i
		driver.Rules = append(driver.Rules, sarifRuleOf(r))
	}
	run := sarifRun{
		Tool: sarifTool{driver}, Invocations: []sarifInvocation{{true}}, Results: []sarifResult{}, ColumnKind: "unicodeCodePoints",
	}
	for _, report := range reports {
		for _, f := range report.Findings {
			file, line, column, text := report.tracking(f)
			if file == "" {
				file = report.Source
			}
			at := sarifLocation{PhysicalLocation: sarifPhysical{artifactOf(file), sarifRegion{max(line, 1), column}}}
			if f.Object != "" {
				at.LogicalLocations = []sarifLogical{{f.Object, "object"}}
			}
			run.Results = append(run.Results, sarifResult{
				RuleID: f.Rule, RuleIndex: index[f.Rule], Level: sarifLevelOf(f.Severity), Message: sarifText{Text: text},
				Locations: []sarifLocation{at}, PartialFingerprints: map[string]string{"zae/v1": f.fingerprint()},
			})
		}
	}
	return writeJSON(w, sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	})
}

func sarifRuleOf(r Rule) sarifRule {
	kind := "advice"
	if r.Guardrail {
		kind = "guardrail"
	}
	return sarifRule{
		ID: r.ID, ShortDescription: sarifText{Text: r.Title}, FullDescription: sarifText{Text: r.Why},
		Help:                 sarifText{Text: r.Why + " " + r.Fix, Markdown: cell(r.Why) + "\n\n" + cell(r.Fix)},
		DefaultConfiguration: sarifLevel{sarifLevelOf(r.Severity)}, Properties: map[string]any{"tags": []string{"helm", kind}},
	}
}

// artifactOf is a file by its URI: one below the root of the sources, one of this machine, or a reference.
func artifactOf(file string) sarifArtifact {
	if u, err := url.Parse(file); err == nil && u.Scheme != "" && u.Host != "" {
		return sarifArtifact{URI: u.String()}
	}
	u := url.URL{Path: file}
	if path.IsAbs(file) {
		u.Scheme = "file"
		return sarifArtifact{URI: u.String()}
	}
	if strings.HasPrefix(file, "../") {
		return sarifArtifact{URI: u.String()}
	}
	return sarifArtifact{u.String(), "%SRCROOT%"}
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// WriteJSON writes all reports as one document.
func WriteJSON(w io.Writer, reports []*Report) error {
	return writeJSON(w, struct {
		Charts []*Report `json:"charts"`
	}{append([]*Report{}, slices.Clone(reports)...)})
}
