package operator

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"zaentrum.io/zae/internal/apply"
)

// reviewer answers which rights there are, or with an error.
type reviewer struct {
	allowed bool
	err     error
}

func (r reviewer) Create(_ context.Context, review *authorizationv1.SelfSubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SelfSubjectAccessReview, error) {
	review.Status.Allowed = r.allowed
	return review, r.err
}

// TestADenialIsBelievedForAWhile notes a right that nobody needs, and one that the cluster does not answer about.
func TestADenialIsBelievedForAWhile(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(1e9, 0)
	x := newAccess("zaentrum", "zaentrum", false, slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
	x.denied(apply.Right{Verb: "list", Resource: "nodes", Namespace: apply.AllNamespaces})
	x.denied(apply.Right{Verb: "update", Resource: apply.OwnerFinalizers})
	x.denied(apply.Right{Verb: "create", Resource: "events.events.k8s.io", Namespace: "zaentrum"})
	x.denied(apply.Right{Verb: "patch", Resource: "events.events.k8s.io", Namespace: "zaentrum"}) // nobody needs it
	want := "no right to list nodes in all namespaces\nno right to update zaentrumaddons.zaentrum.io/finalizers in namespace zaentrum"
	if got := strings.Join(x.problems(), "\n"); got != want {
		t.Fatalf("got %q", got)
	}
	now = now.Add(believed)
	x.ask(t.Context(), reviewer{err: errors.New("no answer")}, x.lacks())
	if got := strings.Join(x.problems(), "\n"); got != want {
		t.Errorf("forgets what it cannot ask about: %q", got)
	}
	x.ask(t.Context(), reviewer{}, x.lacks())
	now = now.Add(time.Second)
	x.ask(t.Context(), reviewer{err: errors.New("no answer")}, x.lacks())
	if got := x.problems(); len(got) != 1 || !strings.Contains(got[0], "finalizers") {
		t.Errorf("after a while: %q", got)
	}
	x.ask(t.Context(), reviewer{allowed: true}, x.lacks())
	if got := x.problems(); len(got) != 0 || len(x.lacks()) != 0 {
		t.Errorf("with all rights: %q", got)
	}
	for text, n := range map[string]int{"level=ERROR": 2, "level=WARN": 2, "level=INFO": 2} {
		if got := strings.Count(log.String(), text); got != n {
			t.Errorf("%d lines with %s, not %d: %s", got, text, n, &log)
		}
	}
}

type answers http.Response

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) { return (*http.Response)(a), nil }

// TestAnswersReachWhoAsked lets denials through as they are, in every encoding and of any length.
func TestAnswersReachWhoAsked(t *testing.T) {
	denial := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "",
		errors.New(`User "x" cannot list resource "secrets" in API group "" in the namespace "zaentrum"`)).Status()
	denial.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	encoded := func(mediaType string) string {
		info, ok := runtime.SerializerInfoForMediaType(clientgoscheme.Codecs.SupportedMediaTypes(), mediaType)
		if !ok {
			t.Fatalf("no %s", mediaType)
		}
		var b bytes.Buffer
		if err := info.Serializer.Encode(&denial, &b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for name, tc := range map[string]struct {
		code   int
		body   string
		denied bool
	}{
		"json":           {http.StatusForbidden, encoded(runtime.ContentTypeJSON), true},
		"protobuf":       {http.StatusForbidden, encoded(runtime.ContentTypeProtobuf), true},
		"another status": {http.StatusNotFound, encoded(runtime.ContentTypeJSON), false},
		"a proxy's":      {http.StatusForbidden, "<html>no", false},
		"long":           {http.StatusForbidden, strings.Repeat("no ", maxDenial), false},
		"empty":          {http.StatusForbidden, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			x := newAccess("zaentrum", "zaentrum", false, slog.New(slog.DiscardHandler), time.Now)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x.example/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := x.wrap(&answers{StatusCode: tc.code, Body: io.NopCloser(strings.NewReader(tc.body))}).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || string(body) != tc.body {
				t.Errorf("%d bytes became %d: %v", len(tc.body), len(body), err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
			if got := len(x.problems()) == 1; got != tc.denied {
				t.Errorf("denied: %t", got)
			}
		})
	}
}
