package lint_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/lint"
)

// edit changes one file of a chart: from, which is there once, becomes to. Without from the whole file is to, and
// without both it is gone.
type edit struct{ file, from, to string }

// step is what an author does on one hint.
type step []edit

// fixes are the ways out of all that the faulty charts are told of, hint by hint.
func fixes() map[string][]step {
	const (
		schema   = "values.schema.json"
		given    = "values.yaml"
		primary  = "templates/primary.yaml"
		settings = "templates/settings.yaml"
		secret   = "templates/secret.yaml"
	)
	one := func(file, from, to string) step { return step{{file, from, to}} }
	return map[string][]step{
		"any-text": {
			one(schema, `"contentEncoding": "base64"`, `"pattern": "^[A-Za-z0-9+/]+={0,2}$"`),
			{
				{schema, `"extra": { "type": "string" }`, `"extra": { "type": "object", "properties": { "a": { "type": "string" } } }`},
				{given, `extra: "a: b"`, "extra: {a: b}"},
				{settings, "(.Values.extra | fromYaml).a", ".Values.extra.a"},
			},
			{
				{schema, `"workers": { "type": "string" }`, `"workers": { "type": "integer", "minimum": 1, "maximum": 9 }`},
				{given, `workers: "1"`, "workers: 1"},
				{settings, "atoi .Values.workers", "int .Values.workers"},
			},
			one(schema, `"release": { "type": "string" }`, `"release": { "type": "string", "format": "semver" }`),
			one(schema, `"region": { "type": "string" }`, `"region": { "type": "string", "pattern": "^[A-Za-z0-9-]+$" }`),
			one(schema, `"tag": { "type": "string" }`, `"tag": { "type": "string", "minLength": 1 }`),
		},
		"asks-for-more": {one(schema, `"properties": {
    "address": { "type": "string" }`, `"required": ["address"],
  "properties": {
    "address": { "type": "string", "minLength": 1 }`)},
		"behind-alternative": {
			one(primary, "      hostPID: true\n", "      shareProcessNamespace: true\n"),
			one(primary, "              hostPort: 8080\n", "              protocol: TCP\n"),
		},
		"behind-enum":     {one(primary, "      hostNetwork: true\n", "      enableServiceLinks: false\n")},
		"behind-file":     {one("ci/host-values.yaml", "hostIPC: true", "hostname: one")},
		"behind-pair":     {one(primary, "      hostPID: true\n", "      shareProcessNamespace: true\n")},
		"behind-platform": {one(primary, "      hostNetwork: true\n", "      enableServiceLinks: false\n")},
		"behind-switch": {
			one(settings, "{{ .Values.token | len | quote }}", `"10"`),
			one(settings, "  spare: {{ .Values.spare | quote }}\n", "  spare: given\n"),
			one(schema, `"password": { "type": "string", "writeOnly": true, "minLength": 1 }`, `"password": { "type": "string", "minLength": 1 }`),
		},
		"behind-type": {
			one(primary, "              hostPort: {{ .port }}\n", ""),
			one(settings, "substr 0 3 .Values.title", `.Values.title | default "" | trunc 3`),
			one(schema, `"port": { "type": ["string", "integer"], "pattern": "^[a-z]+$" }`, `"port": { "type": "string", "pattern": "^[a-z]+$" }`),
		},
		"clock": {
			one(settings, `{{ now | date "2006" | quote }}`, `"2026"`),
			one(settings, `{{ empty (lookup "v1" "Secret" "x" "y") | quote }}`, `"true"`),
		},
		"empty-required": {one(schema, `{ "type": "string" }`, `{ "type": "string", "minLength": 1 }`)},
		"excuses": {
			one(".zaelint.yaml", "  - rule: no-host-network\n    reason: it is needed\n", ""),
			one(primary, "      hostNetwork: true\n", ""),
			one(".zaelint.yaml", "  - rule: hook\n    reason: there used to be one\n", ""),
			one(".zaelint.yaml", "  - rule: lookup\n", "  - rule: lookup\n    reason: plain Helm keeps the value\n"),
			one(".zaelint.yaml", "  - rule: no-such-rule\n    reason: a slip of the pen\n", ""),
		},
		"hard-coded": {
			one(primary, "https://media.example.org/auth/realms/zaentrum", "{{ .Values.zaentrum.issuer | quote }}"),
			one(primary, "kafka:9092", "{{ .Values.zaentrum.events.brokers | quote }}"),
			one(primary, "claimName: media", "claimName: {{ .Values.zaentrum.media.claimName | quote }}"),
			one(settings, "http://catalogue.zaentrum.svc:8080", "http://catalogue:8080"),
			one(settings, "stube.events", `{{ printf "%sevents" .Values.zaentrum.events.topicPrefix | quote }}`),
		},
		"helm-says": {
			one("Chart.yaml", "icon: not a url", "icon: https://example.org/icon.svg"),
			one("templates/notes.md", "", ""),
			one(settings, "", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: helm-says\ndata:\n  A: b\n"),
		},
		"hooked": {
			one("templates/claim.yaml", "  annotations:\n    helm.sh/resource-policy: keep\n", ""),
			one("templates/job.yaml", "  annotations:\n    helm.sh/hook: pre-install\n    helm.sh/hook-weight: \"1\"\n", ""),
			one("templates/job.yaml", "backoffLimit: 0", "backoffLimit: 6"),
			one("templates/job.yaml", "  ttlSecondsAfterFinished: 60\n", ""),
		},
		"leaky": {
			one(primary, "              value: {{ .Values.token | quote }}\n", "              valueFrom:\n                secretKeyRef:\n                  name: leaky\n                  key: token\n"),
			{
				{settings, "kind: ConfigMap", "kind: Secret"},
				{settings, "name: leaky\ndata:", "name: leaky-made\nstringData:"},
			},
		},
		"lost-secret": {
			one(schema, `{ "$ref": "#/definitions/text", "writeOnly": true }`, `{ "allOf": [{ "$ref": "#/definitions/text" }], "writeOnly": true }`),
			one(schema, `, "x-zaentrum-generate": "random-hex-32"`, ""),
		},
		"misprinted": {
			one(settings, "$copy.limit", "$copy.limit | int64"),
			one(settings, ".Values.size | float64", ".Values.size | int64"),
			one(settings, ".Values.labels | quote", ".Values.labels | toJson | quote"),
			one(settings, `printf "%d"`, `printf "%v"`),
		},
		"missing-key": {
			one(primary, "key: database-uri", "key: database-url"),
			one(primary, "key: cache-url\n", "key: cache-url\n                  optional: true\n"),
			one(primary, "setings", "settings"),
			one(primary, "key: tls.crt", "key: user.crt"),
			one(settings, "  settings.yaml:", "  ca.pem: none\n  settings.yaml:"),
		},
		"missing-port": {
			one(primary, "port: admin", "port: 8080"),
			one(primary, "              port: web", "              port: http"),
			one(primary, "targetPort: web", "targetPort: http"),
		},
		"missing-volume": {
			one(primary, "name: temp", "name: tmp"),
			one(primary, "          emptyDir: {}\n", "          emptyDir: {}\n        {{- if .Values.cache }}\n        - name: cache\n          emptyDir: {}\n        {{- end }}\n"),
		},
		"no-variable": {
			one(primary, "$(DATA_DIR)", "$$(DATA_DIR)"),
			{
				{primary, "            - name: DATABASE_URL\n", "            - name: LATER\n"},
				{primary, "              value: $$(AMOUNT)\n", "              value: $$(AMOUNT)\n            - name: DATABASE_URL\n              value: postgres://example:$(DATABASE_PASSWORD)@$(POSTGRES_SERVICE_HOST)/example\n"},
				{primary, "            - name: LATER\n              value: postgres://example:$(DATABASE_PASSWORD)@$(POSTGRES_SERVICE_HOST)/example\n", ""},
			},
			one(primary, "          env:\n", "          env:\n            - name: POD_NAME\n              valueFrom:\n                fieldRef:\n                  fieldPath: metadata.name\n"),
		},
		"nowhere": {
			one(primary, "app: somewhere", "app: nowhere"),
			one(primary, "  name: nowhere-too\nspec:\n", "  name: nowhere-too\nspec:\n  selector:\n    app: nowhere\n"),
			one(primary, "app: elsewhere", "app: nowhere"),
		},
		"odd-names": {
			{{schema, `"log level"`, `"logLevel"`}, {settings, `index .Values "log level"`, ".Values.logLevel"}, {given, "log level: info", "logLevel: info"}},
			{{schema, strings.Repeat("deep", 63), "deep"}, {settings, strings.Repeat("deep", 63), "deep"}},
			{{schema, `"a.b"`, `"ab"`}, {settings, `index .Values "a.b"`, ".Values.ab"}},
			{{schema, `"on"`, `"enabled"`}, {settings, `index .Values "on"`, ".Values.enabled"}, {given, "on: false", "enabled: false"}},
		},
		"one-claim": {
			one("templates/claims.yaml", `["ReadWriteOnce"]`, `["ReadWriteMany"]`),
			one("templates/worker.yaml", "  name: one-claim-index\nspec:\n", "  name: one-claim-index\nspec:\n  strategy: {type: Recreate}\n"),
		},
		"other-dialect": {
			one(schema, "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"),
			one(schema, `"properties": {`, `"properties": { "zaentrum": { "type": "object" },`),
		},
		"other-port": {
			one(primary, "targetPort: 8090", "targetPort: http"),
			{
				{"templates/worker.yaml", "    matchLabels:\n      app: other-port\n", "    matchLabels:\n      app: other-port-worker\n"},
				{"templates/worker.yaml", "      labels:\n        app: other-port\n", "      labels:\n        app: other-port-worker\n"},
			},
		},
		"plain-text": {
			one(settings, "{{ .Values.title }}", "{{ .Values.title | quote }}"),
			one(settings, "{{ .Values.colour }}", "{{ .Values.colour | quote }}"),
			one(settings, `"{{ .Values.motto }}"`, "{{ .Values.motto | quote }}"),
			one(settings, "{{ .Values.mirror }}/files", `{{ printf "%s/files" .Values.mirror | quote }}`),
			one(settings, "{{ .Values.notes }}", "{{ .Values.notes | quote }}"),
			one(primary, "- {{ . }}", "- {{ . | quote }}"),
		},
		"pull-secret": {{
			{secret, "type: Opaque", "type: kubernetes.io/dockerconfigjson"},
			{secret, "{{ .Values.registry | quote }}", `{{ dict "auths" (dict "registry.example.org" (dict "username" "puller" "password" .Values.registry)) | toJson | quote }}`},
		}},
		"random": {{
			{schema, "", `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
				"properties": {"password": {"type": "string", "writeOnly": true, "x-zaentrum-generate": "random-base64-32"}}}`},
			{secret, "randAlphaNum 24", ".Values.password"},
		}},
		"generator-refused": {
			one(schema, `, "pattern": "^[A-F0-9]{64}$"`, ""),
			one(schema, `"^[A-Za-z0-9=]+$"`, `"^[A-Za-z0-9+/=]+$"`),
		},
		"refused-default": {one(given, "size: 9", "size: 4")},
		"refused-file": {
			one("ci/broken-values.yaml", "worker: [", "worker: {level: low, token: something}"),
			one("ci/old-values.yaml", "level: middle", "level: low\n  token: something"),
			one("ci/old-values.yaml", "size: 9", "size: 4"),
		},
		"remote-schema":  {one(schema, `{ "$ref": "https://schemas.example.org/a.json" }`, `{ "type": "string" }`)},
		"schemaless":     {one(schema, "", `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"level": {"type": "string"}}}`)},
		"secret-default": {one(given, "password: changeit\n", ""), one(given, "", "")},
		"telling":        {one(settings, "  START: {{ .Values.token | trunc 6 | quote }}\n", "  START: here\n")},
		"told-once":      {one(settings, "  finalizers: [\"example.org/x\"]\n", ""), one(settings, "a: b", `"a: b"`)},
		"two-defaults":   {one(given, "size: 1\n", "size: 2\n"), one(given, "size: 2\n", "size: 2\nlevel: info\n")},
		"unbounded": {
			one(schema, `"port": { "type": "integer" }`, `"port": { "type": "integer", "minimum": 1, "maximum": 65535 }`),
			one(schema, `"grace": { "type": "integer", "minimum": 0 }`, `"grace": { "type": "integer", "minimum": 0, "maximum": 3600 }`),
			one(schema, `"shards": { "type": "integer", "minimum": 1 }`, `"shards": { "type": "integer", "minimum": 1, "maximum": 16 }`),
		},
		"undeclared-default":     {one(schema, `"known":`, `"tuning": { "type": "object", "properties": { "depth": { "type": "integer" } } }, "known":`)},
		"undeclared-value":       {one(settings, "worker.lev"+"le |", "worker.level |")},
		"under_scored":           {one("Chart.yaml", "name: under_scored", "name: under-scored")},
		"unencoded":              {one(secret, "| quote", "| b64enc | quote")},
		"unguessable":            {one("ci/given-values.yaml", "", "number: ABC123\n")},
		"unknown-platform-value": {one(settings, ".Values.zaentrum.region", ".Values.zaentrum.partOf")},
		"unpinned":               {one(primary, ":latest", ":{{ .Chart.AppVersion }}")},
		"unquoted":               {one(secret, "{{ .Values.token }}", "{{ .Values.token | quote }}")},
		"unreadable":             {one("Chart.yaml", "version: one", "version: 1.0.0")},
		"unswitched": {
			{
				{schema, `"enabled": { "type": "string", "enum": ["true", "false"] }`, `"enabled": { "type": "boolean" }`},
				{given, `enabled: "false"`, "enabled: false"},
			},
			one("Chart.yaml", "    condition: store.on\n", ""),
		},
		"unused-input": {one(schema, `,
    "group": {
      "type": "object",
      "properties": { "forgotten": { "type": "string" } }
    }`, "")},
		"versioned": {
			one(primary, "      app: versioned\n      version: {{ .Chart.AppVersion | quote }}\n  template:", "      app: versioned\n  template:"),
			one(settings, `versioned-{{ .Chart.Version | replace "." "-" }}`, "versioned"),
		},
		"upgrade/2.0.0": {
			one("templates/claim.yaml", "", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: upgrade-data\nspec:\n  accessModes: [\"ReadWriteOnce\"]\n  resources:\n    requests:\n      storage: 3Gi\n"+
				"---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: upgrade-cache\nspec:\n  accessModes: [\"ReadWriteOnce\"]\n  resources:\n    requests:\n      storage: 1Gi\n"),
			one(primary, "      app: upgrade\n      part: primary\n  template:", "      app: upgrade\n  template:"),
			one(secret, "name: upgrade", "name: upgrade-login"),
			one(settings, "name: upgrade", "name: upgrade-settings"),
			{
				{schema, `"level":`, `"old": { "type": "string" }, "level":`},
				{settings, "  LEVEL:", "  OLD: {{ .Values.old | default \"none\" | quote }}\n  LEVEL:"},
			},
			one(given, "level: info\n", "level: info\naddress: here\n"),
			{{schema, `"required": ["address", "password"],`, `"required": ["address"],`}, {secret, "{{ .Values.password | quote }}", `{{ .Values.password | default "" | quote }}`}},
		},
		"upgrade/1.0.0": {one("Chart.yaml", "version: 1.0.0\nappVersion", "version: 3.0.0\nappVersion")},
	}
}

// against are the versions before. The older of the two held against the newer shows one rule only, and more is left.
var against = map[string]string{"upgrade/2.0.0": "upgrade/1.0.0", "upgrade/1.0.0": "upgrade/2.0.0"}

// do does an edit.
func (e edit) do(t *testing.T, files map[string]string) {
	t.Helper()
	switch text := files[e.file]; {
	case e.from == "" && e.to == "":
		delete(files, e.file)
	case e.from == "":
		files[e.file] = e.to
	case strings.Count(text, e.from) != 1:
		t.Fatalf("%s: %q is there %d times", e.file, e.from, strings.Count(text, e.from))
	default:
		files[e.file] = strings.Replace(text, e.from, e.to, 1)
	}
}

// sourceOfFiles is a chart of these files, packed and beside.
func sourceOfFiles(t *testing.T, name string, files map[string]string) lint.Source {
	t.Helper()
	src := lint.Source{Label: name, Extra: map[string][]byte{}}
	var all []chart.File
	for _, file := range slices.Sorted(maps.Keys(files)) {
		all = append(all, chart.File{Name: file, Data: []byte(files[file])})
		if strings.HasPrefix(file, "ci/") || file == lint.ExceptionsFile {
			src.Extra[file] = []byte(files[file])
		}
	}
	var err error
	if src.Archive, err = chart.Repack("chart", all); err != nil {
		t.Fatal(err)
	}
	return src
}

// TestHintsAreWaysOut does on each faulty chart what its hints say: each step ends a finding and starts none, and at
// the end there is none.
func TestHintsAreWaysOut(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	for name, steps := range fixes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o lint.Options
			if before := against[name]; before != "" {
				o.Against = sourceOf(t, examples+"lint/"+before).Archive
			}
			files := map[string]string{}
			all, err := chart.Files(sourceOf(t, examples+"lint/"+name).Archive)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range all {
				files[f.Name] = string(f.Data)
			}
			for file, text := range extraOf(t, examples+"lint/"+name) {
				files[file] = string(text)
			}
			found := identities(check(t, pool, sourceOfFiles(t, name, files), o))
			for i, s := range steps {
				for _, e := range s {
					e.do(t, files)
				}
				report := check(t, pool, sourceOfFiles(t, name, files), o)
				left := identities(report)
				if len(left) >= len(found) {
					t.Errorf("step %d ends nothing:\n%s", i, lines(report))
				}
				for _, id := range left {
					if !slices.Contains(found, id) {
						t.Errorf("after step %d there is %s", i, id)
					}
				}
				found = left
			}
			if len(found) > 0 && name != "upgrade/1.0.0" {
				t.Errorf("left: %s", strings.Join(found, "\n"))
			}
		})
	}
}

// identities are findings without what an edit changes: lines, and places in lists.
func identities(r *lint.Report) []string {
	var out []string
	for _, f := range r.Findings {
		message, _, _ := strings.Cut(f.Message, " (line ")
		out = append(out, f.Rule+" "+f.File+" "+f.Object+" "+message)
	}
	return out
}

// TestEveryHintIsTried: no faulty chart, and no rule for authors, is without its way out.
func TestEveryHintIsTried(t *testing.T) {
	t.Parallel()
	all := fixes()
	for _, dir := range faulty(t) {
		if name := dir[strings.LastIndex(dir, "/")+1:]; all[name] == nil {
			t.Errorf("nothing is done about %s", name)
		}
	}
	var shown strings.Builder
	for _, name := range []string{"faulty.txt", "against.txt", "back.txt"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(text)
	}
	for _, r := range lint.Rules() {
		if !strings.Contains(shown.String(), " "+r.ID+" ") {
			t.Errorf("%s is broken by no faulty chart", r.ID)
		}
	}
}
