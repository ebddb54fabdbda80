package house

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestEveryDirectDependencyHasItsReason compares go.mod with docs/dependencies.md, both ways.
func TestEveryDirectDependencyHasItsReason(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	product, _, _ := strings.Cut(string(text), "The testbed (")
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{"sigs.k8s.io/controller-tools": true} // a tool
	for _, r := range mod.Require {
		if !r.Indirect {
			direct[r.Path] = true
		}
	}
	told := map[string]bool{}
	for line := range strings.Lines(product) {
		modules, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for _, m := range strings.Split(strings.TrimSuffix(modules, " (tool)"), ", ") {
			if strings.Contains(m, ".") && strings.Contains(m, "/") && strings.HasPrefix(line, "| ") {
				told[strings.TrimSpace(m)] = true
			}
		}
	}
	for m := range direct {
		if !told[m] {
			t.Errorf("docs/dependencies.md gives no reason for %s", m)
		}
	}
	for m := range told {
		if !direct[m] {
			t.Errorf("docs/dependencies.md gives a reason for %s, which is no direct dependency", m)
		}
	}
}
