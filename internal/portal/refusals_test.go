package portal_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
)

// manyInputs are n secret inputs as the body's field.
func manyInputs(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`"input.i%d":%q`, i, canary))
	}
	return `"secretValues":{` + strings.Join(out, ",") + `}`
}

func TestPostRefusesWhatIsWrongAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	body := func(rest string) string { return `{"chart":"` + exampleRef + `:1.2.0",` + rest + `}` }
	secret := func(path string) string { return body(`"secretValues":{"` + path + `":"` + canary + `"}`) }
	for name, tc := range map[string]struct {
		body, code, want string
	}{
		"no chart":                    {`{"version":"1.2.0"}`, "invalid", "chart is missing"},
		"no version":                  {`{"chart":"` + exampleRef + `"}`, "invalid", "needs a version"},
		"a tag and another version":   {body(`"version":"1.3.0"`), "invalid", "1.3.0"},
		"a digest in the reference":   {`{"chart":"` + exampleRef + `@` + digestA + `"}`, "invalid", ""},
		"a digest that is none":       {body(`"digest":"sha256:abc"`), "invalid", "digest"},
		"another scheme":              {`{"chart":"http://example.org/example.tgz"}`, "invalid", ""},
		"credentials":                 {`{"chart":"oci://u:` + canary + `@example.org/example:1.0.0"}`, "invalid", ""},
		"a name that is none":         {body(`"name":"Example"`), "invalid", "name"},
		"a name too long":             {body(`"name":"` + strings.Repeat("a", 41) + `"`), "invalid", "40"},
		"no usable default name":      {`{"chart":"oci://example.org/a_b:1.0.0"}`, "invalid", "name"},
		"the platform's values":       {body(`"values":{"zaentrum":{"hostname":"x"}}`), "invalid", "zaentrum"},
		"the platform's path":         {secret("zaentrum.hostname"), "invalid", "zaentrum.hostname"},
		"an empty secret value":       {body(`"secretValues":{"a.b":""}`), "invalid", "a.b is empty"},
		"half a surrogate pair":       {body(`"secretValues":{"a":"` + canary + `\ud800"}`), "invalid", "no character"},
		"an empty segment":            {secret("a..b"), "invalid", "empty segment"},
		"a path that starts with dot": {secret(".a"), "invalid", "empty segment"},
		"an empty path":               {secret(""), "invalid", "letters"},
		"a path with a slash":         {secret("a/" + canary), "invalid", "letters"},
		"a path too long":             {secret(strings.Repeat("a", 251)), "invalid", "250"},
		"a path in two places": {body(`"secretValues":{"a":"` + canary + `"},"secretRefs":{"a":{"name":"zaentrum-addon-example-x"}}`),
			"invalid", "a is in both secretValues and secretRefs"},
		"another addon's Secret": {body(`"secretRefs":{"a":{"name":"zaentrum-addon-other-values"}}`), "invalid", "not one of the addon"},
		"a platform Secret":      {body(`"secretRefs":{"a":{"name":"platform-credentials"}}`), "invalid", "not one of the addon"},
		"the bare prefix":        {body(`"secretRefs":{"a":{"name":"zaentrum-addon-example-"}}`), "invalid", "not one of the addon"},
		"a key that is none":     {body(`"secretRefs":{"a":{"name":"zaentrum-addon-example-x","key":"a/b"}}`), "invalid", "key of a"},
		"65 secret inputs":       {body(manyInputs(65)), "invalid", "64"},
		"values nested too deep": {body(`"values":{"a":` + strings.Repeat(`[`, 101) + strings.Repeat(`]`, 101) + `}`), "invalid", "deeper"},
		"an unknown field":       {body(`"secretValue":{"a":"` + canary + `"}`), "malformed", `unknown field "secretValue"`},
		"a field in capitals":    {body(`"SecretValues":{"a":"` + canary + `"}`), "malformed", `unknown field "SecretValues"`},
		"an unknown field below": {body(`"secretRefs":{"a":{"name":"x","keys":"` + canary + `"}}`), "malformed", "keys"},
		"a field of PATCH":       {body(`"suspend":false`), "malformed", `unknown field "suspend"`},
		"a field twice":          {body(`"version":"1.2.0","version":"1.2.0"`), "malformed", `duplicate field "version"`},
		"an input twice":         {body(`"secretValues":{"a":"` + canary + `","a":"` + canary + `"}`), "malformed", "duplicate field"},
		"a value twice":          {body(`"values":{"a":{"b":1,"b":2}}`), "malformed", "duplicate field"},
		"a secret as a number":   {body(`"secretValues":{"a":12345678}`), "malformed", ""},
		"values as a list":       {body(`"values":[1]`), "malformed", "values"},
		"two documents":          {`{"chart":"` + exampleRef + `:1.2.0"} {"x":"` + canary + `"}`, "malformed", "not JSON"},
		"half a document":        {`{"secretValues":{"a":"` + canary, "malformed", "not JSON"},
		"a list":                 {`["` + canary + `"]`, "malformed", "not a JSON object"},
		"null":                   {`null`, "malformed", "not a JSON object"},
		"nothing":                {``, "malformed", "empty"},
		"not UTF-8":              {body(`"secretValues":{"a":"` + "\xff" + `"}`), "malformed", "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.t = t
			p := b.refused(http.MethodPost, apitype.PathAddonCharts, tc.body, http.StatusBadRequest, tc.code)
			if !strings.Contains(p.Detail, tc.want) || strings.Contains(p.Detail, "12345678") {
				t.Errorf("detail %q", p.Detail)
			}
		})
	}
}

func TestPatchRefusesWhatIsWrongAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart(), ValuesFrom: []v1alpha1.ValuesSource{
		secretEntry("zaentrum-addon-example-a", "", "set"),
		{Kind: v1alpha1.ValuesFromConfigMap, Name: "zaentrum-addon-example-b", TargetPath: "plain"},
	}})
	for name, tc := range map[string]struct{ body, code, want string }{
		"nothing":                   {`{}`, "invalid", "changes nothing"},
		"no body":                   {``, "malformed", "empty"},
		"nulls":                     {`{"version":null,"values":null}`, "invalid", "changes nothing"},
		"empty lists":               {`{"secretValues":{},"clearSecrets":[]}`, "invalid", "changes nothing"},
		"clearing what is not set":  {`{"clearSecrets":["sett"]}`, "invalid", "sett is not set"},
		"clearing a plain value":    {`{"clearSecrets":["plain"]}`, "invalid", "plain is not set"},
		"clearing twice":            {`{"clearSecrets":["set","set"]}`, "invalid", "twice"},
		"clearing and setting":      {`{"clearSecrets":["set"],"secretValues":{"set":"` + canary + `"}}`, "invalid", "both secretValues and clearSecrets"},
		"clearing the platform's":   {`{"clearSecrets":["zaentrum.x"]}`, "invalid", "zaentrum"},
		"the platform's values":     {`{"values":{"zaentrum":null}}`, "invalid", "zaentrum"},
		"a version that is none":    {`{"version":"a b"}`, "invalid", "version"},
		"an oci chart without one":  {`{"version":""}`, "invalid", "version"},
		"a digest that is none":     {`{"digest":"md5:0"}`, "invalid", "digest"},
		"too many inputs in all":    {`{` + manyInputs(64) + `}`, "invalid", "64"},
		"a name":                    {`{"name":"other"}`, "malformed", `unknown field "name"`},
		"suspend as a string":       {`{"suspend":"true"}`, "malformed", "suspend"},
		"a secret reference abroad": {`{"secretRefs":{"a":{"name":"zaentrum-addon-exampletwo-x"}}}`, "invalid", "not one of the addon"},
	} {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.t = t
			p := b.refused(http.MethodPatch, chartPath("example"), tc.body, http.StatusBadRequest, tc.code)
			if !strings.Contains(p.Detail, tc.want) {
				t.Errorf("detail %q", p.Detail)
			}
		})
	}
	for _, name := range []string{"missing", "Bad_Name", "a%2fb", "..%2f..%2fsecrets"} {
		b.refused(http.MethodPatch, chartPath(name), `{"suspend":true}`, http.StatusNotFound, "not-found")
		b.refused(http.MethodGet, chartPath(name), nil, http.StatusNotFound, "not-found")
		b.refused(http.MethodPost, chartPath(name)+"/install", nil, http.StatusNotFound, "not-found")
		b.refused(http.MethodDelete, chartPath(name), nil, http.StatusNotFound, "not-found")
	}
	for _, query := range []string{"?keepvalues=true", "?keepValues=yes", "?keepValues=", "?keepValues", "?keepValues=true&keepValues=false", "?keepValues=true&x=1"} {
		b.refused(http.MethodDelete, chartPath("example")+query, nil, http.StatusBadRequest, "malformed")
	}
}

func TestANameOfAnotherKindOfAppIsTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(b.registry.Register(t.Context(), registry.Registration{
		Source: registry.SourceAddress, Manifest: &capability.Manifest{Service: "byaddress", ProxyKey: "byproxy"}, Place: capability.Place{ProxyURL: "http://byaddress", Workload: "byaddress"},
	}))
	b.must(b.registry.PutApp(t.Context(), capability.App{Key: "byhand", ProxyURL: "http://somewhere"}))
	for _, name := range []string{"byaddress", "byhand", "byproxy"} {
		p := b.refused(http.MethodPost, apitype.PathAddonCharts, `{"name":"`+name+`","chart":"`+exampleRef+`:1.2.0","secretValues":{"a":"`+canary+`"}}`, http.StatusConflict, "name-taken")
		if !strings.Contains(p.Detail, name) {
			t.Errorf("detail %q", p.Detail)
		}
		// Its rows are not a chart addon's, so there is nothing to delete.
		b.refused(http.MethodDelete, chartPath(name), nil, http.StatusNotFound, "not-found")
	}
	if owner, err := b.registry.Owner(t.Context(), "byaddress"); err != nil || owner != registry.OwnedByAddress {
		t.Errorf("owner %s, %v", owner, err)
	}
}

func TestWhatTheClusterRefusesMakesNoSecret(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var documents []v1alpha1.ValuesSource
	for i := range 256 { // as many as a resource may have
		documents = append(documents, v1alpha1.ValuesSource{Kind: v1alpha1.ValuesFromConfigMap, Name: fmt.Sprintf("zaentrum-addon-example-%d", i)})
	}
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart(), ValuesFrom: documents})
	p := b.refused(http.MethodPatch, chartPath("example"), `{"secretValues":{"a":"`+canary+`"}}`, http.StatusUnprocessableEntity, "refused-by-cluster")
	if !strings.Contains(p.Detail, "spec.valuesFrom") || !strings.Contains(p.Detail, "Invalid") {
		t.Errorf("detail %q", p.Detail)
	}
}

func TestARefusalNamesFieldsAndDoesNotRepeatWhatTheClusterSays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.wire.intercept(func(r *http.Request) *http.Response {
		if r.Method != http.MethodPut {
			return nil
		}
		return answerStatus(metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{
			Name: "example", Causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.values", Message: "Invalid value: " + canary},
				{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.chart.ref", Message: canary},
				{Type: metav1.CauseTypeFieldValueInvalid, Field: "<nil>", Message: canary},
			},
		}})
	})
	p := b.refused(http.MethodPatch, chartPath("example"), `{"values":{"a":1}}`, http.StatusUnprocessableEntity, "refused-by-cluster")
	if !strings.HasSuffix(p.Detail, "(Invalid: spec.chart.ref, spec.values)") {
		t.Errorf("detail %q", p.Detail)
	}
}

func TestAFailureAfterTheSecretLosesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var out apitype.WriteAnswer
	b.answer(http.MethodPost, apitype.PathAddonCharts, `{"chart":"`+exampleRef+`:1.2.0","secretValues":{"a":"`+canary+`"}}`, http.StatusAccepted, &out)
	before := b.addon("example")
	b.wire.intercept(func(r *http.Request) *http.Response {
		if isWrite(r) && r.Method == http.MethodPut {
			return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError)
		}
		return nil
	})
	b.problem(b.do(http.MethodPatch, chartPath("example"), `{"secretValues":{"a":"`+canary+`"}}`), http.StatusBadGateway, "cluster-failed")
	after := b.addon("example")
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" || before.ResourceVersion != after.ResourceVersion {
		t.Errorf("changed:\n%s", diff)
	}
	if n := len(b.secrets()); n != 2 {
		t.Errorf("%d Secrets: the first one, and one for the operator to collect, are wanted", n)
	}
}

func TestAWriteIsDoneOverWhenTheResourceChangedUnderIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	var raced atomic.Bool
	b.wire.intercept(func(r *http.Request) *http.Response {
		if isWrite(r) && r.Method == http.MethodPut && raced.CompareAndSwap(false, true) {
			a := b.addon("example")
			a.Spec.ValuesFrom = []v1alpha1.ValuesSource{secretEntry("zaentrum-addon-example-git", "k", "raced")}
			b.must(b.cluster.Update(b.t.Context(), a))
		}
		return nil
	})
	var out apitype.WriteAnswer
	b.answer(http.MethodPatch, chartPath("example"), `{"secretValues":{"a":"`+canary+`"}}`, http.StatusAccepted, &out)
	from := b.addon("example").Spec.ValuesFrom
	if len(from) != 2 || from[0].TargetPath != "raced" || from[1].TargetPath != "a" {
		t.Errorf("values from %+v", from)
	}
	if secrets := b.secrets(); len(secrets) != 1 || secrets[0].Name != from[1].Name {
		t.Errorf("%d Secrets", len(secrets))
	}
	if !raced.Load() {
		t.Error("there was no race")
	}
}

func TestAResourceDeletedUnderAWriteIsAConflictAndNotMadeAnew(t *testing.T) {
	t.Parallel()
	for name, anew := range map[string]bool{"deleted": false, "deleted and made anew": true} {
		for method, path := range map[string]string{http.MethodPost: apitype.PathAddonCharts, http.MethodPatch: chartPath("example")} {
			t.Run(method+" "+name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				first := b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
				var raced atomic.Bool
				b.wire.intercept(func(r *http.Request) *http.Response {
					if isWrite(r) && r.Method == http.MethodPut && raced.CompareAndSwap(false, true) {
						b.must(b.cluster.Delete(b.t.Context(), first))
						if anew {
							b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
						}
					}
					return nil
				})
				body := `{"chart":"` + exampleRef + `:1.3.0","secretValues":{"a":"` + canary + `"}}`
				b.problem(b.do(method, path, body), http.StatusConflict, "conflict")
				var list v1alpha1.ZaentrumAddonList
				b.must(b.cluster.List(t.Context(), &list, client.InNamespace(b.namespace)))
				for _, a := range list.Items {
					if a.Spec.Chart.Version != "1.2.0" {
						t.Errorf("the new resource was changed: %+v", a.Spec)
					}
				}
				if (len(list.Items) == 1) != anew {
					t.Errorf("%d resources", len(list.Items))
				}
			})
		}
	}
}

func TestInstallRefusesAPlanThatWasNotLookedAt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart(), Suspend: true})
	b.operate("example", planned)
	var raced atomic.Bool
	b.wire.intercept(func(r *http.Request) *http.Response {
		if isWrite(r) && r.Method == http.MethodPut && raced.CompareAndSwap(false, true) {
			a := b.addon("example")
			a.Spec.Chart.Version = "6.6.6"
			b.must(b.cluster.Update(b.t.Context(), a))
			b.operate("example", planned)
		}
		return nil
	})
	b.problem(b.do(http.MethodPost, chartPath("example")+"/install", nil), http.StatusConflict, "conflict")
	if !b.addon("example").Spec.Suspend {
		t.Error("a plan nobody saw is installed")
	}
}

func TestAStatusThatMovesDoesNotStopAnInstall(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart(), Suspend: true})
	b.operate("example", planned)
	var raced atomic.Bool
	b.wire.intercept(func(r *http.Request) *http.Response {
		if isWrite(r) && r.Method == http.MethodPut && raced.CompareAndSwap(false, true) {
			b.operate("example", func(a *v1alpha1.ZaentrumAddon) { a.Status.Message = "planned again" })
		}
		return nil
	})
	var out apitype.WriteAnswer
	b.answer(http.MethodPost, chartPath("example")+"/install", nil, http.StatusAccepted, &out)
	if b.addon("example").Spec.Suspend {
		t.Error("still suspended")
	}
}

func TestDeleteDoesNotLoseKeepValuesToARace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	a.Finalizers = []string{"example.org/hold"}
	b.must(b.cluster.Update(t.Context(), a))
	var raced atomic.Bool
	b.wire.intercept(func(r *http.Request) *http.Response {
		if isWrite(r) && r.Method == http.MethodDelete && raced.CompareAndSwap(false, true) {
			a := b.addon("example")
			a.Annotations, a.Finalizers = nil, []string{"example.org/hold"} // a pipeline takes both away between the two steps
			b.must(b.cluster.Update(b.t.Context(), a))
		}
		return nil
	})
	var out apitype.DeleteAnswer
	b.answer(http.MethodDelete, chartPath("example")+"?keepValues=true", nil, http.StatusOK, &out)
	a = b.addon("example")
	if a.Annotations[v1alpha1.AnnotationKeepValues] != "true" || !slices.Contains(a.Finalizers, v1alpha1.FinalizerValues) || a.DeletionTimestamp == nil {
		t.Errorf("annotations %v, finalizers %v", a.Annotations, a.Finalizers)
	}
}

func TestABrokenClusterIs502AndIsNotQuoted(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *portal.Options) { o.RequestTimeout = 2 * time.Second })
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.operate("example", planned)
	calls := []struct{ method, path, body string }{
		{http.MethodGet, chartPath("example"), ""},
		{http.MethodPost, apitype.PathAddonCharts, `{"chart":"` + exampleRef + `:1.2.0","secretValues":{"a":"` + canary + `"}}`},
		{http.MethodPatch, chartPath("example"), `{"version":"1.3.0"}`},
		{http.MethodPost, chartPath("example") + "/install", `{}`},
		{http.MethodDelete, chartPath("example"), ""},
		{http.MethodGet, apitype.PathAddons, ""},
	}
	for name, broken := range map[string]func(*http.Request) *http.Response{
		"internal error": func(*http.Request) *http.Response {
			return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError)
		},
		"own credentials refused": func(*http.Request) *http.Response {
			return failure(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		},
		"no answer": func(r *http.Request) *http.Response {
			<-r.Context().Done()
			return failure(http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
		},
	} {
		b.wire.intercept(func(r *http.Request) *http.Response {
			if strings.Contains(r.URL.Path, "/zaentrumaddons") {
				return broken(r)
			}
			return nil
		})
		for _, c := range calls {
			start := time.Now()
			var body any
			if c.body != "" {
				body = c.body
			}
			b.refused(c.method, c.path, body, http.StatusBadGateway, "cluster-failed")
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("%s: %s %s took %s", name, c.method, c.path, took)
			}
		}
	}
}

func TestARoleWithoutSecretsIsUnavailableAndRecovers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	rules := shippedRole(t)
	var without []rbacv1.PolicyRule
	for _, r := range rules {
		if r.Resources[0] != "secrets" {
			without = append(without, r)
		}
	}
	b.allow(without)
	// Before anybody asked, the write itself finds out, and nothing has changed but by the dry run.
	body := `{"secretValues":{"a":"` + canary + `"}}`
	b.eventually("the Role counts", func() error {
		if r := b.do(http.MethodPatch, chartPath("example"), body); r.status != http.StatusServiceUnavailable {
			return fmt.Errorf("got %s", r)
		}
		return nil
	})
	before := b.state()
	p := b.refused(http.MethodPatch, chartPath("example"), body, http.StatusServiceUnavailable, "unavailable")
	if !strings.Contains(p.Note, "create secrets") || !strings.Contains(p.Note, b.namespace) {
		t.Errorf("note %q", p.Note)
	}
	if before != b.state() {
		t.Error("something was written")
	}
	var out apitype.Availability
	b.answer(http.MethodGet, apitype.PathAddonCharts, nil, http.StatusOK, &out)
	if out.Available || out.Note != p.Note {
		t.Errorf("%+v", out)
	}
	for _, c := range [][2]string{{http.MethodGet, chartPath("example")}, {http.MethodDelete, chartPath("example")}, {http.MethodPost, chartPath("example") + "/install"}} {
		if got := b.refused(c[0], c[1], nil, http.StatusServiceUnavailable, "unavailable"); got.Note != p.Note {
			t.Errorf("%v: note %q", c, got.Note)
		}
	}
	b.allow(nil)
	b.eventually("every right is named", func() error {
		var out apitype.Availability
		b.answer(http.MethodGet, apitype.PathAddonCharts, nil, http.StatusOK, &out)
		if !strings.Contains(out.Note, "list zaentrumaddons") || !strings.Contains(out.Note, "delete zaentrumaddons") {
			return fmt.Errorf("note %q", out.Note)
		}
		return nil
	})
	b.allow(rules)
	b.eventually("it recovers by itself", func() error {
		if r := b.do(http.MethodGet, chartPath("example"), nil); r.status != http.StatusOK {
			return fmt.Errorf("got %s", r)
		}
		return nil
	})
}

func TestWhatAdmissionForbidsIsARefusalAndNoLackOfRights(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	// As a quota or a policy answers.
	b.wire.intercept(func(r *http.Request) *http.Response {
		if isWrite(r) && strings.HasSuffix(r.URL.Path, "/secrets") {
			return failure(http.StatusForbidden, metav1.StatusReasonForbidden)
		}
		return nil
	})
	b.problem(b.do(http.MethodPost, apitype.PathAddonCharts, `{"chart":"`+exampleRef+`:1.2.0","secretValues":{"a":"`+canary+`"}}`), http.StatusUnprocessableEntity, "refused-by-cluster")
	var list v1alpha1.ZaentrumAddonList
	b.must(b.cluster.List(t.Context(), &list, client.InNamespace(b.namespace)))
	if len(list.Items) != 0 {
		t.Error("the resource was made without its Secret")
	}
}

func TestTheShippedRoleCannotReadASecret(t *testing.T) {
	t.Parallel()
	for _, rule := range shippedRole(t) {
		for _, resource := range rule.Resources {
			if resource == "secrets" {
				if diff := cmp.Diff([]string{"create"}, rule.Verbs); diff != "" {
					t.Errorf("secrets: %s", diff)
				}
			}
		}
	}
}
