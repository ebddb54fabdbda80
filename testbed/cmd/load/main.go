// Command load installs many addons on a local control plane and says what that costs: the time until all are Ready,
// the operator's processor time and memory, and its requests, also those of a pass in which nothing is to be done.
package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"zaentrum.io/zae/testbed"
	"zaentrum.io/zae/testbed/stack"
)

func main() {
	zae := flag.String("zae", "", "path of the zae binary")
	addons := flag.Int("addons", 500, "addons to install")
	resync := flag.Duration("resync", 5*time.Minute, "the operator's resync; an idle pass is that long")
	within := flag.Duration("within", 30*time.Minute, "longest time until all are Ready")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, *zae, *addons, *resync, *within)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

const (
	namespace = "load"
	objects   = 10 // of each addon
	// secret is the value that each addon's secret input has.
	secret = "c4n4ry-load-value"
)

func run(ctx context.Context, zae string, n int, resync, within time.Duration) (err error) {
	if zae == "" {
		return errors.New("-zae is missing: run make load")
	}
	bed, err := testbed.Start(ctx, options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Stop()) }()
	s, err := stack.Start(ctx, stack.Options{
		Bed: bed, Zae: zae, Namespace: namespace, Progress: os.Stdout,
		OperatorArgs: []string{"--resync", resync.String()},
	})
	if err != nil {
		return err
	}
	fmt.Printf("%d charts of %d objects each\n", n, objects)
	for i := range n {
		archive, err := chart(name(i))
		if err != nil {
			return err
		}
		if _, _, err := s.PushArchive(ctx, archive, name(i), "1.0.0"); err != nil {
			return err
		}
	}
	l := &load{stack: s, audit: bed.AuditLog, n: n}
	if err := l.install(ctx, within); err != nil {
		return err
	}
	if err := l.idle(ctx, resync); err != nil {
		return err
	}
	return l.canary()
}

func options() testbed.Options {
	o := testbed.Full()
	o.Progress = os.Stdout
	return o
}

func name(i int) string { return fmt.Sprintf("load-%03d", i) }

type load struct {
	stack *stack.Stack
	audit string
	n     int
}

// install creates all resources at once and waits until the last one is Ready.
func (l *load) install(ctx context.Context, within time.Duration) error {
	before, err := l.measure()
	if err != nil {
		return err
	}
	start := time.Now()
	for from := 0; from < l.n; from += 50 {
		var yaml strings.Builder
		for i := from; i < min(from+50, l.n); i++ {
			fmt.Fprintf(&yaml, resources, name(i), namespace, secret, l.stack.Bed.Registry)
		}
		if err := l.stack.Apply(ctx, yaml.String()); err != nil {
			return err
		}
	}
	created := time.Since(start)
	for {
		phases, err := l.phases(ctx)
		if err != nil {
			return err
		}
		if phases["Ready"] == l.n {
			break
		}
		if time.Since(start) > within {
			return fmt.Errorf("not all are Ready after %s: %v", within, phases)
		}
		fmt.Printf("  %4.0f s: %v\n", time.Since(start).Seconds(), phases)
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	took := time.Since(start)
	time.Sleep(5 * time.Second) // for what Ready addons still do
	after, err := l.measure()
	if err != nil {
		return err
	}
	used := after.since(before)
	// What the chart renders, the Secret of generated values, and the Secret of inputs, which gets an owner.
	written := float64(l.n * (objects + 2))
	fmt.Printf("\n%d addons of %d objects: created in %.0f s, all Ready after %.0f s\n", l.n, objects, created.Seconds(), took.Seconds())
	used.print(l.n)
	fmt.Printf("  writes per object             %.2f of %d objects, 2 Secrets of values among them, status included; with events %.2f\n",
		float64(used.writes-used.byVerb["create event"]-used.byVerb["patch event"])/written, objects+2, float64(used.writes)/written)
	return nil
}

// idle watches a whole pass over all addons in which nothing is to be done.
func (l *load) idle(ctx context.Context, resync time.Duration) error {
	before, err := l.measure()
	if err != nil {
		return err
	}
	select {
	case <-time.After(resync):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := l.measure()
	if err != nil {
		return err
	}
	used := after.since(before)
	fmt.Printf("\na pass of %s over %d Ready addons\n", resync, l.n)
	used.print(l.n)
	return nil
}

func (l *load) phases(ctx context.Context) (map[string]int, error) {
	out, err := l.stack.Kubectl(ctx, "", "get", "zaddon", "-o", `jsonpath={range .items[*]}{.status.phase}{"\n"}{end}`)
	if err != nil {
		return nil, err
	}
	phases := map[string]int{}
	for _, p := range strings.Split(strings.TrimSpace(out), "\n") {
		phases[p]++
	}
	return phases, nil
}

// figures are what the operator has used until now.
type figures struct {
	cpu, workers time.Duration // of the operator and of its render workers, those that have ended included
	peak         int64         // bytes the operator has held at most
	reads        int           // requests at the API server's audit log, without watches and leases
	writes       int
	reconciles   float64
	byVerb       map[string]int
}

func (f figures) since(b figures) figures {
	verbs := map[string]int{}
	for v, n := range f.byVerb {
		if n -= b.byVerb[v]; n > 0 {
			verbs[v] = n
		}
	}
	return figures{
		cpu: f.cpu - b.cpu, workers: f.workers - b.workers, peak: f.peak,
		reads: f.reads - b.reads, writes: f.writes - b.writes, reconciles: f.reconciles - b.reconciles, byVerb: verbs,
	}
}

func (f figures) print(addons int) {
	fmt.Printf("  operator's processor time     %.2f s, and %.2f s of its render workers\n", f.cpu.Seconds(), f.workers.Seconds())
	fmt.Printf("  operator's memory, peak       %d MiB\n", f.peak>>20)
	fmt.Printf("  reconciles                    %.0f, %.1f per addon\n", f.reconciles, f.reconciles/float64(addons))
	fmt.Printf("  requests                      %d reads and dry runs, %d writes; per addon %.1f and %.1f: %v\n", f.reads, f.writes,
		float64(f.reads)/float64(addons), float64(f.writes)/float64(addons), f.byVerb)
}

func (l *load) measure() (figures, error) {
	f := figures{byVerb: map[string]int{}}
	var err error
	if f.cpu, f.workers, err = processorTime(l.stack.Operator.PID()); err != nil {
		return f, err
	}
	if f.peak, err = testbed.PeakMemory(l.stack.Operator.PID()); err != nil {
		return f, err
	}
	if f.reconciles, err = metric(l.stack.MetricsURL, `controller_runtime_reconcile_total{controller="addon"`); err != nil {
		return f, err
	}
	return f, l.requests(&f)
}

// requests counts the operator's requests in the audit log.
func (l *load) requests(f *figures) error {
	file, err := os.Open(l.audit)
	if err != nil {
		return err
	}
	defer file.Close()
	user := "system:serviceaccount:" + namespace + ":zae-operator"
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(user)) {
			continue
		}
		var e struct {
			Stage, Verb, RequestURI string
			User                    struct{ Username string }
			ObjectRef               struct{ Resource, Subresource string }
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.User.Username != user || e.Stage != "ResponseComplete" {
			continue
		}
		if e.Verb == "watch" || e.ObjectRef.Resource == "leases" || e.ObjectRef.Resource == "" {
			continue
		}
		what := e.Verb
		switch {
		case strings.Contains(e.RequestURI, "dryRun="):
			what += " (dry run)"
		case e.ObjectRef.Subresource != "":
			what += " " + e.ObjectRef.Subresource
		case e.ObjectRef.Resource == "events":
			what += " event"
		}
		f.byVerb[what]++
		switch {
		case strings.Contains(what, "dry run"), e.Verb == "get", e.Verb == "list":
			f.reads++
		default:
			f.writes++
		}
	}
	return lines.Err()
}

// processorTime is what a process has used, and its children, living and ended.
func processorTime(pid int) (own, children time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	_, rest, ok := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 15 {
		return 0, 0, errors.New("/proc holds something else than expected")
	}
	ticks := func(i int) time.Duration { // fields after the name count from 3 (proc(5))
		n, _ := strconv.ParseInt(fields[i-3], 10, 64)
		return time.Duration(n) * time.Second / 100
	}
	own, children = ticks(14)+ticks(15), ticks(16)+ticks(17)
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, 0, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(f); err == nil {
				if c, _, err := processorTime(child); err == nil {
					children += c
				}
			}
		}
	}
	return own, children, nil
}

// metric is the sum of the series that start so.
func metric(url, prefix string) (float64, error) {
	resp, err := http.Get(url) //nolint:gosec,noctx // the operator's own address
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	sum := 0.0
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), prefix) {
			f := strings.Fields(lines.Text())
			v, err := strconv.ParseFloat(f[len(f)-1], 64)
			if err != nil {
				return 0, err
			}
			sum += v
		}
	}
	return sum, lines.Err()
}

// canary looks for the secret input's value in the operator's log and in the resources.
func (l *load) canary() error {
	log, err := os.ReadFile(l.stack.Operator.Log())
	if err != nil {
		return err
	}
	resources, err := l.stack.Kubectl(context.Background(), "", "get", "zaddon", "-o", "json")
	if err != nil {
		return err
	}
	if strings.Contains(string(log)+resources, secret) {
		return errors.New("the secret input was shown")
	}
	return nil
}

// resources are an addon and its values Secret: name, namespace, secret, registry.
const resources = `---
apiVersion: v1
kind: Secret
metadata:
  name: zaentrum-addon-%[1]s-values
  namespace: %[2]s
  labels: {zaentrum.io/addon: %[1]s}
stringData:
  token: %[3]s
---
apiVersion: zaentrum.io/v1alpha1
kind: ZaentrumAddon
metadata:
  name: %[1]s
  namespace: %[2]s
spec:
  chart:
    ref: oci://%[4]s/charts/%[1]s
    version: 1.0.0
  valuesFrom:
    - {kind: Secret, name: zaentrum-addon-%[1]s-values, valuesKey: token, targetPath: token}
`

// chart is the archive of a chart with that name: two Deployments, two Services, four ConfigMaps, a Secret and a
// ServiceAccount.
func chart(name string) ([]byte, error) {
	files := []struct{ name, text string }{
		{"Chart.yaml", "apiVersion: v2\nname: NAME\nversion: 1.0.0\nannotations:\n  zaentrum.io/addon: \"true\"\n  zaentrum.io/primary: NAME\n"},
		{"values.yaml", "replicas: 1\n"},
		{"values.schema.json", `{"type":"object","required":["token"],"properties":{"token":{"type":"string","writeOnly":true},"key":{"type":"string","x-zaentrum-generate":"random-hex-32"},"replicas":{"type":"integer","default":1}}}`},
		{"templates/secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME}\nstringData:\n  token: {{ .Values.token | quote }}\n  key: {{ .Values.key | quote }}\n"},
		{"templates/account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: NAME}\n"},
		{"templates/config.yaml", "{{- range until 4 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME-{{ . }}}\ndata:\n  issuer: {{ $.Values.zaentrum.issuer | quote }}\n  n: {{ . | quote }}\n{{- end }}\n"},
		{"templates/work.yaml", `{{- range list "NAME" "NAME-worker" }}
---
apiVersion: v1
kind: Service
metadata: {name: {{ . }}}
spec:
  selector: {app: {{ . }}}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ . }}}
spec:
  replicas: {{ $.Values.replicas }}
  selector: {matchLabels: {app: {{ . }}}}
  template:
    metadata: {labels: {app: {{ . }}}}
    spec:
      serviceAccountName: NAME
      containers:
        - name: main
          image: example.org/load:{{ $.Chart.Version }}
          env:
            - {name: TOKEN, valueFrom: {secretKeyRef: {name: NAME, key: token}}}
{{- end }}
`},
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	for _, f := range files {
		text := strings.ReplaceAll(f.text, "NAME", name)
		if err := archive.WriteHeader(&tar.Header{Name: name + "/" + f.name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
