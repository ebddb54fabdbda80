package lint

import (
	"strings"
	"testing"
)

// TestAFaultIsToldOnce: findings of renders are put together when one fault of a template can be behind them, and
// only then. Rows 1 to 3 give a, 4 and 5 give b, 6 gives both.
func TestAFaultIsToldOnce(t *testing.T) {
	t.Parallel()
	common := func(rows []int) []string {
		a, b := true, true
		for _, n := range rows {
			a, b = a && (n >= 1 && n <= 3 || n == 6), b && n >= 4
		}
		var out []string
		if a {
			out = append(out, "a")
		}
		if b {
			out = append(out, "b")
		}
		return out
	}
	of := func(rule, object, path, message string, line int, rows ...int) shown {
		return shown{Finding{Rule: rule, File: "templates/x.yaml", Line: line, Object: object, Path: path, Message: message}, rows}
	}
	for name, tc := range map[string]struct {
		all  []shown
		want int
	}{
		"lines of the output":          {[]shown{of("render-fails", "", "", "line 7", 0, 0), of("render-fails", "", "", "line 9", 0, 1, 2)}, 1},
		"lines with one input":         {[]shown{of("render-fails", "", "", "line 7", 0, 1), of("render-fails", "", "", "line 9", 0, 2, 6)}, 1},
		"lines with different inputs":  {[]shown{of("render-fails", "", "", "line 7", 0, 1), of("render-fails", "", "", "line 9", 0, 4)}, 2},
		"names that change":            {[]shown{of("secret-leak", "Secret/x-a", "type", "t", 0, 0), of("secret-leak", "Secret/x-b", "type", "t", 0, 4)}, 1},
		"two objects of one render":    {[]shown{of("secret-leak", "Secret/x-a", "type", "t", 0, 0, 1), of("secret-leak", "Secret/x-b", "type", "t", 0, 0, 1)}, 2},
		"two objects of one place":     {[]shown{of("secret-leak", "Secret/x-a", "type", "t", 3, 0, 1), of("secret-leak", "Secret/x-b", "type", "t", 3, 0, 1)}, 1},
		"places of a list":             {[]shown{of("secret-leak", "Job/x", "env[0].value", "t", 3, 0), of("secret-leak", "Job/x", "env[1].value", "t", 3, 1)}, 1},
		"other fields":                 {[]shown{of("secret-leak", "Job/x", "env[0].value", "t", 0, 0), of("secret-leak", "Job/x", "env[0].name", "t", 0, 1)}, 2},
		"other secrets":                {[]shown{of("secret-leak", "Job/x", "a", "one is seen", 3, 0), of("secret-leak", "Job/x", "a", "two is seen", 3, 1)}, 2},
		"what a guardrail found there": {[]shown{of("wrong-type", "Job/x", "a", "is a number", 3, 0), of("wrong-type", "Job/x", "a", "is null", 3, 1)}, 1},
		"whatever the values are":      {[]shown{of("input-unused", "", "a", "t", 3, static), of("input-unused", "", "a1", "t", 3, static)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := merged(tc.all, common)
			if len(got) != tc.want {
				t.Fatalf("%d findings: %+v", len(got), got)
			}
			if tc.want == 1 && (got[0].Message != tc.all[0].Message || len(got[0].rows) != len(tc.all[0].rows)+len(tc.all[1].rows)-both(tc.all)) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func both(all []shown) int {
	n := 0
	for _, row := range all[0].rows {
		for _, other := range all[1].rows {
			if row == other {
				n++
			}
		}
	}
	return n
}

func TestAFindingSaysWhatShowsIt(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]Finding{
		"m":                                {Message: "m", Renders: 5},
		"m (with a=1)":                     {Message: "m", With: []string{"a=1"}, Renders: 1},
		"m (with a=1, b=2; in 3 renders)":  {Message: "m", With: []string{"a=1", "b=2"}, Renders: 3},
		"m (first with a=1; in 3 renders)": {Message: "m", With: []string{"a=1"}, Renders: 3, First: true},
	} {
		if got := f.Text(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	a, b := Finding{Rule: "render-fails", Message: "line 7"}, Finding{Rule: "render-fails", Message: "line 9"}
	if a.fingerprint() != b.fingerprint() || strings.TrimLeft(a.fingerprint(), "0123456789abcdef") != "" {
		t.Errorf("%s, %s", a.fingerprint(), b.fingerprint())
	}
}
