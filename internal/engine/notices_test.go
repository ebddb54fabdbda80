package engine_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/guard"
)

// The examples warn of what the contract's own chart does, and of nothing else: their images are named by tag, and
// the worker writes to the media claim.
func TestTheExamplesHaveFewNotices(t *testing.T) {
	for dir, want := range map[string][]string{
		exampleDir:                     {"media-writable", "pinned-digest", "pinned-digest", "pinned-digest"},
		"../../examples/example/1.3.0": {"media-writable", "pinned-digest", "pinned-digest", "pinned-digest"},
		"../../examples/tiny":          {"pinned-digest"},
	} {
		var got []string
		for _, n := range checkChart(t, dir, nil).Notices {
			if n.Level != guard.Warn {
				t.Errorf("%s: %s blocks", dir, n)
			}
			got = append(got, n.Rule)
		}
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", dir, d)
		}
	}
}
