package operator_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"zaentrum.io/zae/api/v1alpha1"
)

// hadALook waits until the values Secrets of an addon have been looked at, at the time that the clock shows: two Secrets
// that are long due were deleted one after the other, and one look is at all of them.
func (h *house) hadALook(addon string) {
	h.Helper()
	for i := range 2 {
		name := fmt.Sprintf("%s%s-witness-%d-%d", v1alpha1.ReservedPrefix, addon, h.clock.now().UnixNano(), i)
		h.must(h.Create(h.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: h.namespace, Name: name, Labels: map[string]string{v1alpha1.LabelAddon: addon},
			Annotations: map[string]string{v1alpha1.AnnotationUnreferencedSince: h.clock.now().Add(-2 * time.Hour).UTC().Format(time.RFC3339)},
		}}))
		h.eventually(func() string {
			if h.exists(&corev1.Secret{}, name) {
				return "no look at the values Secrets of " + addon
			}
			return ""
		})
	}
}

// hadALookAt waits until an addon was reconciled: a hand's edit of what it wrote is gone.
func (h *house) hadALookAt(name string) {
	h.Helper()
	edit := &corev1.ConfigMap{}
	h.must(h.Get(h.Context(), h.key(name), edit))
	edit.Labels[v1alpha1.LabelPartOf] = "edited"
	h.must(h.Update(h.Context(), edit))
	h.eventually(func() string {
		now := &corev1.ConfigMap{}
		h.must(h.Get(h.Context(), h.key(name), now))
		if now.Labels[v1alpha1.LabelPartOf] == "edited" {
			return name + " was not reconciled"
		}
		return ""
	})
}

// later has the clock show a later time, and a look taken then.
func (h *house) later(d time.Duration, addons ...string) {
	h.Helper()
	h.clock.step(d)
	for _, addon := range addons {
		h.hadALook(addon)
	}
}

func (h *house) secretNow(name string) *corev1.Secret {
	h.Helper()
	s := &corev1.Secret{}
	h.must(h.Get(h.Context(), h.key(name), s))
	return s
}

func (h *house) wantSecret(there bool, name, when string) {
	h.Helper()
	if h.exists(&corev1.Secret{}, name) != there {
		h.Errorf("%s: Secret %s is there: %t", when, name, !there)
	}
}

// pointAt has the example addon read its secret input from this Secret.
func (h *house) pointAt(secret string) {
	h.Helper()
	h.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.ValuesFrom = []v1alpha1.ValuesSource{h.from(secret)} })
}

// adopted waits until the addon is an owner of these Secrets.
func (h *house) adopted(a *v1alpha1.ZaentrumAddon, secrets ...string) {
	h.Helper()
	h.eventually(func() string {
		for _, name := range secrets {
			s := h.secretNow(name)
			if len(s.OwnerReferences) != 1 || s.OwnerReferences[0].UID != a.UID {
				return fmt.Sprintf("%s: owners %v", name, s.OwnerReferences)
			}
			if c := s.OwnerReferences[0].Controller; c != nil && *c {
				return name + " is controlled: it would be pruned"
			}
		}
		return ""
	})
}

// Ten minutes count from when nothing referenced the Secret any more, not from when it was created, and from the last time
// when that happened more than once.
func TestASecretIsDeletedTenMinutesAfterItWasLastReferenced(t *testing.T) {
	h := newHouse(t)
	a := h.create(h.example(), v1alpha1.PhaseInstalling)
	const first, second = "zaentrum-addon-example-values-a", "zaentrum-addon-example-values-b"
	h.secret(second, "example", map[string]string{"database.url": canary})
	h.adopted(a, first)
	h.later(time.Minute, "example")

	// The race of a client: the Secret is there for long before the addon is pointed at it.
	h.later(8*time.Minute+30*time.Second, "example")
	h.wantSecret(true, second, "nine and a half minutes without a reference")
	h.pointAt(second)
	h.adopted(a, second)
	h.eventually(func() string {
		if since := h.secretNow(second).Annotations[v1alpha1.AnnotationUnreferencedSince]; since != "" {
			return "it is referenced, and noted as unreferenced since " + since
		}
		return ""
	})
	h.later(time.Minute, "example")
	h.wantSecret(true, second, "referenced after nine and a half minutes")
	h.wantSecret(true, first, "two minutes after nothing references it, hours after it was created")

	// Used again for a moment: it counts anew.
	h.later(8*time.Minute, "example")
	h.wantSecret(true, first, "nine minutes")
	h.pointAt(first)
	h.later(0, "example")
	h.pointAt(second)
	h.later(0, "example")
	h.later(9*time.Minute, "example")
	h.wantSecret(true, first, "nine minutes after it was used again")
	h.later(2*time.Minute, "example")
	h.wantSecret(false, first, "eleven minutes after it was used again")
	h.wantSecret(true, second, "used")
}

// A clock that was wrong, either way, deletes nothing early, and keeps nothing for years.
func TestClockStepsLoseNoSecretAndKeepNone(t *testing.T) {
	h := newHouse(t)
	h.create(h.example(), v1alpha1.PhaseInstalling)
	const other = "zaentrum-addon-example-values-b"
	h.clock.step(24 * 365 * time.Hour)
	h.secret(other, "example", map[string]string{"database.url": canary})
	h.hadALook("example")
	h.later(time.Minute, "example") // the moment is noted, a year ahead
	h.later(-24*365*time.Hour, "example")
	h.wantSecret(true, other, "the clock went back a year")
	h.later(9*time.Minute, "example")
	h.wantSecret(true, other, "nine minutes after the clock went back")
	h.later(2*time.Minute, "example")
	h.wantSecret(false, other, "eleven minutes after the clock went back")

	// The addon itself goes on meanwhile.
	for i, d := range []time.Duration{-time.Hour, 2 * time.Hour, -24 * time.Hour} {
		h.clock.step(d)
		h.change("example", func(a *v1alpha1.ZaentrumAddon) {
			a.Spec.Values = rawValues(fmt.Sprintf(`{"worker":{"replicas":%d}}`, i))
		})
		h.phase("example", v1alpha1.PhaseInstalling)
	}
}

// The prefix and the label decide, nothing else.
func TestWhichSecretsAreAnAddons(t *testing.T) {
	h := newHouse(t)
	const db, spare = "zaentrum-addon-example-db", "zaentrum-addon-example-x"
	h.secret(db, "example", map[string]string{"database.url": canary})
	h.secret(spare, "example", nil)
	strangers := map[string]*corev1.Secret{}
	for name, label := range map[string]string{
		"example-by-hand":                  "example",          // labelled, and of another name
		"zaentrum-addon-example-bare":      "",                 // named, and not labelled
		"zaentrum-addon-example-two-db":    "example-two",      // of an addon with a longer name
		"zaentrum-addon-examples-values-a": "example",          // of a name that only starts alike
		"zaentrum-addon-example-theirs":    "somebody",         // labelled as somebody's
		"by-hand":                          "zaentrum-addon-x", // neither
	} {
		strangers[name] = h.secret(name, label, map[string]string{"database.url": canary})
	}
	a := h.addon("example", "example", "1.2.0")
	a.Spec.ValuesFrom = []v1alpha1.ValuesSource{h.from(db)}
	a = h.create(a, v1alpha1.PhaseInstalling)
	h.adopted(a, db)

	h.later(time.Minute, "example")
	h.later(11*time.Minute, "example")
	h.wantSecret(false, spare, "eleven minutes without a reference")
	h.wantSecret(true, db, "referenced")

	h.change("example", func(a *v1alpha1.ZaentrumAddon) {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationKeepValues, "true")
	})
	h.finalizer("example", true)
	h.must(h.Delete(t.Context(), a))
	h.gone("example")
	if s := h.secretNow(db); s.Labels[v1alpha1.LabelKeep] != "true" || len(s.OwnerReferences) > 0 {
		t.Errorf("not kept: labels %v, owners %v", s.Labels, s.OwnerReferences)
	}
	h.later(2*time.Hour, "example")
	for name, before := range strangers {
		if name == "zaentrum-addon-example-two-db" {
			continue // that addon does not exist: its Secret is looked after as its own
		}
		if now := h.secretNow(name); now.ResourceVersion != before.ResourceVersion {
			t.Errorf("%s was written to: labels %v, annotations %v, owners %v", name, now.Labels, now.Annotations, now.OwnerReferences)
		}
	}
}

// A Secret that is kept is never touched, whatever happens.
func TestAKeptSecretIsNeverTouched(t *testing.T) {
	h := newHouse(t)
	const kept = "zaentrum-addon-example-values-kept"
	h.must(h.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.namespace, Name: kept, Labels: map[string]string{v1alpha1.LabelAddon: "example", v1alpha1.LabelKeep: "true"},
			Annotations: map[string]string{v1alpha1.AnnotationUnreferencedSince: "2001-01-01T00:00:00Z"},
		},
		StringData: map[string]string{"database.url": canary},
	}))
	before := h.secretNow(kept)
	same := func(when string) {
		t.Helper()
		if now := h.secretNow(kept); now.ResourceVersion != before.ResourceVersion {
			t.Errorf("%s: labels %v, annotations %v, owners %v", when, now.Labels, now.Annotations, now.OwnerReferences)
		}
	}
	h.later(2*time.Hour, "example")
	same("without an addon")

	a := h.addon("example", "example", "1.2.0")
	a.Spec.ValuesFrom = []v1alpha1.ValuesSource{h.from(kept)}
	a = h.create(a, v1alpha1.PhaseInstalling)
	h.hadALook("example")
	same("referenced")

	h.secret("zaentrum-addon-example-values-b", "example", map[string]string{"database.url": canary})
	h.pointAt("zaentrum-addon-example-values-b")
	h.adopted(a, "zaentrum-addon-example-values-b")
	h.later(2*time.Hour, "example")
	same("no longer referenced")

	for _, keep := range []string{"true", "false", "true"} {
		h.change("example", func(a *v1alpha1.ZaentrumAddon) {
			metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationKeepValues, keep)
		})
		h.finalizer("example", keep == "true")
		same("keep-values=" + keep)
	}
	h.must(h.Delete(t.Context(), a))
	h.gone("example")
	h.later(2*time.Hour, "example")
	same("the addon was removed with its values kept")
}

// Of a Secret that is not the addon's nothing is asked but, for its label, the metadata, and that only when the name fits.
func TestForeignSecretsAreNeverRead(t *testing.T) {
	h := newHouse(t)
	h.secret("platform-admin", "example", map[string]string{"database.url": canary}) // not even when it is labelled
	h.secret("zaentrum-addon-example-bare", "", map[string]string{"database.url": canary})
	h.secret("zaentrum-addon-example-theirs", "somebody", map[string]string{"database.url": canary})
	a := h.addon("example", "example", "1.2.0")
	for _, name := range []string{"platform-admin", "zaentrum-addon-example-bare", "zaentrum-addon-example-theirs"} {
		for _, optional := range []bool{false, true} {
			from := h.from(name)
			from.Optional = optional
			a.Spec.ValuesFrom = append(a.Spec.ValuesFrom, from)
		}
	}
	a = h.create(a, v1alpha1.PhaseFailed)
	if all := strings.Join(a.Status.Plan.ValuesErrors, "\n"); strings.Count(all, "refused: ") != 6 {
		t.Errorf("values errors: %s", all)
	}
	if asked := h.wire.of("secrets/platform-admin"); len(asked) > 0 {
		t.Errorf("asked about a Secret of the platform: %v", asked)
	}
	for _, name := range []string{"zaentrum-addon-example-bare", "zaentrum-addon-example-theirs"} {
		for _, r := range h.wire.of("secrets/" + name) {
			if r.verb != http.MethodGet || !strings.Contains(r.accept, "PartialObjectMetadata") {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
	if asked := h.wire.of("secrets/zaentrum-addon-example-bare"); len(asked) == 0 {
		t.Error("this test sees no requests")
	}
}

// What is on the Secrets and on the resource before keep-values is set is there when it was removed again.
func TestKeepValuesSetAndRemovedLeavesNoTrace(t *testing.T) {
	h := newHouse(t)
	a := h.example()
	a.Labels, a.Annotations = map[string]string{"mine": "yes"}, map[string]string{"mine": "yes"}
	a.Finalizers = []string{"example.org/mine"}
	a = h.create(a, v1alpha1.PhaseInstalling)
	defer func() {
		h.must(h.Patch(t.Context(), h.addonNow("example"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	}()
	secrets := []string{"zaentrum-addon-example-values-a", "zaentrum-addon-example-generated"}
	h.adopted(a, secrets...)
	type shape struct {
		Labels, Annotations map[string]string
		Owners              []metav1.OwnerReference
		Finalizers          []string
	}
	look := func() map[string]shape {
		out := map[string]shape{}
		a := h.addonNow("example")
		out["example"] = shape{a.Labels, a.Annotations, a.OwnerReferences, a.Finalizers}
		for _, name := range secrets {
			s := h.secretNow(name)
			out[name] = shape{s.Labels, s.Annotations, s.OwnerReferences, s.Finalizers}
		}
		return out
	}
	before := look()
	h.change("example", func(a *v1alpha1.ZaentrumAddon) {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationKeepValues, "true")
	})
	h.finalizer("example", true)
	h.change("example", func(a *v1alpha1.ZaentrumAddon) { delete(a.Annotations, v1alpha1.AnnotationKeepValues) })
	h.finalizer("example", false)
	h.adopted(a, secrets...)
	if after := look(); !equality.Semantic.DeepEqual(before, after) {
		t.Errorf("before %+v\nafter  %+v", before, after)
	}
}

// As soon as the finalizer is seen, no deletion takes the values along, not even one in the foreground: what the addon
// owns goes at once then.
func TestTheFinalizerComesAfterTheOwnersAreOff(t *testing.T) {
	h := newHouse(t)
	a := h.create(h.example(), v1alpha1.PhaseInstalling)
	secrets := []string{"zaentrum-addon-example-values-a", "zaentrum-addon-example-generated"}
	h.adopted(a, secrets...)
	var early []string
	h.wire.hook(func(r *http.Request) *http.Response {
		if writes(r) && below(r) == "zaentrumaddons/example" {
			for _, name := range secrets {
				s := &corev1.Secret{}
				if err := h.Get(r.Context(), h.key(name), s); err != nil || len(s.OwnerReferences) > 0 {
					early = append(early, fmt.Sprintf("%s: %v %v", name, err, s.OwnerReferences))
				}
			}
		}
		return nil
	})
	h.change("example", func(a *v1alpha1.ZaentrumAddon) {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationKeepValues, "true")
	})
	h.finalizer("example", true)
	h.stop()
	if len(early) > 0 {
		t.Errorf("the finalizer was set while the addon owned its values: %q", early)
	}
}

// Nothing is kept, and nothing held up, when the namespace goes.
func TestKeepValuesLetsGoInATerminatingNamespace(t *testing.T) {
	h := newHouse(t)
	a := h.create(h.example(), v1alpha1.PhaseInstalling)
	h.change("example", func(a *v1alpha1.ZaentrumAddon) {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationKeepValues, "true")
	})
	h.finalizer("example", true)
	// No namespace controller runs here: its contents stay until the test deletes them.
	h.must(h.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))
	h.must(h.Delete(t.Context(), a))
	h.gone("example")
	for _, name := range []string{"zaentrum-addon-example-values-a", "zaentrum-addon-example-generated"} {
		if h.secretNow(name).Labels[v1alpha1.LabelKeep] == "true" {
			t.Errorf("%s is kept for nobody", name)
		}
	}
}

// When the namespace is deleted, no addon waits for its own deletion: by then the operator may have no rights any more.
func TestTheFinalizerGoesAsSoonAsTheNamespaceIsDeleted(t *testing.T) {
	h := newHouse(t)
	h.create(h.example(), v1alpha1.PhaseInstalling)
	h.chart("other", "1.0.0", configMap("other"))
	h.create(h.addon("other", "other", "1.0.0"), v1alpha1.PhaseReady)
	for _, name := range []string{"example", "other"} {
		h.change(name, func(a *v1alpha1.ZaentrumAddon) {
			metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationKeepValues, "true")
		})
		h.finalizer(name, true)
	}
	// No namespace controller runs here: nothing is deleted but what the test deletes.
	h.must(h.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))
	for _, name := range []string{"example", "other"} {
		h.finalizer(name, false)
		if a := h.addonNow(name); a.DeletionTimestamp != nil || a.Annotations[v1alpha1.AnnotationKeepValues] != "true" {
			t.Errorf("%s: %v", name, a.ObjectMeta)
		}
	}
	// Nor is it set again, by this operator or one that starts now.
	h.stop()
	h.start()
	h.hadALookAt("other")
	h.finalizer("other", false)
}

// Every values Secret that is read is kept, of any name, also those that came with the last change; and those of what
// runs, while a change waits to be installed.
func TestKeepValuesCoversAllSecretsThatAreRead(t *testing.T) {
	for name, suspended := range map[string]bool{"as it runs": false, "while a change waits": true} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			a := h.create(h.example(), v1alpha1.PhaseInstalling)
			h.adopted(a, "zaentrum-addon-example-values-a", "zaentrum-addon-example-generated")
			h.secret("zaentrum-addon-example-db", "example", map[string]string{"database.url": canary})
			h.secret("zaentrum-addon-example-spare", "example", nil)
			h.pointAt("zaentrum-addon-example-db")
			h.adopted(a, "zaentrum-addon-example-db")
			h.phase("example", v1alpha1.PhaseInstalling)
			h.stop()
			// As the API does it, and all of it before the operator sees any.
			h.secret("zaentrum-addon-example-values-last", "example", map[string]string{"database.url": canary})
			h.change("example", func(a *v1alpha1.ZaentrumAddon) {
				a.Spec.ValuesFrom = append(a.Spec.ValuesFrom, h.from("zaentrum-addon-example-values-last"))
				a.Spec.Suspend = suspended
				metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationKeepValues, "true")
				a.Finalizers = append(a.Finalizers, v1alpha1.FinalizerValues)
			})
			h.must(h.Delete(t.Context(), a))
			h.start()
			h.gone("example")
			for name, want := range map[string]bool{"generated": true, "db": true, "values-last": true, "values-a": suspended, "spare": suspended} {
				s := h.secretNow("zaentrum-addon-example-" + name)
				kept := s.Labels[v1alpha1.LabelKeep] == "true"
				if kept != want || kept && (len(s.OwnerReferences) > 0 || s.Annotations[v1alpha1.AnnotationUnreferencedSince] != "") {
					t.Errorf("%s: labels %v, annotations %v, owners %v", name, s.Labels, s.Annotations, s.OwnerReferences)
				}
			}
			h.later(2*time.Hour, "example")
			h.wantSecret(true, "zaentrum-addon-example-db", "kept for two hours")
		})
	}
}

// TestAStatusTellsOfValuesSecrets follows an addon's values Secrets through its life, its removal, and an addon of the same
// name after it, which finds what was kept.
func TestAStatusTellsOfValuesSecrets(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	type told struct {
		keys            string
		kept, generated bool
	}
	tells := func(want map[string]told) {
		t.Helper()
		h.eventually(func() string {
			a := &v1alpha1.ZaentrumAddon{}
			h.must(h.Get(t.Context(), h.key("example"), a))
			got := map[string]told{}
			for _, s := range a.Status.ValuesSecrets {
				if s.CreatedAt.IsZero() {
					return s.Name + " has no time"
				}
				got[s.Name] = told{strings.Join(s.Keys, " "), s.Kept, s.Generated}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(told{})); diff != "" {
				return diff
			}
			return ""
		})
	}
	const read, declined, generated = "zaentrum-addon-example-values-a", "zaentrum-addon-example-values-b", "zaentrum-addon-example-generated"
	h.secret("example-env-of-somebody", "example", map[string]string{"no": canary}) // not a values Secret
	h.create(h.example(), v1alpha1.PhaseInstalling)
	tells(map[string]told{read: {"database.url", false, false}, generated: {"config.key", false, true}})
	h.secret(declined, "example", map[string]string{"z": canary, "a": canary})
	tells(map[string]told{
		read: {"database.url", false, false}, declined: {"a z", false, false}, generated: {"config.key", false, true},
	})
	h.change("example", func(a *v1alpha1.ZaentrumAddon) {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationKeepValues, "true")
		controllerutil.AddFinalizer(a, v1alpha1.FinalizerValues) // in one write, as the API does
	})
	h.must(h.Delete(t.Context(), h.phase("example", v1alpha1.PhaseInstalling)))
	h.eventually(func() string {
		if err := h.Get(t.Context(), h.key("example"), &v1alpha1.ZaentrumAddon{}); err == nil {
			return "the addon is still there"
		}
		return ""
	})
	again := h.addon("example", "example", "1.2.0")
	again.Spec.Suspend = true
	h.must(h.Create(t.Context(), again))
	h.eventually(func() string {
		a := &v1alpha1.ZaentrumAddon{}
		h.must(h.Get(t.Context(), h.key("example"), a))
		for _, s := range a.Status.ValuesSecrets {
			if s.Name == read && s.Kept && strings.Join(s.Keys, " ") == "database.url" {
				return ""
			}
		}
		return fmt.Sprintf("what was kept is not told: %v", a.Status.ValuesSecrets)
	})
}
