package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"zaentrum.io/zae/testbed/registry"
)

// world is a house with a few addons of which it is known what they should be. Each round every addon takes a step,
// a fault comes in between, and afterwards all must be as if there had been none.
type world struct {
	*house
	client  kubernetes.Interface
	random  *rand.Rand
	members []*member
	history *history
	// lossy tells that the fault lets the API server lose audit events: then nothing may be counted twice, but
	// something may be missing.
	lossy bool
	steps map[string]int // how often each was taken
}

// member is one addon, as it is asked for and as it is therefore expected to be.
type member struct {
	name string

	exists, suspended bool
	asked             state
	applied           *state // nil: nothing was applied
	uid               types.UID

	// generated are the values that were seen first, by path, which must be those that run.
	generated map[string]string
	// kept are the Secrets that were kept, and belong to nobody.
	kept map[string]bool
	// former are values Secrets that nothing references any more, and since when at the earliest.
	former map[string]time.Time
	// What must have been created by now, ever: Jobs, ReplicaSets, Secrets with generated values.
	jobs, rolls, made int
	secrets           int            // values Secrets created
	rolled            map[state]bool // what there is a ReplicaSet of
}

// state is what a spec says.
type state struct {
	version string
	level   string
	secret  string // the values Secret
	token   string // what is in it
}

func newWorld(h *house, names []string, seed uint64) *world {
	h.Helper()
	config, err := bed.RestConfig()
	if err != nil {
		h.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		h.Fatal(err)
	}
	w := &world{house: h, client: client, random: rand.New(rand.NewPCG(seed, seed)), steps: map[string]int{}}
	for _, name := range names {
		w.publishBoth(name)
		w.members = append(w.members, &member{name: name, kept: map[string]bool{}, former: map[string]time.Time{}})
	}
	w.history = watchGenerated(w)
	return w
}

const schemaText = `{"type":"object","required":["token","key"%s],"properties":{
"token":{"type":"string","minLength":1,"writeOnly":true},
"level":{"type":"string"},
"key":{"type":"string","writeOnly":true,"x-zaentrum-generate":"random-hex-32"}%s}}`

// publishBoth pushes two versions of a chart. The second has another image, one object instead of another, and one more
// generated input.
func (w *world) publishBoth(name string) {
	w.Helper()
	for _, version := range []string{"1.0.0", "2.0.0"} {
		var required, property, second, only string
		if only = "old"; version == "2.0.0" {
			only, second = "new", "  second: {{ .Values.second | quote }}\n"
			required, property = `,"second"`, `,"second":{"type":"string","writeOnly":true,"x-zaentrum-generate":"random-base64-32"}`
		}
		pod := `      containers:
        - name: main
          image: ghcr.io/example/main:{{ .Chart.Version }}
          envFrom: [{secretRef: {name: NAME-env}}, {configMapRef: {name: NAME-settings}}]
`
		files := map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: NAME\nversion: " + version +
				"\nannotations: {zaentrum.io/addon: \"true\", zaentrum.io/primary: NAME}\n",
			"values.yaml":            "level: info\n",
			"values.schema.json":     fmt.Sprintf(schemaText, required, property),
			"templates/account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: NAME}\n",
			"templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME-env}\nstringData:\n" +
				"  token: {{ .Values.token | quote }}\n  key: {{ .Values.key | quote }}\n" + second,
			"templates/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME-settings}\ndata: {level: {{ .Values.level | quote }}}\n",
			"templates/only.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME-" + only + "}\ndata: {a: b}\n",
			"templates/claim.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: NAME-data}\nspec:\n" +
				"  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n",
			"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: NAME}\nspec: {selector: {app: NAME}, ports: [{port: 80}]}\n",
			"templates/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME}\nspec:\n  replicas: 1\n" +
				"  selector: {matchLabels: {app: NAME}}\n  template:\n    metadata: {labels: {app: NAME}}\n    spec:\n      terminationGracePeriodSeconds: 1\n" + pod,
			"templates/job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: NAME-migrate}\nspec:\n  template:\n" +
				"    metadata: {labels: {app: NAME-migrate}}\n    spec:\n      restartPolicy: Never\n" + pod,
		}
		dir := w.TempDir()
		for file, text := range files {
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				w.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "NAME", name)), 0o600); err != nil {
				w.Fatal(err)
			}
		}
		archive, err := registry.Package(dir)
		if err != nil {
			w.Fatal(err)
		}
		if _, _, err := w.PushArchive(w.ctx, archive, name, version); err != nil {
			w.Fatal(err)
		}
	}
}

// objects are what a state renders, as kind/name.
func (m *member) objects(s *state) []string {
	if s == nil {
		return nil
	}
	only := map[string]string{"1.0.0": "-old", "2.0.0": "-new"}[s.version]
	out := []string{
		"ServiceAccount/" + m.name, "Secret/" + m.name + "-env", "ConfigMap/" + m.name + "-settings", "ConfigMap/" + m.name + only,
		"PersistentVolumeClaim/" + m.name + "-data", "Service/" + m.name, "Deployment/" + m.name, "Job/" + m.name + "-migrate",
	}
	slices.Sort(out)
	return out
}

// resource is the resource of an addon, as far as the world looks at it.
type resource struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Suspend bool `json:"suspend"`
	} `json:"spec"`
	Status struct {
		Phase              string `json:"phase"`
		Message            string `json:"message"`
		ObservedGeneration int64  `json:"observedGeneration"`
		LastAppliedChart   struct {
			Version string `json:"version"`
		} `json:"lastAppliedChart"`
	} `json:"status"`
}

func (w *world) path(name string) string {
	return strings.TrimSuffix("/apis/zaentrum.io/v1alpha1/namespaces/"+w.Namespace+"/zaentrumaddons/"+name, "/")
}

func (w *world) rest() rest.Interface { return w.client.CoreV1().RESTClient() }

// patiently does something again and again while the control plane does not answer, as a person would.
func (w *world) patiently(what string, try func(context.Context) error) {
	w.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		err := try(ctx)
		cancel()
		if err == nil {
			return
		}
		if status := apierrors.APIStatus(nil); errors.As(err, &status) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) || time.Now().After(deadline) {
			w.Fatalf("%s: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (w *world) createAddon(m *member) {
	w.Helper()
	body, err := json.Marshal(map[string]any{
		"apiVersion": "zaentrum.io/v1alpha1", "kind": "ZaentrumAddon", "metadata": map[string]any{"name": m.name},
		"spec": m.spec(w),
	})
	if err != nil {
		w.Fatal(err)
	}
	former := m.uid
	w.patiently("create "+m.name, func(ctx context.Context) error {
		text, err := w.rest().Post().AbsPath(w.path("")).Body(body).DoRaw(ctx)
		if apierrors.IsAlreadyExists(err) { // the former one, or ours, and the answer was lost
			text, err = w.rest().Get().AbsPath(w.path(m.name)).DoRaw(ctx)
		}
		if err != nil {
			return err
		}
		var r resource
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		if r.Metadata.UID == former {
			return errors.New("the former one is still there")
		}
		m.uid = r.Metadata.UID
		return nil
	})
}

func (m *member) spec(w *world) map[string]any {
	return map[string]any{
		"chart":   map[string]any{"ref": w.ref(m.name), "version": m.asked.version},
		"values":  map[string]any{"level": m.asked.level},
		"suspend": m.suspended,
		"valuesFrom": []any{
			map[string]any{"kind": "Secret", "name": m.asked.secret, "valuesKey": "token", "targetPath": "token"},
		},
	}
}

// write makes the resource say what the member is asked for.
func (w *world) write(m *member) {
	w.Helper()
	w.patch(m, map[string]any{"spec": m.spec(w)})
}

func (w *world) patch(m *member, change map[string]any) {
	w.Helper()
	body, err := json.Marshal(change)
	if err != nil {
		w.Fatal(err)
	}
	w.patiently("change "+m.name, func(ctx context.Context) error {
		_, err := w.rest().Patch(types.MergePatchType).AbsPath(w.path(m.name)).Body(body).DoRaw(ctx)
		return err
	})
}

func (w *world) delete(m *member, policy metav1.DeletionPropagation) {
	w.Helper()
	body, err := json.Marshal(metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &m.uid}})
	if err != nil {
		w.Fatal(err)
	}
	w.patiently("delete "+m.name, func(ctx context.Context) error {
		_, err := w.rest().Delete().AbsPath(w.path(m.name)).Body(body).DoRaw(ctx)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // an answer was lost
		}
		return err
	})
}

// newSecret names a values Secret with a value of its own; createSecret creates it.
func (w *world) newSecret(m *member) {
	m.secrets++
	m.asked.secret = fmt.Sprintf("zaentrum-addon-%s-values-%d", m.name, m.secrets)
	m.asked.token = w.token(m, fmt.Sprint(m.secrets))
}

// token is what is in the values Secret with this number.
func (w *world) token(m *member, number string) string { return w.canary + "-" + m.name + "-" + number }

func (w *world) createSecret(m *member) {
	w.Helper()
	w.patiently("create "+m.asked.secret, func(ctx context.Context) error {
		_, err := w.client.CoreV1().Secrets(w.Namespace).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: m.asked.secret, Labels: map[string]string{"zaentrum.io/addon": m.name}},
			StringData: map[string]string{"token": m.asked.token},
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// The steps that an addon may take, by its state.

// step takes one at random and answers with its name.
func (w *world) step(m *member) string {
	w.Helper()
	var choices map[string]func(*member)
	switch {
	case !m.exists && len(m.kept) > 0:
		choices = map[string]func(*member){"add": w.add, "plan": w.plan, "add with what was kept": w.addKept, "drop what was kept": w.dropKept}
	case !m.exists:
		choices = map[string]func(*member){"add": w.add, "add before its Secret": w.addFirst, "plan": w.plan}
	case m.suspended:
		choices = map[string]func(*member){"install": w.install, "remove": w.remove}
	default:
		choices = map[string]func(*member){
			"upgrade": w.upgrade, "other values": w.change, "another secret": w.rotate, "plan an upgrade": w.planUpgrade, "nothing": func(*member) {},
			"remove": w.remove, "remove in the foreground": w.removeForeground, "remove and keep": w.removeAndKeep, "remove and add": w.readd,
		}
	}
	names := slices.Sorted(maps.Keys(choices))
	name := names[w.random.IntN(len(names))]
	w.steps[name]++
	choices[name](m)
	return m.name + ": " + name
}

func (w *world) add(m *member) {
	w.fresh(m, false)
	w.createSecret(m)
	w.createAddon(m)
}

func (w *world) addFirst(m *member) {
	w.fresh(m, false)
	w.createAddon(m)
	w.createSecret(m)
}

func (w *world) plan(m *member) {
	w.fresh(m, true)
	w.createSecret(m)
	w.createAddon(m)
}

func (w *world) addKept(m *member) {
	for _, name := range slices.Sorted(maps.Keys(m.kept)) {
		if number, ok := strings.CutPrefix(name, "zaentrum-addon-"+m.name+"-values-"); ok {
			w.freshWith(m, false, state{secret: name, token: w.token(m, number)})
			w.createAddon(m)
			return
		}
	}
	w.Fatalf("%s: no values Secret was kept, but %v", m.name, m.kept)
}

// fresh is an addon that is about to be added, with a new values Secret.
func (w *world) fresh(m *member, suspended bool) {
	w.newSecret(m)
	w.freshWith(m, suspended, m.asked)
}

// freshWith is one with the values Secret of this state.
func (w *world) freshWith(m *member, suspended bool, s state) {
	s.version = []string{"1.0.0", "2.0.0"}[w.random.IntN(2)]
	s.level = fmt.Sprint("level-", w.random.IntN(1000))
	m.exists, m.suspended, m.asked = true, suspended, s
	m.rolled = map[state]bool{}
	if !m.kept[m.generatedName()] {
		m.generated = map[string]string{}
		m.made++
	}
	w.runs(m)
}

// runs notes that what is asked for is applied from now on, unless the addon is suspended.
func (w *world) runs(m *member) {
	if m.suspended || m.applied != nil && *m.applied == m.asked {
		return
	}
	asked := m.asked
	m.applied = &asked
	m.jobs++
	if !m.rolled[asked] {
		m.rolled[asked] = true
		m.rolls++
	}
}

func (m *member) generatedName() string { return "zaentrum-addon-" + m.name + "-generated" }

func (w *world) dropKept(m *member) {
	for name := range m.kept {
		w.patiently("delete "+name, func(ctx context.Context) error {
			err := w.client.CoreV1().Secrets(w.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	m.kept = map[string]bool{}
}

func (w *world) install(m *member) {
	m.suspended = false
	w.runs(m)
	w.write(m)
}

func (w *world) upgrade(m *member) {
	m.asked.version = map[string]string{"1.0.0": "2.0.0", "2.0.0": "1.0.0"}[m.asked.version]
	w.runs(m)
	w.write(m)
}

func (w *world) planUpgrade(m *member) {
	m.suspended = true
	w.upgrade(m)
}

func (w *world) change(m *member) {
	m.asked.level += "+"
	w.runs(m)
	w.write(m)
}

func (w *world) rotate(m *member) {
	if !m.kept[m.asked.secret] {
		m.former[m.asked.secret] = time.Now()
	}
	w.newSecret(m)
	w.createSecret(m)
	w.runs(m)
	w.write(m)
}

func (w *world) remove(m *member) {
	w.delete(m, metav1.DeletePropagationBackground)
	w.gone(m)
}

func (w *world) removeForeground(m *member) {
	w.delete(m, metav1.DeletePropagationForeground)
	w.gone(m)
}

// gone notes that an addon and all it made goes.
func (w *world) gone(m *member) {
	m.exists, m.suspended, m.applied, m.asked = false, false, nil, state{}
	m.former = map[string]time.Time{}
}

// removeAndKeep does what the API does. What nothing references any more is not kept.
func (w *world) removeAndKeep(m *member) {
	w.patch(m, map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{"zaentrum.io/keep-values": "true"}, "finalizers": []any{"zaentrum.io/addon-values"},
	}})
	w.delete(m, metav1.DeletePropagationBackground)
	m.kept[m.asked.secret], m.kept[m.generatedName()] = true, true
	w.gone(m)
}

func (w *world) readd(m *member) {
	w.remove(m)
	w.add(m)
}

// settle waits until everything is as it is asked for, and compares what was done on the way.
func (w *world) settle() {
	w.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for {
		problem := w.unsettled()
		if problem == "" {
			break
		}
		if time.Now().After(deadline) || w.ctx.Err() != nil {
			w.Fatalf("not within 90 s: %s", problem)
		}
		time.Sleep(150 * time.Millisecond)
	}
	for _, m := range w.members {
		if m.exists {
			w.learn(m)
		}
	}
	if problem := w.history.problem(); problem != "" {
		w.Error(problem)
	}
	w.counted()
}

// learn notes the generated values that run, which must be those from now on.
func (w *world) learn(m *member) {
	w.Helper()
	s, err := w.client.CoreV1().Secrets(w.Namespace).Get(w.ctx, m.generatedName(), metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for path, v := range s.Data {
		if was, ok := m.generated[path]; ok && was != string(v) {
			w.Errorf("%s: the generated value of %s is another one", m.name, path)
		}
		m.generated[path] = string(v)
	}
}

// counted compares how often things were created with how often they should have been.
func (w *world) counted() {
	w.Helper()
	// The API server writes an event a moment after its answer.
	for try := 0; ; try++ {
		problems := w.miscounted()
		if len(problems) == 0 {
			return
		}
		if try == 20 {
			w.Fatal(strings.Join(problems, "\n"))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (w *world) miscounted() []string {
	w.Helper()
	var problems []string
	for _, m := range w.members {
		for _, c := range []struct {
			what      string
			is, wants int
		}{
			{"its Job was created", w.creations("jobs/" + m.name + "-migrate"), m.jobs},
			{"generated values were made", w.creations("secrets/" + m.generatedName()), m.made},
			{"its pods were rolled out", w.creationsLike(func(object string) bool {
				hash, ok := strings.CutPrefix(object, "replicasets/"+m.name+"-")
				return ok && !strings.Contains(hash, "-")
			}), m.rolls},
		} {
			if c.is > c.wants || c.is < c.wants && !w.lossy {
				problems = append(problems, fmt.Sprintf("%s: %s %d times, not %d", m.name, c.what, c.is, c.wants))
			}
		}
	}
	return problems
}

// history is every generated value that ever was, by the UID of its Secret and by its path.
type history struct {
	mu     sync.Mutex
	values map[string]map[string]bool
}

// watchGenerated watches the Secrets with generated values until the test ends.
func watchGenerated(w *world) *history {
	h := &history{values: map[string]map[string]bool{}}
	ctx, cancel := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			h.follow(ctx, w)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond): // a control plane that is away
			}
		}
	})
	w.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return h
}

func (h *history) follow(ctx context.Context, w *world) {
	secrets := w.client.CoreV1().Secrets(w.Namespace)
	list, err := secrets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range list.Items {
		h.note(&list.Items[i])
	}
	events, err := secrets.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		if s, ok := e.Object.(*corev1.Secret); ok {
			h.note(s)
		}
	}
}

func (h *history) note(s *corev1.Secret) {
	if !strings.HasSuffix(s.Name, "-generated") {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for path, v := range s.Data {
		key := s.Name + " " + string(s.UID) + " " + path
		if h.values[key] == nil {
			h.values[key] = map[string]bool{}
		}
		h.values[key][string(v)] = true
	}
}

func (h *history) problem() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, values := range h.values {
		if len(values) > 1 {
			return fmt.Sprintf("Secret %s had %d values", key, len(values))
		}
	}
	return ""
}
