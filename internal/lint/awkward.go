package lint

import (
	"context"
	"errors"
	"fmt"

	"zaentrum.io/zae/internal/guard"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/worker"
)

// awkwardText breaks YAML wherever it stands unquoted, in single quotes or in double quotes, and is no base64.
const awkwardText = "Zs'\"x: #{\\y}!Qx"

// maxAwkward bounds the secrets that are tried by themselves.
const maxAwkward = 10

// awkward renders once more, with secrets that have everything in them that a password may have, and names those
// that the chart cannot take.
func (l *linter) awkward(ctx context.Context, base *worker.Result, g given, platform map[string]any) error {
	var free []int // of g.from
	for i, from := range g.from {
		in, ok := l.space.schema.Input(from.TargetPath)
		if ok && from.TargetPath != "" && in.Secret && in.Type == inputs.TypeString && in.Enum == nil && l.space.made.accepts(in, fit(awkwardText, in)) {
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		return nil
	}
	before := l.refusals(base.Objects, platform)
	found, err := l.awkwardly(ctx, g, free, before, platform)
	if err != nil || len(found) == 0 {
		return err
	}
	for _, i := range free[:min(len(free), maxAwkward)] {
		if l.out.Renders >= l.o.MaxRenders {
			break
		}
		found, err := l.awkwardly(ctx, g, []int{i}, before, platform)
		if err != nil {
			return err
		}
		for _, one := range found {
			one.Rule, one.Path = "secret-text", g.from[i].TargetPath
			one.Message = fmt.Sprintf("%s: with quotes, a colon and a backslash in it, the chart says: %s", one.Path, one.Message)
			l.f.add(one, static)
		}
	}
	return nil
}

// awkwardly is what is wrong when these secrets are awkward, and was not before.
func (l *linter) awkwardly(ctx context.Context, g given, which []int, before map[string]bool, platform map[string]any) ([]Finding, error) {
	other := g
	other.from = append(other.from[:0:0], g.from...)
	for _, i := range which {
		in, _ := l.space.schema.Input(other.from[i].TargetPath)
		other.from[i].Text = fit(awkwardText, in)
	}
	result, err := l.o.Worker.Render(ctx, l.src.Archive, other.job(l.name(), platform))
	l.out.Renders++
	if l.o.Progress != nil {
		l.o.Progress(l.out.Renders, max(l.all, l.out.Renders))
	}
	var over *worker.Overrun
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &over):
		l.over++
		return nil, nil
	case err != nil:
		return nil, err
	}
	var out []Finding
	for _, problem := range result.ValuesErrors {
		one := l.problem(problem)
		one.given = &other
		out = append(out, one)
	}
	if len(out) > 0 {
		return out, nil
	}
	for _, f := range guard.Check(l.facts(result.Objects, false, platform)) {
		if f.Level == guard.Refuse && !before[refusalKey(f)] {
			one := Finding{File: f.Source, Object: f.Kind + "/" + f.Name, Message: f.What, given: &other, field: f.Path}
			at := l.locate(f.Source, f.Path)
			one.Line, one.Column = at.line, at.column
			out = append(out, one)
		}
	}
	return out, nil
}

func (l *linter) refusals(set manifest.Set, platform map[string]any) map[string]bool {
	out := map[string]bool{}
	for _, f := range guard.Check(l.facts(set, false, platform)) {
		out[refusalKey(f)] = true
	}
	return out
}

func refusalKey(f guard.Finding) string {
	return f.Rule + "\x00" + f.Kind + "\x00" + f.Name + "\x00" + f.Path
}
