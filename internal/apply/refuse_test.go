package apply

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/manifest"
)

func TestFieldPathsHoldNoValues(t *testing.T) {
	for raw, want := range map[string]string{
		"spec.selector": "spec.selector",
		".spec.template.spec.containers[0].ports[12].name": "spec.template.spec.containers[0].ports[12].name",
		`.spec.containers[name="c4n4ry"].env`:              "spec.containers[*].env",
		"data[c4n4ry]":                                     "data[*]",
		"metadata.annotations[example.org/c4n4ry]":         "metadata.annotations[*]",
		"data[a]b]":     "data[*]b]",
		"spec.x c4n4ry": "",
		"spec.\x1b[31m": "",
		"<nil>":         "",
		"":              "",
	} {
		if got := fieldPath(raw); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}

func TestRefusalsForPeople(t *testing.T) {
	id := manifest.ID{APIVersion: "v1", Kind: "Service", Name: "x"}
	for want, r := range map[string]Refusal{
		"Service/x: not accepted by the cluster":                                      {ID: id},
		"Service/x: not accepted by the cluster (Forbidden)":                          {ID: id, Reason: "Forbidden"},
		"Service/x: a, b not accepted by the cluster (Invalid)":                       {ID: id, Reason: "Invalid", Paths: []string{"a", "b"}},
		"Service/x: a cannot be changed on the existing object":                       {ID: id, Reason: "Invalid", Paths: []string{"a"}, Immutable: true},
		"Service/x: cannot be changed on the existing object":                         {ID: id, Immutable: true},
		"Service/x: 1, 2, 3, 4, 5 and 2 more not accepted by the cluster (Malformed)": {ID: id, Reason: "Malformed", Paths: []string{"1", "2", "3", "4", "5", "6", "7"}},
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAnswersOfTheCluster(t *testing.T) {
	gr := schema.GroupResource{Resource: "secrets"}
	kind := schema.GroupKind{Kind: "Secret"}
	uid := apierrors.NewInvalid(kind, "x", field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "c4n4ry", "field is immutable")})
	for name, tc := range map[string]struct {
		err  error
		want outcome
	}{
		"none":                       {nil, accepted},
		"invalid":                    {apierrors.NewInvalid(kind, "x", field.ErrorList{field.Required(field.NewPath("type"), "c4n4ry")}), refused},
		"forbidden":                  {apierrors.NewForbidden(gr, "x", errors.New("c4n4ry")), refused},
		"bad request":                {apierrors.NewBadRequest("c4n4ry"), refused},
		"too large":                  {apierrors.NewRequestEntityTooLargeError("c4n4ry"), refused},
		"the namespace is gone":      {apierrors.NewNotFound(gr, "x"), refused},
		"does not fit the schema":    {apierrors.NewInternalError(errors.New("failed to create typed patch object (c4n4ry)")), refused},
		"another version":            {apierrors.NewConflict(gr, "x", errors.New("c4n4ry")), conflict},
		"another object":             {uid, conflict},
		"a webhook that is down":     {apierrors.NewInternalError(errors.New("failed calling webhook c4n4ry")), broken},
		"too many requests":          {apierrors.NewTooManyRequests("c4n4ry", 1), broken},
		"a timeout":                  {apierrors.NewTimeoutError("c4n4ry", 1), broken},
		"no right to ask":            {apierrors.NewUnauthorized("c4n4ry"), broken},
		"an answer of another kind":  {apierrors.NewGenericServerResponse(http.StatusBadGateway, "patch", gr, "x", "c4n4ry", 0, true), broken},
		"no answer":                  {context.DeadlineExceeded, broken},
		"the namespace is going":     {terminating(), refused},
		"an unknown reason, by code": {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 507, Message: "c4n4ry"}}, broken},
	} {
		t.Run(name, func(t *testing.T) {
			if got := classify(tc.err); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
	c := &Cluster{}
	want := manifest.Object{Tree: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "x"}}}
	if got := c.refusal(want, false, terminating()).String(); got != "Secret/x: not accepted by the cluster (NamespaceTerminating)" {
		t.Errorf("got %q", got)
	}
}

func terminating() error {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("c4n4ry"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating", Message: "c4n4ry"}}
	return err
}

func TestFailuresCarryNoTextOfTheCluster(t *testing.T) {
	for want, err := range map[string]error{
		"the cluster failed to apply x: InternalError": apierrors.NewInternalError(errors.New("c4n4ry")),
		"the cluster failed to apply x: status 507":    &apierrors.StatusError{ErrStatus: metav1.Status{Code: 507, Message: "c4n4ry"}},
		"the cluster failed to apply x":                errors.New("c4n4ry"),
	} {
		got := failed(err, "apply %s", "x")
		if got.Error() != want || fault.CodeOf(got) != fault.Cluster || !errors.Is(got, err) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
