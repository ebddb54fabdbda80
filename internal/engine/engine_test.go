package engine_test

import (
	"strings"
	"testing"

	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/values"
)

// check checks the example chart, as it comes from a registry.
func check(t *testing.T, change func(*engine.Request)) *engine.Checked {
	t.Helper()
	return checkChart(t, exampleDir, change)
}

func checkChart(t *testing.T, dir string, change func(*engine.Request)) *engine.Checked {
	t.Helper()
	src, fetcher := push(t, dir)
	request := exampleRequest(src)
	if change != nil {
		change(&request)
	}
	got, err := (&engine.Engine{Fetch: fetcher, Worker: newPool(t)}).Check(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCheckOfTheExample(t *testing.T) {
	got := check(t, nil)
	if got.Blocked() || len(got.Findings) > 0 || len(got.Objects) != 9 {
		t.Errorf("%d objects, errors %v, findings %v", len(got.Objects), got.ValuesErrors, got.Findings)
	}
	if len(got.Checksum) != 64 {
		t.Errorf("checksum %q", got.Checksum)
	}
}

func TestCheckIsTheSameTwice(t *testing.T) {
	a, b := check(t, nil), check(t, nil)
	if a.Checksum != b.Checksum || len(a.Objects) != len(b.Objects) {
		t.Error("two checks of the same differ")
	}
	for i := range a.Objects {
		if values.Checksum(a.Objects[i].Tree) != values.Checksum(b.Objects[i].Tree) {
			t.Errorf("%s differs", a.Objects[i].ID())
		}
	}
}

func TestValuesErrorsComeAllAtOnceAndRenderNothing(t *testing.T) {
	const canary = "c4n4ry"
	got := check(t, func(r *engine.Request) {
		r.From = nil
		r.Spec = map[string]any{"worker": map[string]any{"replicas": int64(9), "logLevel": canary}}
		r.FromErrors = []string{"valuesFrom[0]: Secret/x refused"}
	})
	if len(got.Objects) > 0 || !got.Blocked() {
		t.Errorf("rendered %d objects", len(got.Objects))
	}
	all := strings.Join(got.ValuesErrors, "\n")
	for _, want := range []string{"database", "worker.replicas", "worker.logLevel", "valuesFrom[0]"} {
		if !strings.Contains(all, want) {
			t.Errorf("nothing about %s in:\n%s", want, all)
		}
	}
	if strings.Contains(all, canary) {
		t.Errorf("a value is quoted: %s", all)
	}
	for _, f := range got.Findings {
		t.Errorf("finding about objects that are not known: %s", f)
	}
}

func TestAGivenValueIsNotGenerated(t *testing.T) {
	got := check(t, func(r *engine.Request) {
		r.From = append(r.From, values.From{TargetPath: "config.key", Text: "mine"})
		r.Generated = nil
	})
	if got.Blocked() {
		t.Errorf("%v", got.ValuesErrors)
	}
}

func TestThePlatformsKeyCannotBeSet(t *testing.T) {
	plain := check(t, nil)
	got := check(t, func(r *engine.Request) { r.Spec["zaentrum"] = map[string]any{"hostname": "evil"} })
	if got.Checksum != plain.Checksum {
		t.Error("a value under the platform's key counted")
	}
}

func TestTheOtherExamples(t *testing.T) {
	for dir, refused := range map[string]bool{
		"../../examples/example/1.3.0": false,
		"../../examples/tiny":          false,
		refusedDir + "violation":       true,
	} {
		got := checkChart(t, dir, nil)
		if len(got.ValuesErrors) > 0 || (len(got.Findings) > 0) != refused {
			t.Errorf("%s: errors %v, findings %v", dir, got.ValuesErrors, got.Findings)
		}
	}
}
