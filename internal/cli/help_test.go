package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// allCommands are the program's commands.
func allCommands(t *testing.T) []*cobra.Command {
	t.Helper()
	var out []*cobra.Command
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.InitDefaultHelpFlag()
		out = append(out, c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(offlineApp(t)))
	if len(out) < 20 {
		t.Fatalf("only %d commands", len(out))
	}
	return out
}

// widestHelp is what a terminal beside another one has room for.
const widestHelp = 102

var placeholder = regexp.MustCompile(`^[A-Z][A-Z=:/\[\]]*$`)

func TestAllHelpIsInOneStyle(t *testing.T) {
	t.Parallel()
	for _, c := range allCommands(t) {
		name := c.CommandPath()
		if first, _ := utf8.DecodeRuneInString(c.Short); !unicode.IsLower(first) || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: the line in the list is no lower-case line without a full stop: %q", name, c.Short)
		}
		if first, _ := utf8.DecodeRuneInString(c.Long); c.HasParent() && !unicode.IsUpper(first) || !strings.HasSuffix(c.Long, ".") {
			t.Errorf("%s: the text is no sentences: %q", name, c.Long)
		}
		for line := range strings.Lines(c.Example) {
			if !strings.HasPrefix(line, "  zae ") && !strings.HasPrefix(line, "    -") {
				t.Errorf("%s: no line of an example: %q", name, line)
			}
		}
		if c.Example == "" {
			t.Errorf("%s has no example", name)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			value, text := pflag.UnquoteUsage(f)
			first, _ := utf8.DecodeRuneInString(text)
			switch {
			case !unicode.IsLower(first) && !strings.HasPrefix(text, value) && !strings.HasPrefix(text, "SQLite ") && !strings.HasPrefix(text, "OpenID "):
				t.Errorf("%s --%s is described as %q", name, f.Name, text)
			case f.Value.Type() != "bool" && !placeholder.MatchString(value):
				t.Errorf("%s --%s takes %q", name, f.Name, value)
			}
		})
		var help bytes.Buffer
		c.SetOut(&help)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(help.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > widestHelp {
				t.Errorf("%s: %d characters in %q", name, n, line)
			}
		}
	}
}

// examplesOf are the commands in a command's help, one line each.
func examplesOf(c *cobra.Command) []string {
	var out []string
	for line := range strings.Lines(strings.ReplaceAll(c.Example, " \\\n", " ")) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// fetches are the commands that fetch or push charts by themselves.
var fetches = regexp.MustCompile(`^zae addon (inputs|lint|plan|push|render) .*oci://`)

// exampleScript runs one example as it stands, but for what is not of this world: the instance, the registry and the
// directories of the system.
func exampleScript(example string) string {
	run := strings.NewReplacer("https://media.example.org", "$ZAE_URL", "/var/lib/zae", "$WORK", "/var/cache/zae", "$WORK").Replace(example)
	if fetches.MatchString(run) {
		run = strings.ReplaceAll(run, "oci://ghcr.io", "oci://$REGISTRY")
		words := strings.SplitN(run, " > ", 2)
		words[0] += " --allow-loopback-registry $REGISTRY"
		run = strings.Join(words, " > ")
	}
	var dialogue strings.Builder
	if regexp.MustCompile(`--set-secret [a-z.]+( |$)`).MatchString(run) {
		dialogue.WriteString("expect (not shown):\ntype postgres://c4n4ry\n")
	}
	if regexp.MustCompile(`^zae addon (add|upgrade|install|remove) `).MatchString(run) && !strings.Contains(run, "--yes") {
		dialogue.WriteString("expect [y/N]\ntype y\n")
	}
	how := "exec sh -c '" + run + "'"
	switch {
	case dialogue.Len() > 0:
		how = "term 0 dialogue " + run
	case strings.HasPrefix(run, "zae registry copy") && !strings.Contains(run, "postgres://"):
		how = "database registry.db\n" + how
	case strings.HasPrefix(run, "zae serve-"), strings.HasPrefix(run, "zae registry copy"): // no PostgreSQL runs here
		how += " --help" // all of the line is read before the help is shown: a server would go on until it is stopped
		how = strings.Replace(how, "' --help", " --help'", 1)
	case strings.HasPrefix(run, "zae login"):
		how = "env ZAE_TOKEN=\nissuer\n" + how
	case strings.HasPrefix(run, "zae logout"):
		how = "env ZAE_TOKEN=\nissuer\nexec zae login\n" + how
	case strings.HasPrefix(run, "zae addon init"):
		how = "rm example\n" + how
	}
	return exampleWorld + how + "\n-- dialogue --\n" + dialogue.String() + exampleFiles
}

const exampleWorld = `env DATABASE_URL=postgres://c4n4ry SHELLS=.local/share/bash-completion/completions
mkdir $SHELLS .zfunc .config/fish/completions charts
exec cp -r $EXAMPLES/example/1.3.0 example
exec cp -r $EXAMPLES/example/1.3.0 charts/example
exec cp -r $EXAMPLES/tiny charts/tiny
exec cp -r $EXAMPLES/example/1.2.0 before
exec zae addon package before
registry
exec zae addon push example-1.2.0.tgz oci://$REGISTRY/example/charts --allow-loopback-registry $REGISTRY
plan 1.2.0 p.json
plan 1.3.0 p.json
plan '' p.json
frames frames.json
ADDON
`

const exampleFiles = `-- url.txt --
postgres://c4n4ry
-- values.yaml --
worker: {logLevel: debug}
-- p.json --
{"plan": {"chart": {"name": "example"}, "objects": [], "changes": {}}}
-- frames.json --
[{"phase": "Ready", "registered": true}]
-- a.json --
{"name": "example", "chart": {"ref": "oci://ghcr.io/example/charts/example", "version": "1.2.0"}, "suspended": SUSPENDED,
"phase": "Ready", "generation": 4, "observedGeneration": 4, "plan": {"chart": {"name": "example"}, "objects": [], "changes": {}},
"lastAppliedChart": {"ref": "oci://ghcr.io/example/charts/example", "version": "1.2.0"},
"values": {"worker": {"replicas": 2, "logLevel": "debug"}}, "registered": true}
`

// TestAllExamplesRun runs each example that help shows, and each must succeed.
func TestAllExamplesRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := 0
	for _, c := range allCommands(t) {
		for _, example := range examplesOf(c) {
			script := exampleScript(example)
			addon := "addon a.json"
			if strings.HasPrefix(example, "zae addon add ") {
				addon = ""
			}
			script = strings.Replace(script, "ADDON\n", addon+"\n", 1)
			script = strings.Replace(script, "SUSPENDED", fmt.Sprint(strings.HasPrefix(example, "zae addon install ")), 1)
			n++
			name := fmt.Sprintf("%02d_%s.txtar", n, strings.Join(strings.Fields(c.CommandPath()), "_"))
			if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := scripts()
	p.Dir = dir
	testscript.Run(t, p)
}
