package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/charttest"
	"zaentrum.io/zae/internal/fault"
)

const exampleChart = "../../examples/example/1.3.0"

// offlineApp is the program without a terminal.
func offlineApp(t *testing.T) *app {
	t.Helper()
	return newApp(Process{
		Stdin: strings.NewReader(""), Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Now: time.Now,
		Env: func(string) (string, bool) { return "", false },
	}, usualPace)
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAChartIsADirectoryAnArchiveOrAReference(t *testing.T) {
	t.Parallel()
	packed, err := chart.ReadLocal(exampleChart)
	if err != nil {
		t.Fatal(err)
	}
	archive := file(t, "any.tgz", string(packed.Bytes))
	registry := charttest.Serve(t)
	registry.PushArchive("example", "1.3.0", packed.Bytes)
	ref := "oci://" + registry.Host + "/charts/example"
	loopback := []string{registry.Host}
	other := "sha256:" + strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		arg   string
		flags chartFlags
		code  fault.Code
		want  string
	}{
		"a directory":             {arg: exampleChart},
		"an archive":              {arg: archive},
		"a reference":             {arg: ref, flags: chartFlags{version: "1.3.0", loopback: loopback}},
		"a reference with a tag":  {arg: ref + ":1.3.0", flags: chartFlags{loopback: loopback}},
		"with its digest":         {arg: exampleChart, flags: chartFlags{digest: packed.Digest}},
		"with another digest":     {exampleChart, chartFlags{digest: other}, fault.Digest, packed.Digest},
		"with no digest at all":   {exampleChart, chartFlags{digest: "sha256:1"}, fault.Usage, "chart digest is none"},
		"a version of a folder":   {exampleChart, chartFlags{version: "1.0.0"}, fault.Usage, "--version is for oci://"},
		"nothing there":           {"no/such", chartFlags{}, fault.Usage, "there is no chart no/such"},
		"another scheme":          {"http://example.org/a.tgz", chartFlags{}, fault.Usage, "must start with oci:// or https://"},
		"no version":              {ref, chartFlags{loopback: loopback}, fault.Usage, "needs a version"},
		"another digest, fetched": {ref, chartFlags{version: "1.3.0", digest: other, loopback: loopback}, fault.Digest, packed.Digest},
		"a loopback address":      {ref, chartFlags{version: "1.3.0"}, fault.Chart, "a loopback address"},
		"not a chart's directory": {t.TempDir(), chartFlags{}, fault.Chart, "Chart.yaml is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := offlineApp(t).archive(t.Context(), tc.arg, &tc.flags)
			if tc.code == "" {
				if err != nil || got.Digest != packed.Digest || !bytes.Equal(got.Bytes, packed.Bytes) {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if fault.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %s: %v, want %s", fault.CodeOf(err), err, tc.want)
			}
		})
	}
}

const platformText = `apiVersion: zaentrum.io/v1alpha1
kind: Zaentrum
metadata: {name: media, namespace: home}
spec:
  hostname: media.example.org
  elsewhere: {a: 1}
`

func TestThePlatformFile(t *testing.T) {
	t.Parallel()
	z, err := offlineApp(t).platformFile(file(t, "p.yaml", platformText))
	if err != nil || z.Namespace != "home" || z.Spec.Hostname != "media.example.org" {
		t.Errorf("got %+v, %v", z, err)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"two documents":   {platformText + "---\n" + platformText, "holds 2 documents instead of one"},
		"none":            {"# nothing\n", "holds 0 documents"},
		"another kind":    {strings.Replace(platformText, "kind: Zaentrum", "kind: ConfigMap", 1), "holds no Zaentrum of zaentrum.io/v1alpha1"},
		"a list":          {"[]", "holds no Zaentrum"},
		"no namespace":    {strings.Replace(platformText, ", namespace: home", "", 1), "has no metadata.namespace"},
		"a wrong type":    {strings.Replace(platformText, "media.example.org", "[hunter2]", 1), "wrong type at spec.hostname"},
		"no YAML":         {"a: [hunter2", "cannot be used: "},
		"the same key":    {"a: 1\na: hunter2\n", "cannot be used: "},
		"larger than any": {strings.Repeat("#", maxGiven+1), "is larger than 1024 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := offlineApp(t).platformFile(file(t, "p.yaml", tc.text))
			if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	if _, err := offlineApp(t).platformFile("no/such"); fault.CodeOf(err) != fault.Usage {
		t.Errorf("got %v", err)
	}
}

func onBench(t *testing.T, a *app, o *offlineFlags, arg string) (*offlineChart, error) {
	t.Helper()
	b, err := a.newBench(o)
	if err != nil {
		return nil, err
	}
	t.Cleanup(b.close)
	return b.open(t.Context(), arg)
}

func TestTheBenchChecksAsTheOperatorDoes(t *testing.T) {
	t.Parallel()
	o := &offlineFlags{platform: file(t, "p.yaml", platformText)}
	o.given.secrets = []string{"database.url=@" + file(t, "url", "postgres://c4n4ry\n")}
	c, err := onBench(t, offlineApp(t), o, exampleChart)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.check(t.Context())
	if err != nil || got.Blocked() || len(got.Objects) != 9 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if c.request.Name != "example" || c.request.Namespace != "home" || len(c.placeholders) != 1 || c.placeholders["config.key"] == "" {
		t.Errorf("got %+v, %q", c.request, c.placeholders)
	}
}

func TestTheNameIsTheChartsUnlessGiven(t *testing.T) {
	t.Parallel()
	meta := "apiVersion: v2\nversion: 1.0.0\nname: "
	for name, tc := range map[string]struct{ chart, given, want, problem string }{
		"the chart's":       {"Media.Box", "", "", "cannot be an addon's"},
		"in lower case":     {"Media", "", "media", ""},
		"the one given":     {"Media.Box", "box", "box", ""},
		"one that is none":  {"media", "Box_", "", "must be lower-case"},
		"one that is wrong": {"media", strings.Repeat("a", 41), "", "at most 40"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := onBench(t, offlineApp(t), &offlineFlags{name: tc.given}, filepath.Dir(file(t, "Chart.yaml", meta+tc.chart+"\n")))
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || c.request.Name != tc.want {
				t.Errorf("got %v, %v", c, err)
			}
		})
	}
}

func TestAllFormsOfASecretAreHidden(t *testing.T) {
	t.Parallel()
	a := offlineApp(t)
	for _, secret := range []string{"PG://us er:p\"w\nLine-Two", "line-two-longer", "abcd", "abcdefgh", "c4n4ry>>???"} {
		a.out.hidden.addForms(secret)
	}
	for _, text := range []string{
		"PG://us er:p\"w\nLine-Two", "UEc6Ly91cyBlcjpwIncKTGluZS1Ud28=", "PG%3A%2F%2Fus+er%3Ap%22w%0ALine-Two", "pg://us er:p\"w\nline-two",
		`PG://us er:p\"w\nLine-Two`, "Line-Two", "line-two-longer", "abcdefgh", "ab\x00cdefgh", "YzRuNHJ5Pj4/Pz8=", "YzRuNHJ5Pj4_Pz8=",
	} {
		if got := a.out.show("<" + text + ">"); got != "<[secret]>" {
			t.Errorf("%q: got %s", text, got)
		}
	}
}
