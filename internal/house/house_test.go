package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "zaentrum.io/zae"

// layers are the floors of the house, top first. A package imports from the floors below its own, never
// from its own or from above. A part is the module's path of a package, and of the packages inside it.
var layers = [][]string{
	{"cmd/zae"},
	{"internal/cli"},
	{"internal/operator", "internal/portal", "internal/lint"},
	{"internal/telemetry"},
	{"internal/engine"},
	{"internal/worker"},
	{"internal/chart", "internal/render", "internal/apply", "internal/client", "internal/session", "internal/registry"},
	{"internal/apitype"},
	{"internal/inputs", "internal/values", "internal/guard", "internal/plan"},
	{"internal/fault", "internal/manifest", "internal/trace", "api/v1alpha1"},
	{"web", "deploy", "docs", "examples", "internal/initchart"}, // files that are built in
}

// sideways are the imports inside a floor that are wanted.
var sideways = map[string]string{"internal/render": "internal/chart"}

// exempt stand outside the house.
var exempt = []string{
	"internal/house",
	"internal/charttest", "internal/workertest", "internal/clustertest", "internal/postgrestest", "internal/telemetry/otlptest", // for tests
}

// pure are the parts that decide: what they need comes in as arguments.
var pure = []string{
	"internal/inputs", "internal/values", "internal/guard", "internal/plan",
	"internal/fault", "internal/manifest", "api/v1alpha1",
}

// impure is what pure parts may not import: contexts, clocks, randomness, files, environment, network, logs.
var impure = []string{
	"context", "time", "math/rand", "math/rand/v2", "crypto/rand", "os", "os/exec", "os/signal", "os/user", "io/ioutil",
	"net", "net/http", "net/rpc", "net/smtp", "crypto/tls", "database/sql", "syscall", "log", "log/slog",
	"k8s.io/klog/v2", "sigs.k8s.io/controller-runtime/pkg/log",
}

// clients talk to something outside. Pure parts may not have one among their dependencies, however far.
var clients = []string{
	"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "helm.sh/helm", "github.com/google/go-containerregistry",
	"modernc.org/sqlite", "github.com/jackc/pgx", "golang.org/x/oauth2",
}

// fences are the libraries that only some parts may import.
var fences = []struct {
	libraries []string
	parts     []string
}{
	{[]string{"helm.sh/helm"}, []string{"internal/chart", "internal/render"}},
	{[]string{
		"github.com/spf13/cobra", "github.com/spf13/viper", "github.com/spf13/pflag",
		"charm.land/huh", "charm.land/lipgloss", "charm.land/bubbletea",
	}, []string{"internal/cli"}},
	{[]string{"database/sql", "modernc.org/sqlite", "github.com/jackc/pgx", "github.com/pressly/goose"}, []string{"internal/registry"}},
	{[]string{"github.com/prometheus", "go.opentelemetry.io"}, []string{"internal/telemetry"}},
	{[]string{module + "/internal/telemetry"}, []string{"internal/operator", "internal/portal", "internal/cli"}},
	{[]string{"github.com/zalando/go-keyring"}, []string{"internal/session"}},
	{[]string{module + "/internal/cli"}, []string{"cmd/zae"}},
}

// pkg is what go list says of a package. Test files are not looked at: a test may need the whole house.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	for _, problem := range problems(list(t)) {
		t.Error(problem)
	}
}

// problems are all the places where packages do not stand as they should, in the order of the packages.
func problems(pkgs []pkg) []string {
	var found []string
	for _, p := range pkgs {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		if part(name, exempt) != "" {
			continue
		}
		own, floor := place(name)
		if own == "" {
			found = append(found, name+" is on no floor: give it one in this file")
			continue
		}
		for _, imported := range p.Imports {
			found = append(found, judge(own, floor, name, imported)...)
		}
		if part(name, pure) != "" {
			for _, dep := range p.Deps {
				if c := under(dep, clients); c != "" {
					found = append(found, name+" is pure and depends on "+dep)
					break
				}
			}
		}
	}
	return found
}

// judge is what is wrong with one import of a package.
func judge(own string, floor int, name, imported string) []string {
	var found []string
	for _, f := range fences {
		if under(imported, f.libraries) != "" && !slices.Contains(f.parts, own) {
			found = append(found, name+" imports "+imported+", which only "+strings.Join(f.parts, " and ")+" may")
		}
	}
	if slices.Contains(pure, own) && slices.Contains(impure, imported) {
		found = append(found, name+" is pure and imports "+imported)
	}
	inside, ok := strings.CutPrefix(imported, module+"/")
	if !ok {
		return found
	}
	other, below := place(inside)
	switch {
	case part(inside, exempt) != "":
		found = append(found, name+" imports "+inside+", which stands outside the house")
	case own == other, sideways[own] == other && other != "":
	case other != "" && below == floor:
		found = append(found, name+" imports sideways: "+inside)
	case other != "" && below < floor:
		found = append(found, name+" imports upward: "+inside)
	}
	if own == "cmd/zae" && other != "internal/cli" && other != own {
		found = append(found, name+" imports "+inside+": it is for calling internal/cli and nothing else")
	}
	return found
}

// place is the part that a package belongs to and the number of its floor, counted from the top.
func place(name string) (string, int) {
	for floor, parts := range layers {
		if p := part(name, parts); p != "" {
			return p, floor
		}
	}
	return "", -1
}

// part is the one of the parts that a package is, or is inside of.
func part(name string, parts []string) string {
	for _, p := range parts {
		if name == p || strings.HasPrefix(name, p+"/") {
			return p
		}
	}
	return ""
}

// under is the one of the libraries that a package belongs to, whatever its version.
func under(imported string, libraries []string) string {
	return part(imported, libraries)
}

func TestProblemsAreFound(t *testing.T) {
	t.Parallel()
	const m = module + "/"
	for name, tc := range map[string]struct {
		pkg  pkg
		want string
	}{
		"down is fine":                    {pkg{m + "internal/engine", []string{m + "internal/guard", m + "api/v1alpha1", "context"}, nil}, ""},
		"render may import chart":         {pkg{m + "internal/render", []string{m + "internal/chart", "helm.sh/helm/v3/pkg/engine"}, nil}, ""},
		"a part is free inside":           {pkg{m + "internal/portal/pages", []string{m + "internal/portal", m + "web"}, nil}, ""},
		"cli may use its libraries":       {pkg{m + "internal/cli", []string{"github.com/spf13/cobra", "charm.land/huh/v2"}, nil}, ""},
		"main calls cli":                  {pkg{m + "cmd/zae", []string{m + "internal/cli", "os"}, nil}, ""},
		"outside the house":               {pkg{m + "internal/charttest", []string{"helm.sh/helm/v3/pkg/chart"}, nil}, ""},
		"a pure part may use API types":   {pkg{m + "internal/guard", []string{"k8s.io/api/core/v1"}, []string{"context", "net"}}, ""},
		"a name that only starts alike":   {pkg{m + "internal/chart", []string{"helm.sh/helmet"}, nil}, ""},
		"upward":                          {pkg{m + "internal/guard", []string{m + "internal/engine"}, nil}, "internal/guard imports upward: internal/engine"},
		"upward, from inside":             {pkg{m + "internal/guard/x", []string{m + "internal/apitype"}, nil}, "internal/guard/x imports upward: internal/apitype"},
		"sideways":                        {pkg{m + "internal/plan", []string{m + "internal/values"}, nil}, "internal/plan imports sideways: internal/values"},
		"chart must not import render":    {pkg{m + "internal/chart", []string{m + "internal/render"}, nil}, "internal/chart imports sideways: internal/render"},
		"Helm elsewhere":                  {pkg{m + "internal/engine", []string{"helm.sh/helm/v3/pkg/chart"}, nil}, "internal/engine imports helm.sh/helm/v3/pkg/chart, which only internal/chart and internal/render may"},
		"cobra elsewhere":                 {pkg{m + "internal/portal", []string{"github.com/spf13/cobra"}, nil}, "internal/portal imports github.com/spf13/cobra, which only internal/cli may"},
		"a clock in a pure part":          {pkg{m + "internal/values", []string{"time"}, nil}, "internal/values is pure and imports time"},
		"a client deep in a pure part":    {pkg{m + "internal/plan", nil, []string{"k8s.io/client-go/rest"}}, "internal/plan is pure and depends on k8s.io/client-go/rest"},
		"a package without a floor":       {pkg{m + "internal/util", nil, nil}, "internal/util is on no floor: give it one in this file"},
		"main does more":                  {pkg{m + "cmd/zae", []string{m + "internal/fault"}, nil}, "cmd/zae imports internal/fault: it is for calling internal/cli and nothing else"},
		"something outside is leant upon": {pkg{m + "internal/cli", []string{m + "internal/charttest"}, nil}, "internal/cli imports internal/charttest, which stands outside the house"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(problems([]pkg{tc.pkg}), "\n"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// list asks go list about all packages of the module.
func list(t *testing.T) []pkg {
	t.Helper()
	goMod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("go env: %v", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(goMod)))
	lookAt(t, root)
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			if !slices.ContainsFunc(pkgs, func(p pkg) bool { return p.ImportPath == module+"/internal/fault" }) {
				t.Fatalf("go list named %d packages, and not those of this module", len(pkgs))
			}
			return pkgs
		case err != nil:
			t.Fatalf("go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

// lookAt touches all Go files, so that go test runs this test again when one of them changes: what a
// program that a test starts has read, go test does not know.
func lookAt(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // gone meanwhile
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testbed"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			_, _ = os.Stat(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
