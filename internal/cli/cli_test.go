package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
)

func quick() *app {
	return newApp(Process{Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Now: time.Now}, pace{pollFirst: time.Microsecond, pollMost: time.Millisecond, grace: 50 * time.Millisecond})
}

func TestAWaitOutlivesAnInstanceThatRestarts(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.Unreachable, "away")
	for name, tc := range map[string]struct {
		failures int
		err      error
		want     error
	}{
		"a few failures":    {patience - 1, away, nil},
		"too many":          {patience, away, away},
		"a lasting failure": {1, errLasting, errLasting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			looks := 0
			err := quick().poll(t.Context(), time.Minute, func(context.Context) (bool, error) {
				if looks++; looks <= tc.failures {
					return false, tc.err
				}
				return true, nil
			})
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

var errLasting = fault.New(fault.NotFound, "gone")

func TestAWaitEndsWithItsLimitOrTheInterruption(t *testing.T) {
	t.Parallel()
	never := func(context.Context) (bool, error) { return false, nil }
	if err := quick().poll(t.Context(), 10*time.Millisecond, never); !errors.Is(err, errTooLate) {
		t.Errorf("got %v", err)
	}
	stuck := func(ctx context.Context) (bool, error) { <-ctx.Done(); return false, context.Cause(ctx) }
	if err := quick().poll(t.Context(), 10*time.Millisecond, stuck); !errors.Is(err, errTooLate) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fault.New(fault.Terminated, "terminated"))
	if err := quick().poll(ctx, time.Minute, never); fault.CodeOf(err) != fault.Terminated {
		t.Errorf("got %v", err)
	}
}

func TestAWriteIsLetFinishForAMoment(t *testing.T) {
	t.Parallel()
	a := quick()
	ctx, cancel := context.WithCancelCause(t.Context())
	steady, done := a.steady(ctx)
	defer done()
	cancel(fault.New(fault.Interrupted, "interrupted"))
	if steady.Err() != nil {
		t.Error("cut short at once")
	}
	select {
	case <-steady.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("let run for ever")
	}
	if fault.CodeOf(context.Cause(steady)) != fault.Interrupted {
		t.Errorf("got %v", context.Cause(steady))
	}
}

func TestPutBackRestoresOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	was := apitype.Chart{Ref: "oci://x/y", Version: "1", Digest: "sha256:a"}
	tree := map[string]any{"n": json.Number("9007199254740993")}
	for name, tc := range map[string]struct {
		now, before apitype.AddonChart
		want        string
	}{
		"suspension":              {apitype.AddonChart{Chart: was, Suspended: true}, apitype.AddonChart{Chart: was}, `{"suspend":false}`},
		"stays suspended":         {apitype.AddonChart{Chart: was, Values: tree, Suspended: true}, apitype.AddonChart{Chart: was, Values: tree, Suspended: true}, `{"suspend":true}`},
		"values":                  {apitype.AddonChart{Chart: was, Values: map[string]any{}}, apitype.AddonChart{Chart: was, Values: tree}, `{"values":{"n":9007199254740993},"suspend":false}`},
		"values that are no more": {apitype.AddonChart{Chart: was, Values: tree}, apitype.AddonChart{Chart: was}, `{"values":{},"suspend":false}`},
		"a digest":                {apitype.AddonChart{Chart: apitype.Chart{Ref: was.Ref, Version: "1"}}, apitype.AddonChart{Chart: was}, `{"chart":"oci://x/y","version":"1","digest":"sha256:a","suspend":false}`},
		"no digest":               {apitype.AddonChart{Chart: was}, apitype.AddonChart{Chart: apitype.Chart{Ref: was.Ref, Version: "0"}}, `{"chart":"oci://x/y","version":"0","digest":"","suspend":false}`},
		"an archive":              {apitype.AddonChart{Chart: apitype.Chart{Ref: "https://b"}}, apitype.AddonChart{Chart: apitype.Chart{Ref: "https://a"}}, `{"chart":"https://a","digest":"","suspend":false}`},
		"from oci to archive":     {apitype.AddonChart{Chart: was}, apitype.AddonChart{Chart: apitype.Chart{Ref: "https://a"}}, `{"chart":"https://a","version":"","digest":"","suspend":false}`},
	} {
		got, err := json.Marshal(restore(&tc.now, &tc.before))
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func TestOverlayKeepsNullsAndChangesNothingItWasGiven(t *testing.T) {
	t.Parallel()
	under := map[string]any{"a": map[string]any{"x": 1, "y": 2}, "l": []any{1}, "s": "t"}
	over := map[string]any{"a": map[string]any{"y": nil, "z": 3}, "l": []any{2}, "s": map[string]any{"k": 1}}
	before, _ := json.Marshal([]any{under, over})
	got, _ := json.Marshal(overlay(under, over))
	if string(got) != `{"a":{"x":1,"y":null,"z":3},"l":[2],"s":{"k":1}}` {
		t.Errorf("got %s", got)
	}
	if after, _ := json.Marshal([]any{under, over}); !bytes.Equal(before, after) {
		t.Errorf("changed %s", after)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"version", "values", "set", "set-secret", "worker.replicas"}
	for word, want := range map[string]string{
		"ersion": "version", "vesion": "version", "Version": "version", "set-secrt": "set-secret", "worker.replica": "worker.replicas",
		"x": "", "colour": "", "": "", strings.Repeat("a", 1000): "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestATableIsCutToTheWidth(t *testing.T) {
	t.Parallel()
	for width := range 30 {
		var out bytes.Buffer
		p := &printer{w: &out, hidden: new(redactor), width: width}
		tab := table{indent: "  "}
		tab.row("name", style(bad, "a long text in the middle"), "the end")
		tab.row("ä", "", "")
		tab.print(p)
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); width > 2 && n > width {
				t.Errorf("width %d: %d characters in %q", width, n, line)
			}
		}
	}
}

func TestImageChangesShowWhatDiffers(t *testing.T) {
	t.Parallel()
	o := v1alpha1.ObjectRef{Kind: "Deployment", Name: "d"}
	for want, c := range map[string][2]string{
		"image 1 → 2":                       {"r/i:1", "r/i:2"},
		"image a/i:1 → b/i:1":               {"a/i:1", "b/i:1"},
		"image sha256:a → sha256:b":         {"r/i@sha256:a", "r/i@sha256:b"},
		"image host:5000/i → host:5000/i:2": {"host:5000/i", "host:5000/i:2"},
		"image host:5000/i → host:5000/j":   {"host:5000/i", "host:5000/j"},
	} {
		got := imageChanges([]v1alpha1.ImageChange{{Kind: "Deployment", Name: "d", From: c[0], To: c[1]}}, o)
		if len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestQuotedIsOneWordOfAShell(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"a.b=1": "a.b=1", "a=b c": "'a=b c'", `a="it's"`: `'a="it'\''s"'`, "a=$(x)": "'a=$(x)'"} {
		if got := quoted(word); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAChartThatIsNotPlannedIsRefused(t *testing.T) {
	t.Parallel()
	plan := &v1alpha1.Plan{}
	for name, tc := range map[string]struct {
		doc     apitype.AddonChart
		refused bool
	}{
		"planned":                         {apitype.AddonChart{Phase: v1alpha1.PhasePlanned, Plan: plan}, false},
		"failed with an older plan":       {apitype.AddonChart{Phase: v1alpha1.PhasePlanFailed, Plan: plan, Message: "registry down"}, true},
		"the platform is underivable":     {apitype.AddonChart{Phase: v1alpha1.PhaseFailed, Plan: plan}, true},
		"no plan":                         {apitype.AddonChart{Phase: v1alpha1.PhasePlanned}, true},
		"values errors":                   {apitype.AddonChart{Phase: v1alpha1.PhasePlanFailed, Plan: &v1alpha1.Plan{ValuesErrors: []string{"a: is required"}}}, true},
		"violations, whatever phase says": {apitype.AddonChart{Phase: v1alpha1.PhasePlanned, Plan: &v1alpha1.Plan{Violations: []string{"v"}}}, true},
	} {
		err := newPlanView(&tc.doc, nil, nil).refusal()
		if (err != nil) != tc.refused || err != nil && fault.CodeOf(err) != fault.PlanBlocked {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// FuzzPrintable proves that no text can steer a terminal.
func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb", "\u009b31m", "a\u202eb", "a\r\nb", "\xff\x9b", "\x00", "\u2066x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range printable(s) {
			if unicode.IsControl(r) || steers(r) {
				t.Fatalf("%q holds %U", printable(s), r)
			}
		}
		doc, err := json.Marshal(map[string]string{"text": s})
		if err != nil {
			return
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, doc, "", "  "); err != nil {
			t.Fatal(err)
		}
		shown := escaped(indented.String())
		for _, r := range shown {
			if r != '\n' && steers(r) {
				t.Fatalf("%q holds %U", shown, r)
			}
		}
		var back, want map[string]string
		if err := json.Unmarshal([]byte(shown), &back); err != nil {
			t.Fatalf("%q is no longer JSON: %v", shown, err)
		}
		if err := json.Unmarshal(doc, &want); err != nil || back["text"] != want["text"] {
			t.Fatalf("%q became %q", want["text"], back["text"])
		}
	})
}

// FuzzGivenFlags proves that no flag makes the program panic, and that no fault repeats a value.
func FuzzGivenFlags(f *testing.F) {
	f.Add("a.b=1", "a.b=c4n4ryc4n4ry", "a=b/c")
	f.Add("=", "=@", "=")
	f.Add("a={\"b\":1e999}", "a=env:", "a=")
	f.Fuzz(func(t *testing.T, set, secret, ref string) {
		g := givenFlags{set: []string{set}, secrets: []string{secret}, refs: []string{ref}}
		if _, err := g.understand(); err != nil && fault.CodeOf(err) != fault.Usage {
			t.Fatalf("%v is no usage fault", err)
		}
		path, value, given := strings.Cut(secret, "=")
		if _, err := parseSecret(secret); err != nil && given && len(value) > 8 {
			f := fault.From(err)
			if strings.Contains(strings.ReplaceAll(f.Message+f.Hint, path, ""), value) {
				t.Fatalf("%+v repeats the secret", f)
			}
		}
	})
}

// FuzzPlanView proves that no answer of a server makes the view of a plan panic.
func FuzzPlanView(f *testing.F) {
	f.Add([]byte(`{"plan":{"valuesSchema":"{\"properties\":{\"a\":{\"type\":\"string\",\"writeOnly\":true}}}","valuesErrors":["a: is required"]},"values":{"a":null}}`), 20)
	f.Add([]byte(`{"plan":{"objects":[{"kind":"Job","name":"j"}],"changes":{"images":[{"kind":"Job","name":"j","from":":","to":"@"}]}}}`), 0)
	f.Fuzz(func(t *testing.T, raw []byte, width int) {
		var doc apitype.AddonChart
		if json.Unmarshal(raw, &doc) != nil {
			return
		}
		var out bytes.Buffer
		p := &printer{w: &out, hidden: new(redactor), width: max(0, width%500)}
		v := newPlanView(&doc, &doc, &given{values: doc.Values, set: doc.Values, filed: doc.Values})
		v.print(p)
		_, _ = v.refusal(), v.given.notes(v.schema)
		if strings.ContainsFunc(out.String(), func(r rune) bool { return r != '\n' && steers(r) }) {
			t.Fatalf("%q", out.String())
		}
	})
}
