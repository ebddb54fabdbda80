package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
)

// The parts of SARIF 2.1.0 that are written (OASIS, "Static Analysis Results Interchange Format").
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`
	// ColumnKind says that columns count characters.
	ColumnKind string `json:"columnKind"`
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
	Text string `json:"text"`
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
		driver.Rules = append(driver.Rules, sarifRule{
			ID: r.ID, ShortDescription: sarifText{r.Title}, FullDescription: sarifText{r.Why}, Help: sarifText{r.Fix},
			DefaultConfiguration: sarifLevel{sarifLevelOf(r.Severity)},
		})
	}
	run := sarifRun{Tool: sarifTool{driver}, Results: []sarifResult{}, ColumnKind: "unicodeCodePoints"}
	for _, report := range reports {
		for _, f := range report.Findings {
			at := sarifLocation{PhysicalLocation: sarifPhysical{
				ArtifactLocation: sarifArtifact{(&url.URL{Path: report.Where(f)}).String()},
				Region:           sarifRegion{max(f.Line, 1), f.Column},
			}}
			if f.Object != "" {
				at.LogicalLocations = []sarifLogical{{f.Object, "object"}}
			}
			run.Results = append(run.Results, sarifResult{
				RuleID: f.Rule, RuleIndex: index[f.Rule], Level: sarifLevelOf(f.Severity), Message: sarifText{f.Text()},
				Locations: []sarifLocation{at}, PartialFingerprints: map[string]string{"zae/v1": f.fingerprint()},
			})
		}
	}
	return writeJSON(w, sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	})
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
