package portal_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
)

// readPlan is the ETag of the addon as it is now.
func (b *bench) readPlan() string {
	b.t.Helper()
	r := b.do(http.MethodGet, chartPath("example"), nil)
	tag := r.header.Get("ETag")
	if r.status != http.StatusOK || len(tag) < 20 || !strings.HasPrefix(tag, `"`) || !strings.HasSuffix(tag, `"`) {
		b.t.Fatalf("ETag %s of %s", tag, r)
	}
	return tag
}

func ifMatch(values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header["If-Match"] = values }
}

// otherPlan is the content of a tag that moved, planned at the same generation.
func otherPlan(a *v1alpha1.ZaentrumAddon) {
	planned(a)
	a.Status.Plan.Chart.Digest = digestB
}

func suspended(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart(), Suspend: true})
	b.operate("example", planned)
	return b
}

func TestTheETagIsOfThePlanAndNotOfProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart(), Suspend: true})
	seen := map[string]string{b.readPlan(): "nothing planned"}
	differs := func(what string) {
		t.Helper()
		tag := b.readPlan()
		if was, there := seen[tag]; there {
			t.Errorf("%s has the ETag of %s", what, was)
		}
		seen[tag] = what
	}
	b.operate("example", planned)
	differs("the plan")
	now := b.readPlan()
	b.operate("example", func(a *v1alpha1.ZaentrumAddon) {
		a.Status.Phase, a.Status.Message = v1alpha1.PhaseDegraded, "example 0/1"
		a.Status.Components = []v1alpha1.Component{{Name: "example", Kind: "Deployment", Desired: 1}}
		a.Status.LastAppliedChart = &v1alpha1.AppliedChart{Ref: exampleRef}
		a.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Waits", LastTransitionTime: metav1.Now()}}
	})
	if tag := b.readPlan(); tag != now {
		t.Errorf("progress changes the ETag from %s to %s", now, tag)
	}
	b.operate("example", otherPlan)
	differs("other content")
	b.operate("example", func(a *v1alpha1.ZaentrumAddon) {
		planned(a)
		a.Status.Plan.Changes.Images = []v1alpha1.ImageChange{{Kind: "Deployment", Name: "example", Container: "x", From: "a", To: "b"}}
	})
	differs("another image")
	a := b.addon("example")
	a.Spec.Chart.Version = "1.3.0"
	b.must(b.cluster.Update(t.Context(), a))
	differs("a spec that is not planned yet")
	b.operate("example", planned)
	differs("the same plan of another generation")
	b.must(b.cluster.Delete(t.Context(), a))
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart(), Suspend: true})
	b.operate("example", planned)
	differs("the same plan of another resource")
}

func TestInstallTakesThePlanThatWasReadAndNoOther(t *testing.T) {
	t.Parallel()
	const install = "/install"
	for name, header := range map[string]func(tag string) []string{
		"its ETag":            func(tag string) []string { return []string{tag} },
		"one of several":      func(tag string) []string { return []string{`"x" ,, W/"y"`, tag} },
		"any":                 func(string) []string { return []string{"*"} },
		"no condition at all": func(string) []string { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := suspended(t)
			r := b.do(http.MethodPost, chartPath("example")+install, nil, ifMatch(header(b.readPlan())...))
			if r.status != http.StatusAccepted || b.addon("example").Spec.Suspend {
				t.Errorf("answered %s", r)
			}
		})
	}
	for name, header := range map[string]func(tag string) string{
		"the ETag of another plan": func(string) string { return `"c29tZXRoaW5n"` },
		"its ETag, made weak":      func(tag string) string { return "W/" + tag },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := suspended(t)
			p := b.refused(http.MethodPost, chartPath("example")+install, nil, http.StatusConflict, "conflict", ifMatch(header(b.readPlan())))
			if !strings.Contains(p.Detail, "changed since it was read") || !strings.Contains(p.Hint, "read it again") {
				t.Errorf("%s (%s)", p.Detail, p.Hint)
			}
		})
	}
	for _, header := range []string{"", "x", `"open`, `"a" "b"`, `"a", *`, `w/"a"`, `"a b"`} {
		t.Run("malformed "+header, func(t *testing.T) {
			t.Parallel()
			b := suspended(t)
			b.refused(http.MethodPost, chartPath("example")+install, nil, http.StatusBadRequest, "malformed", ifMatch(header))
		})
	}
}

func TestAPlanMadeAnewAtTheSameGenerationIsNotInstalled(t *testing.T) {
	t.Parallel()
	b := suspended(t)
	tag := b.readPlan()
	b.operate("example", otherPlan)
	b.refused(http.MethodPost, chartPath("example")+"/install", nil, http.StatusConflict, "conflict", ifMatch(tag))
	var out apitype.WriteAnswer
	b.answer(http.MethodPost, chartPath("example")+"/install", nil, http.StatusAccepted, &out) // as the contract's curl does
}

func TestAPlanMadeAnewUnderTheInstallIsNotInstalled(t *testing.T) {
	t.Parallel()
	b := suspended(t)
	tag := b.readPlan()
	var raced atomic.Bool
	b.wire.intercept(func(r *http.Request) *http.Response {
		if isWrite(r) && r.Method == http.MethodPut && raced.CompareAndSwap(false, true) {
			b.operate("example", otherPlan)
		}
		return nil
	})
	b.problem(b.do(http.MethodPost, chartPath("example")+"/install", nil, ifMatch(tag)), http.StatusConflict, "conflict")
	if !raced.Load() || !b.addon("example").Spec.Suspend {
		t.Error("a plan nobody read is installed")
	}
}

func TestAnInstallMayNameTheGeneration(t *testing.T) {
	t.Parallel()
	b := suspended(t)
	install := chartPath("example") + "/install"
	for name, tc := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"another one":          {`{"generation":2}`, http.StatusConflict, "conflict"},
		"none that can be":     {`{"generation":0}`, http.StatusBadRequest, "invalid"},
		"of another type":      {`{"generation":"1"}`, http.StatusBadRequest, "malformed"},
		"a fraction":           {`{"generation":1.5}`, http.StatusBadRequest, "malformed"},
		"a misspelt field":     {`{"Generation":1}`, http.StatusBadRequest, "malformed"},
		"something else":       {`[1]`, http.StatusBadRequest, "malformed"},
		"no JSON but declared": {`generation=1`, http.StatusBadRequest, "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.t = t
			b.refused(http.MethodPost, install, tc.body, tc.status, tc.code)
		})
	}
	b.refused(http.MethodPost, install, `{"generation":1}`, http.StatusConflict, "conflict", ifMatch(`"c29tZXRoaW5n"`))
	b.refused(http.MethodPost, install, `{"generation":1}`, http.StatusUnsupportedMediaType, "not-json",
		func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
	r := b.do(http.MethodPost, install, `{"generation":1}`, ifMatch(b.readPlan()))
	if r.status != http.StatusAccepted || b.addon("example").Spec.Suspend {
		t.Errorf("got %s", r)
	}
	// The plan of the first generation is not that of the second.
	b.operate("example", planned)
	b.refused(http.MethodPost, install, `{"generation":1}`, http.StatusConflict, "conflict")
	if r := b.do(http.MethodPost, install, `{}`); r.status != http.StatusAccepted {
		t.Errorf("got %s", r)
	}
}
