package guard

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"zaentrum.io/zae/internal/manifest"
)

// newestPolicy is the newest version of the Pod Security profiles that this module is built with.
const newestPolicy = "v1.37"

// profiles judges by Kubernetes' own checks.
type profiles struct {
	t         *testing.T
	evaluator policy.Evaluator
}

func newProfiles(t *testing.T) *profiles {
	t.Helper()
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &profiles{t, e}
}

// refuses are the reasons why a profile refuses a pod, sorted; none when it accepts it.
func (p *profiles) refuses(level api.Level, meta metav1.ObjectMeta, spec corev1.PodSpec) []string {
	p.t.Helper()
	latest := api.LevelVersion{Level: level, Version: api.LatestVersion()}
	reasons := policy.AggregateCheckResults(p.evaluator.EvaluatePod(latest, &meta, &spec)).ForbiddenReasons
	slices.Sort(reasons)
	return reasons
}

// podFixtures are the pods that Kubernetes tries its profiles on, by file.
func podFixtures(t *testing.T) map[string]map[string]any {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/pod-security-admission").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(dir)), "test", "testdata")
	files, err := filepath.Glob(filepath.Join(root, "*", newestPolicy, "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	versions, err := filepath.Glob(filepath.Join(root, "baseline", "v1.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		var minor, newest int
		_, _ = fmt.Sscanf(filepath.Base(v), "v1.%d", &minor)
		_, _ = fmt.Sscanf(newestPolicy, "v1.%d", &newest)
		if minor > newest {
			t.Errorf("%s is newer than %s: look at what it adds", filepath.Base(v), newestPolicy)
		}
	}
	out := map[string]map[string]any{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		docs, err := manifest.Decode(text)
		if err != nil || len(docs) != 1 {
			t.Fatalf("%s: %v", f, err)
		}
		out[strings.TrimPrefix(f, root+"/")] = docs[0].(map[string]any)
	}
	return out
}

// asTemplate is an addon whose one workload has this pod.
func asTemplate(kind string, pod map[string]any) Facts {
	f := goodFacts()
	w := goodWorkload(kind)
	w["spec"].(map[string]any)["template"] = map[string]any{"metadata": pod["metadata"], "spec": pod["spec"]}
	f.Objects[1] = manifest.Object{Source: "templates/x.yaml", Tree: w}
	return f
}

// ourRefusals are the ids of the rules that refuse a pod, other than for not being a whole workload.
func ourRefusals(pod map[string]any) []string {
	ids := map[string]bool{}
	rules := slices.DeleteFunc(Rules(), func(r Rule) bool { return r.ID == validity })
	for _, kind := range []string{kindDeployment, kindJob} {
		for _, f := range Refused(check(rules, asTemplate(kind, pod))) {
			ids[f.Rule] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// typedPod is the pod as the API server reads it; ok is false when it does not.
func typedPod(t *testing.T, pod map[string]any) (corev1.Pod, bool) {
	t.Helper()
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var typed corev1.Pod
	return typed, json.Unmarshal(text, &typed) == nil
}

func TestWhateverBaselineRefusesIsRefused(t *testing.T) {
	t.Parallel()
	p := newProfiles(t)
	fixtures := podFixtures(t)
	refused, ours := 0, 0
	reasons := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(fixtures)) {
		pod, ok := typedPod(t, fixtures[name])
		if !ok {
			t.Fatalf("%s is no pod", name)
		}
		found := ourRefusals(fixtures[name])
		if len(found) > 0 {
			ours++
		}
		if why := p.refuses(api.LevelBaseline, pod.ObjectMeta, pod.Spec); len(why) > 0 {
			refused++
			for _, r := range why {
				reasons[r] = true
			}
			if len(found) == 0 {
				t.Errorf("%s: baseline refuses it for %v, and no rule does", name, why)
			}
		}
	}
	if refused < 40 || len(reasons) < 12 {
		t.Errorf("only %d fixtures are refused by baseline, for %v", refused, slices.Sorted(maps.Keys(reasons)))
	}
	t.Logf("%d fixtures: baseline refuses %d, these rules %d; for %d reasons: %v", len(fixtures), refused, ours, len(reasons), slices.Sorted(maps.Keys(reasons)))
}

// mutations change one thing that the profiles look at, or that they might.
func mutations() []func(r *rand.Rand, pod map[string]any) {
	pick := func(r *rand.Rand, of ...any) any { return of[r.IntN(len(of))] }
	spec := func(pod map[string]any) map[string]any { return pod["spec"].(map[string]any) }
	below := func(m map[string]any, key string) map[string]any {
		c, ok := m[key].(map[string]any)
		if !ok {
			c = map[string]any{}
			m[key] = c
		}
		return c
	}
	container := func(r *rand.Rand, pod map[string]any) map[string]any {
		list := pick(r, "containers", "initContainers", "ephemeralContainers").(string)
		if list == "ephemeralContainers" && r.IntN(4) > 0 {
			list = "containers"
		}
		items, _ := spec(pod)[list].([]any)
		if len(items) == 0 {
			items = []any{map[string]any{"name": list[:4], "image": "x"}}
			spec(pod)[list] = items
		}
		return items[r.IntN(len(items))].(map[string]any)
	}
	security := func(r *rand.Rand, pod map[string]any) map[string]any {
		if r.IntN(3) == 0 {
			return below(spec(pod), "securityContext")
		}
		return below(container(r, pod), "securityContext")
	}
	annotate := func(pod map[string]any, k string, v any) { below(below(pod, "metadata"), "annotations")[k] = v }
	return []func(r *rand.Rand, pod map[string]any){
		func(r *rand.Rand, pod map[string]any) {
			spec(pod)[pick(r, "hostNetwork", "hostPID", "hostIPC").(string)] = pick(r, true, false)
		},
		func(r *rand.Rand, pod map[string]any) { spec(pod)["hostUsers"] = pick(r, true, false) },
		func(r *rand.Rand, pod map[string]any) {
			spec(pod)["os"] = map[string]any{"name": pick(r, "linux", "windows")}
		},
		func(r *rand.Rand, pod map[string]any) {
			container(r, pod)["ports"] = []any{map[string]any{"containerPort": int64(80), "hostPort": pick(r, int64(0), int64(80))}}
		},
		func(r *rand.Rand, pod map[string]any) {
			source := pick(r, "hostPath", "nfs", "csi", "ephemeral", "emptyDir", "configMap", "image", "flexVolume", "glusterfs", "rbd").(string)
			spec(pod)["volumes"] = []any{map[string]any{"name": "v", source: map[string]any{}}}
		},
		func(r *rand.Rand, pod map[string]any) { security(r, pod)["privileged"] = pick(r, true, false) },
		func(r *rand.Rand, pod map[string]any) {
			security(r, pod)["allowPrivilegeEscalation"] = pick(r, true, false)
		},
		func(r *rand.Rand, pod map[string]any) {
			below(security(r, pod), "capabilities")[pick(r, "add", "drop").(string)] = pick(r, []any{}, []any{"ALL"}, []any{"NET_BIND_SERVICE"}, []any{"SYS_ADMIN"}, []any{"CHOWN", "NET_RAW"})
		},
		func(r *rand.Rand, pod map[string]any) { security(r, pod)["runAsUser"] = pick(r, int64(0), int64(1)) },
		func(r *rand.Rand, pod map[string]any) { security(r, pod)["runAsNonRoot"] = pick(r, true, false) },
		func(r *rand.Rand, pod map[string]any) {
			security(r, pod)["procMount"] = pick(r, "Default", "Unmasked", "Other")
		},
		func(r *rand.Rand, pod map[string]any) {
			below(security(r, pod), "seLinuxOptions")[pick(r, "type", "user", "role", "level").(string)] = pick(r, "", "container_t", "container_engine_t", "spc_t", "system_u")
		},
		func(r *rand.Rand, pod map[string]any) {
			below(spec(pod), "securityContext")["sysctls"] = pick(r, []any{}, []any{map[string]any{"name": pick(r, "net.ipv4.tcp_syncookies", "kernel.msgmax"), "value": "1"}})
		},
		func(r *rand.Rand, pod map[string]any) {
			security(r, pod)["seccompProfile"] = map[string]any{"type": pick(r, "Unconfined", "RuntimeDefault", "Localhost", "Other", "")}
		},
		func(r *rand.Rand, pod map[string]any) { security(r, pod)["seccompProfile"] = map[string]any{} },
		func(r *rand.Rand, pod map[string]any) {
			security(r, pod)["appArmorProfile"] = pick(r, map[string]any{}, map[string]any{"type": "Unconfined"}, map[string]any{"type": "RuntimeDefault"}, map[string]any{"type": "x"})
		},
		func(r *rand.Rand, pod map[string]any) {
			below(security(r, pod), "windowsOptions")["hostProcess"] = pick(r, true, false)
		},
		func(r *rand.Rand, pod map[string]any) {
			handler := map[string]any{pick(r, "httpGet", "tcpSocket").(string): map[string]any{"port": int64(80), "host": pick(r, "", "127.0.0.1", "10.0.0.1")}}
			if r.IntN(2) == 0 {
				container(r, pod)[pick(r, "livenessProbe", "readinessProbe", "startupProbe").(string)] = handler
			} else {
				below(container(r, pod), "lifecycle")[pick(r, "postStart", "preStop").(string)] = handler
			}
		},
		func(r *rand.Rand, pod map[string]any) {
			annotate(pod, "container.apparmor.security.beta.kubernetes.io/"+pick(r, "container1", "other").(string), pick(r, "", "unconfined", "runtime/default", "localhost/x"))
		},
		func(r *rand.Rand, pod map[string]any) {
			annotate(pod, pick(r, "seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/container1").(string), pick(r, "unconfined", "runtime/default"))
		},
	}
}

// TestGeneratedPodsThatBaselineRefusesAreRefused changes one to six things about the fixtures that are accepted.
func TestGeneratedPodsThatBaselineRefusesAreRefused(t *testing.T) {
	t.Parallel()
	p := newProfiles(t)
	fixtures := podFixtures(t)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(fixtures)), func(name string) bool { return !strings.Contains(name, "/pass/") })
	r := rand.New(rand.NewPCG(37, 2))
	const pods = 4000
	all := mutations()
	baseline, ours, both, missed := 0, 0, 0, 0
	for n := range pods {
		pod := manifest.Object{Tree: fixtures[names[r.IntN(len(names))]]}.Clone().Tree
		for range 1 + r.IntN(6) {
			all[r.IntN(len(all))](r, pod)
		}
		typed, ok := typedPod(t, pod)
		if !ok {
			t.Fatalf("pod %d is none: %v", n, pod)
		}
		why, found := p.refuses(api.LevelBaseline, typed.ObjectMeta, typed.Spec), ourRefusals(pod)
		if len(why) > 0 {
			baseline++
		}
		if len(found) > 0 {
			ours++
		}
		switch {
		case len(why) > 0 && len(found) > 0:
			both++
		case len(why) > 0:
			if missed++; missed <= 5 {
				text, _ := json.Marshal(pod)
				t.Errorf("pod %d: baseline refuses it for %v, and no rule does: %s", n, why, text)
			}
		}
	}
	if baseline < pods/3 || ours == pods {
		t.Errorf("of %d pods baseline refuses %d and these rules %d: the mutations are no test", pods, baseline, ours)
	}
	t.Logf("%d generated pods: baseline refuses %d, these rules %d, both %d, missed %d", pods, baseline, ours, both, missed)
}
