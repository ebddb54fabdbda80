package worker_test

import (
	"slices"
	"strings"
	"testing"

	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
)

// TestTextsAreWhatTemplatesRender: also where it is no YAML, and in the place of objects.
func TestTextsAreWhatTemplatesRender(t *testing.T) {
	t.Parallel()
	pool := newPool(t, worker.Options{Max: 1})
	j := job(t, "unquoted")
	j.Spec, j.From, j.Texts = nil, []values.From{{TargetPath: "token", Text: `a": b`}}, true
	got, err := pool.Render(t.Context(), archive(t, examples+"lint/unquoted"), j)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.ValuesErrors) > 0 || len(got.Objects) > 0 {
		t.Errorf("%q, %d objects", got.ValuesErrors, len(got.Objects))
	}
	var names []string
	for _, text := range got.Texts {
		names = append(names, text.File)
		if text.File == "templates/secret.yaml" && !strings.Contains(text.Text, `a": b`) {
			t.Error("the text is not the one that is rendered")
		}
	}
	if !slices.Equal(names, []string{"templates/primary.yaml", "templates/secret.yaml"}) {
		t.Errorf("texts of %q", names)
	}
}
