package cli

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/lint"
)

type lintFlags struct {
	chart      chartFlags
	against    string
	strict     bool
	output     lintFormat
	maxRenders int
}

// lintFormat is the value of lint's -o.
type lintFormat string

const lintFormats = "json, sarif, junit or github"

func (f *lintFormat) String() string { return string(*f) }

// Type is what flagFault says the value should be.
func (f *lintFormat) Type() string { return lintFormats }

// Set takes one of the formats.
func (f *lintFormat) Set(v string) error {
	switch v {
	case "json", "sarif", "junit", "github":
		*f = lintFormat(v)
		return nil
	}
	return fault.New(fault.Usage, "not %s", lintFormats)
}

func newAddonLint(a *app) *cobra.Command {
	var o lintFlags
	cmd := &cobra.Command{
		Use:   "lint CHART…",
		Short: "tell the author of a chart what is wrong with it",
		Long: `Judge charts as the operator would, in whatever way their schemas let them be rendered, and give
advice besides: what only some input breaks, what differs from platform to platform, where a secret
gets out, what an upgrade would break.

` + chartHelp + `

Values are made up from the schema: what must be given, each member of an enum, both booleans, the
bounds of numbers, each type and alternative, each optional input given, then pairs of them; each
ci/*values.yaml; and texts and numbers that few templates expect. Advice is silenced, with a reason,
in .zaelint.yaml of the chart's directory; guardrails that refuse are not. The operator's limits on
time and memory of a chart hold here too.

Exit status: 0 no errors; 1 errors, or warnings with --strict; 2 wrong usage; where a reference cannot
be fetched, that of the fetch, after all reports.`,
		Example: `  zae addon lint ./charts/example --against oci://ghcr.io/example/charts/example:1.2.0
  zae addon lint ./charts/* --strict -o github`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.New(fault.Usage, "CHART is missing")
			}
			return nil
		},
		RunE: runE(func(ctx context.Context, args []string) error { return a.addonLint(ctx, args, &o) }),
	}
	flags := cmd.Flags()
	o.chart.register(flags)
	flags.StringVar(&o.against, "against", "", "compare with the version before, `CHART`")
	flags.BoolVar(&o.strict, "strict", false, "fail on warnings too")
	flags.IntVar(&o.maxRenders, "max-renders", lint.DefaultMaxRenders, "render each chart at most `N` times")
	flags.VarP(&o.output, "output", "o", "write `FORMAT` json, sarif, junit or github (workflow commands)")
	return cmd
}

func (a *app) addonLint(ctx context.Context, args []string, o *lintFlags) error {
	if o.maxRenders < 1 {
		return fault.New(fault.Usage, "--max-renders is not a number from 1")
	}
	if o.against != "" && len(args) > 1 {
		return fault.New(fault.Usage, "--against compares one chart, and %d are given", len(args))
	}
	pool, err := newWorkers(defaultRenderMemory, 1)
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()
	var against *chart.Archive
	if o.against != "" {
		if against, err = a.archive(ctx, o.against, &chartFlags{loopback: o.chart.loopback}); err != nil {
			return err
		}
	}
	for _, arg := range args { // what was typed wrong is told before anything is done
		if err := checkChart(arg, &offlineFlags{chart: o.chart, name: "any"}); err != nil {
			return err
		}
	}
	var reports []*lint.Report
	var unfetched error // the first one that could not be had; the others are still looked at
	for _, arg := range args {
		src, err := a.lintSource(ctx, arg, &o.chart)
		if f := fault.From(err); f != nil && ctx.Err() == nil && f.Code != fault.Usage {
			reports = append(reports, lint.Unreadable(src, f))
			if f.Code != fault.Chart && unfetched == nil {
				unfetched = err
			}
			continue
		}
		if err != nil {
			return err
		}
		report, err := lint.Check(ctx, src, lint.Options{
			Worker: pool, Against: against, MaxRenders: o.maxRenders, Progress: a.lintProgress(src.Label),
		})
		a.lintProgressEnds()
		if err != nil {
			return err
		}
		reports = append(reports, report)
	}
	fails := func(f lint.Finding) bool {
		return f.Severity == lint.Error || o.strict && f.Severity == lint.Warning
	}
	if unfetched != nil && len(args) == 1 && o.output == "" {
		return unfetched // it says it all
	}
	if err := a.lintReports(o.output, reports, fails); err != nil {
		return err
	}
	if unfetched != nil {
		return unfetched
	}
	return lintVerdict(reports, fails)
}

// lintVerdict is the fault that ends the command when something counts.
func lintVerdict(reports []*lint.Report, fails func(lint.Finding) bool) error {
	n := 0
	for _, r := range reports {
		for _, f := range r.Findings {
			if fails(f) {
				n++
			}
		}
	}
	if n == 0 {
		return nil
	}
	return fault.New(fault.Chart, "%s to be put right", count(n, "finding")).WithHint("zae addon explain RULE")
}

func (a *app) lintSource(ctx context.Context, arg string, c *chartFlags) (lint.Source, error) {
	src := lint.Source{Label: shownReference(arg)}
	var err error
	if info, none := os.Stat(arg); none == nil && !isReference(arg) {
		src.Tracked = a.tracked(arg)
		if info.IsDir() {
			src.Dir = nearby(arg)
			if src.Extra, err = lint.Extra(arg); err != nil {
				return src, err
			}
		}
	}
	src.Archive, err = a.archive(ctx, arg, c)
	return src, err
}

// tracked is where a file or directory lies in the repository: below GITHUB_WORKSPACE, if it is there, else below where
// the command runs. It is empty for what lies elsewhere.
func (a *app) tracked(name string) string {
	here, err := os.Getwd()
	if err != nil {
		return ""
	}
	whole := name
	if !filepath.IsAbs(whole) {
		whole = filepath.Join(here, name)
	}
	for _, root := range []string{a.env("GITHUB_WORKSPACE"), here} {
		if rel, err := filepath.Rel(root, whole); err == nil && root != "" && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return ""
}

// nearby is a directory as reports name it: from where the command runs, if it is below, as annotations want it.
func nearby(dir string) string {
	dir = filepath.Clean(dir)
	if here, err := os.Getwd(); err == nil && filepath.IsAbs(dir) {
		if rel, err := filepath.Rel(here, dir); err == nil && filepath.IsLocal(rel) {
			dir = rel
		}
	}
	return filepath.ToSlash(dir)
}

// lintProgress shows how far it is, on a terminal.
func (a *app) lintProgress(label string) func(done, all int) {
	if !a.err.live {
		return nil
	}
	return func(done, all int) {
		text := printable(label) + ": rendered " + count(done, "time") + " of at most " + count(all, "time")
		if a.err.width > 1 {
			text = cut(text, a.err.width-1)
		}
		a.err.raw("\r" + text + "\x1b[K")
	}
}

func (a *app) lintProgressEnds() {
	if a.err.live {
		a.err.raw("\r\x1b[K")
	}
}

func (a *app) lintReports(f lintFormat, reports []*lint.Report, fails func(lint.Finding) bool) error {
	var text strings.Builder
	var err error
	switch f {
	case "json":
		err = lint.WriteJSON(&text, reports)
	case "sarif":
		err = lint.WriteSARIF(&text, build().Version, reports)
	case "junit":
		err = lint.WriteJUnit(&text, reports, fails)
	case "github":
		err = lint.WriteGitHub(&text, reports)
	default:
		a.lintText(reports)
		return nil
	}
	if err != nil {
		return err
	}
	a.out.raw(escapedText(text.String(), f))
	return nil
}

// escapedText writes characters that steer a terminal as JSON does, where the format is JSON, and leaves them out
// elsewhere.
func escapedText(text string, f lintFormat) string {
	if f == "json" || f == "sarif" {
		return escaped(text)
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && steers(r) {
			return -1
		}
		return r
	}, text)
}

func (a *app) lintText(reports []*lint.Report) {
	for i, r := range reports {
		if i > 0 {
			a.out.printf("\n")
		}
		title := r.Source
		if r.Name != "" {
			title += "  (" + r.Name + " " + r.Version + ")"
		}
		a.out.printf("%s\n", style(strong, title))
		file := ""
		for n, f := range r.Findings {
			if where := r.Where(f); n == 0 || where != file {
				file = where
				a.out.printf("  %s\n", file)
			}
			a.lintFinding(f)
		}
		a.out.printf("  %s, %s, %s", count(r.Count(lint.Error), "error"), count(r.Count(lint.Warning), "warning"), count(r.Count(lint.Info), "hint"))
		if r.Ignored > 0 {
			a.out.printf(", %d ignored", r.Ignored)
		}
		if r.Space != "" {
			a.out.printf("; %s", r.Space)
		}
		a.out.printf("\n")
	}
}

func (a *app) lintFinding(f lint.Finding) {
	place := "-"
	switch {
	case f.Line > 0 && f.Column > 0:
		place = strconv.Itoa(f.Line) + ":" + strconv.Itoa(f.Column)
	case f.Line > 0:
		place = strconv.Itoa(f.Line)
	}
	a.out.printf("    %-7s %s  %s  %s\n", place, padded(severityText(f.Severity), 7), f.Rule, f.Text())
	if f.Fix != "" {
		a.out.printf("            %s\n", style(faint, f.Fix))
	}
}

func padded(s styled, width int) styled {
	return style(s.role, s.text+strings.Repeat(" ", max(width-cells(s.text), 0)))
}
