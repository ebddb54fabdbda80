package portal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
)

// rightsOf are rules, each right as a text: verb, resource and group, and the name where there is one.
func rightsOf(rules []rbacv1.PolicyRule) map[string]bool {
	out := map[string]bool{}
	for _, r := range rules {
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					for _, name := range names {
						out[right(verb, group, resource, name)] = true
					}
				}
			}
		}
	}
	return out
}

func right(verb, group, resource, name string) string {
	return strings.TrimSpace(verb + " " + strings.Trim(resource+"."+group, ".") + " " + name)
}

// TestThePortalMayDoNothingButWhatItsRoleSays asks the API server about every verb on everything that it serves.
func TestThePortalMayDoNothingButWhatItsRoleSays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	shipped := rightsOf(shippedRole(t))
	want := maps.Clone(shipped)
	// What every user of a cluster may: ask what they may.
	for _, resource := range []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"} {
		want[right("create", "authorization.k8s.io", resource, "")] = true
	}
	want[right("create", "authentication.k8s.io", "selfsubjectreviews", "")] = true
	names := map[string]bool{"": true}
	for _, r := range shippedRole(t) {
		for _, name := range r.ResourceNames {
			names[name] = true
		}
	}
	scheme, err := portal.Scheme()
	b.must(err)
	config := rest.CopyConfig(server.limited)
	config.QPS = -1
	limited, err := client.New(config, client.Options{Scheme: scheme, Mapper: server.mapper})
	b.must(err)
	found, err := discovery.NewDiscoveryClientForConfig(config)
	b.must(err)
	_, lists, err := found.ServerGroupsAndResources()
	b.must(err)
	asked, got := 0, map[string]bool{}
	for _, list := range lists {
		group, _, _ := strings.Cut(list.GroupVersion, "/")
		if list.GroupVersion == "v1" {
			group = ""
		}
		for _, resource := range list.APIResources {
			kind, sub, _ := strings.Cut(resource.Name, "/")
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate", "bind", "escalate"} {
				for name := range names {
					review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
						ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: b.namespace, Verb: verb, Group: group, Resource: kind, Subresource: sub, Name: name},
					}}
					b.must(limited.Create(t.Context(), review))
					asked++
					// A right to all names is one to each.
					if review.Status.Allowed && (name == "" || !got[right(verb, group, resource.Name, "")] && !want[right(verb, group, resource.Name, "")]) {
						got[right(verb, group, resource.Name, name)] = true
					}
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what portal-api may do is not what its Role says: %s", diff)
	}
	t.Logf("asked about %d rights", asked)
}

// TestNoWayLeadsToASecretsContent tries, as portal-api, every way that the API server has.
func TestNoWayLeadsToASecretsContent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	name := "zaentrum-addon-example-values-abc"
	labels := map[string]string{v1alpha1.LabelAddon: "example"}
	b.must(b.cluster.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: labels}, Data: map[string][]byte{"database.url": []byte(canary)},
	}))
	b.must(b.cluster.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: labels}, Data: map[string]string{"database.url": canary},
	}))
	transport, err := rest.TransportFor(server.limited)
	b.must(err)
	object := func(kind string) string {
		return `{"apiVersion":"v1","kind":"` + kind + `","metadata":{"name":"` + name + `"}}`
	}
	for _, tc := range []struct {
		method, path, body, media, accept string
	}{
		{"GET", "/NAME", "", "", ""},
		{"GET", "/NAME", "", "", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
		{"GET", "/NAME", "", "", "application/json;as=Table;g=meta.k8s.io;v=v1;includeObject=Object"},
		{"GET", "", "", "", ""},
		{"GET", "?limit=1", "", "", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"},
		{"GET", "?labelSelector=zaentrum.io/addon%3Dexample", "", "", ""},
		{"GET", "?fieldSelector=metadata.name%3DNAME", "", "", ""},
		{"GET", "?watch=true&timeoutSeconds=1", "", "", ""},
		{"GET", "?watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "", "", ""},
		{"HEAD", "/NAME", "", "", ""},
		{"PUT", "/NAME", "OBJECT", "application/json", ""},
		{"PUT", "/NAME?dryRun=All", "OBJECT", "application/json", ""},
		{"PUT", "/another", `{"apiVersion":"v1","kind":"KIND","metadata":{"name":"another"}}`, "application/json", ""},
		{"PATCH", "/NAME", `{"metadata":{"labels":{"a":"b"}}}`, "application/merge-patch+json", ""},
		{"PATCH", "/NAME?dryRun=All", `[{"op":"test","path":"/data/x","value":"y"}]`, "application/json-patch+json", ""},
		{"PATCH", "/NAME", `{}`, "application/strategic-merge-patch+json", ""},
		{"PATCH", "/NAME?fieldManager=x&force=true", "OBJECT", "application/apply-patch+yaml", ""},
		{"PATCH", "/another?fieldManager=x", `{"apiVersion":"v1","kind":"KIND","metadata":{"name":"another"}}`, "application/apply-patch+yaml", ""},
		{"DELETE", "/NAME", "", "", ""},
		{"DELETE", "/NAME?dryRun=All", "", "", ""},
		{"DELETE", "", "", "", ""},
		{"POST", "", "OBJECT", "application/json", ""},
	} {
		for resource, kind := range map[string]string{"secrets": "Secret", "configmaps": "ConfigMap"} {
			for _, base := range []string{"/api/v1/namespaces/" + b.namespace + "/", "/api/v1/namespaces/kube-system/", "/api/v1/"} {
				if base == "/api/v1/" && (tc.method != "GET" || strings.HasPrefix(tc.path, "/")) {
					continue
				}
				fill := strings.NewReplacer("NAME", name, "KIND", kind, "OBJECT", object(kind))
				r, err := http.NewRequestWithContext(t.Context(), tc.method, strings.TrimSuffix(server.limited.Host, "/")+base+resource+fill.Replace(tc.path), strings.NewReader(fill.Replace(tc.body)))
				b.must(err)
				if tc.media != "" {
					r.Header.Set("Content-Type", tc.media)
				}
				if tc.accept != "" {
					r.Header.Set("Accept", tc.accept)
				}
				response, err := transport.RoundTrip(r)
				b.must(err)
				raw, err := io.ReadAll(response.Body)
				b.must(errors.Join(err, response.Body.Close()))
				want := http.StatusForbidden
				if tc.method == "POST" && resource == "secrets" && strings.Contains(base, b.namespace) {
					want = http.StatusConflict // it is there, and that is all that is told
				}
				if response.StatusCode != want || bytes.Contains(raw, []byte(canary)) || bytes.Contains(raw, []byte("YzRuYXJ5")) {
					t.Errorf("%s %s: %d %s", tc.method, r.URL.Path, response.StatusCode, raw)
				}
			}
		}
	}
}

// TestEveryShippedRightIsUsed lives through the life of an addon, as one replica that is elected, and wants each right of the
// Role to be asked for, and none besides.
func TestEveryShippedRightIsUsed(t *testing.T) {
	t.Parallel()
	app := newPrimary(t, `{"service":"example"}`)
	b := newBench(t, resolving(map[string]*primary{"example": app}), func(o *portal.Options) {
		o.Election = &portal.Election{Identity: "one", Lease: 3 * time.Second, Renew: 2 * time.Second, Retry: 100 * time.Millisecond}
	})
	var mu sync.Mutex
	used := map[string]bool{}
	b.wire.intercept(func(r *http.Request) *http.Response {
		mu.Lock()
		defer mu.Unlock()
		used[rightFor(r)] = true
		return nil
	})
	b.do("GET", apitype.PathAddons, nil) // before anything is watched
	stop := b.run()
	var out apitype.WriteAnswer
	create := `{"chart":"` + exampleRef + `:1.2.0","secretValues":{"database.url":"` + canary + `"}}`
	b.answer("POST", apitype.PathAddonCharts, create, 202, &out)
	b.operate("example", planned)
	b.answer("POST", chartPath("example")+"/install", nil, 202, &out)
	b.operate("example", running)
	b.eventually("the addon is registered", func() error {
		if r := b.do("GET", apiBase+"/x", nil); r.status == 404 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	b.do("GET", apitype.PathAddons, nil)
	b.answer("PATCH", chartPath("example"), `{"suspend":true}`, 202, &out)
	var deleted apitype.DeleteAnswer
	b.answer("DELETE", chartPath("example")+"?keepValues=true", nil, 200, &deleted)
	b.eventually("all rights are used", func() error {
		mu.Lock()
		defer mu.Unlock()
		for _, right := range slices.Sorted(maps.Keys(rightsOf(shippedRole(t)))) {
			if !used[right] {
				return fmt.Errorf("%s is not used", right)
			}
		}
		return nil
	})
	stop()
	shipped := rightsOf(shippedRole(t))
	mu.Lock()
	defer mu.Unlock()
	for right := range used {
		if !shipped[right] && !strings.Contains(right, "selfsubjectaccessreviews") {
			t.Errorf("%s is used, and not in the Role", right)
		}
	}
}

// rightFor is the right that a request needs.
func rightFor(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	if parts[0] == "apis" {
		group, parts = parts[1], parts[1:]
	}
	parts = parts[2:] // api or the group, and the version
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	verb := map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[r.Method]
	switch {
	case r.URL.Query().Get("watch") != "" && r.URL.Query().Get("watch") != "false":
		verb = "watch"
	case r.Method == "GET" && len(parts) > 1:
		verb = "get"
	case r.Method == "GET":
		verb = "list"
	case r.Method == "DELETE" && len(parts) == 1:
		verb = "deletecollection"
	}
	resource := parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	name := ""
	if group == "coordination.k8s.io" && len(parts) > 1 { // whose rights are by name
		name = parts[1]
	}
	return right(verb, group, resource, name)
}

// TestEachRightThatIsMissingIsNamed takes each right of the chart calls away in turn.
func TestEachRightThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	var ahead time.Duration
	var mu sync.Mutex
	b := newBench(t, func(o *portal.Options) {
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(ahead)
		}
	})
	for without := range rightsOf(shippedRole(t)) {
		if strings.Contains(without, "leases") {
			continue
		}
		var rules []rbacv1.PolicyRule
		for _, r := range shippedRole(t) {
			for _, verb := range r.Verbs {
				one := r
				one.Verbs = []string{verb}
				if !rightsOf([]rbacv1.PolicyRule{one})[without] {
					rules = append(rules, one)
				}
			}
		}
		b.allow(rules)
		verb, resource, _ := strings.Cut(without, " ")
		resource, _, _ = strings.Cut(resource, ".")
		b.eventually("the loss of "+without+" is told", func() error {
			mu.Lock()
			ahead += time.Minute // past what is remembered
			mu.Unlock()
			var out apitype.Availability
			b.answer("GET", apitype.PathAddonCharts, nil, 200, &out)
			if want := "portal-api's Role does not let it " + verb + " " + resource + " in namespace " + b.namespace; out.Available || out.Note != want {
				return fmt.Errorf("%+v, wanted %s", out, want)
			}
			return nil
		})
	}
}
