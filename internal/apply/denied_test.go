package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"zaentrum.io/zae/internal/fault"
)

func TestAMissingRightIsNamed(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	addons := schema.GroupResource{Group: "zaentrum.io", Resource: "zaentrumaddons"}
	secrets := schema.GroupResource{Resource: "secrets"}
	user := `User "system:serviceaccount:zaentrum:zae-operator" `
	for want, err := range map[string]error{
		"patch deployments.apps in namespace zaentrum": apierrors.NewForbidden(deployments, "x",
			errors.New(user+`cannot patch resource "deployments" in API group "apps" in the namespace "zaentrum"`)),
		"list secrets in all namespaces": apierrors.NewForbidden(secrets, "",
			errors.New(user+`cannot list resource "secrets" in API group "" at the cluster scope: because`)),
		"patch zaentrumaddons.zaentrum.io/status in namespace a": fmt.Errorf("status: %w", apierrors.NewForbidden(addons, "x",
			errors.New(`User "a\"b" cannot patch resource "zaentrumaddons/status" in API group "zaentrum.io" in the namespace "a"`))),
		"delete secrets": apierrors.NewForbidden(secrets, "x", errors.New(noDelete+": , <nil>")),
		"update the owner's finalizers": apierrors.NewForbidden(deployments, "x",
			errors.New(noFinalizers+": , <nil>")),
	} {
		right, ok := Denied(err)
		if !ok || right.String() != want {
			t.Errorf("%v: got %q, %t, want %q", err, right, ok, want)
		}
		if classify(err) != broken {
			t.Errorf("%v: is taken for a refusal of the object", err)
		}
		if f := fault.From(failed(err, "apply Deployment/x")); f.Code != fault.Cluster || !strings.Contains(f.Message, "no right to "+want) || f.Hint == "" {
			t.Errorf("%v: got %s %q, hint %q", err, f.Code, f.Message, f.Hint)
		}
	}
}

func TestARefusalDeniesNoRight(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	words := `User "x" cannot list resource "c4n4ry" in API group "" in the namespace "a"`
	for _, err := range []error{
		nil,
		errors.New(words),
		apierrors.NewForbidden(pods, "x", errors.New("exceeded quota: few, requested: pods=1")),
		apierrors.NewForbidden(pods, "x", errors.New(`violates PodSecurity "restricted:latest"`)),
		apierrors.NewForbidden(pods, "x", errors.New(`admission webhook "a" denied the request: `+words)),
		apierrors.NewForbidden(pods, `x" is forbidden: `+words, errors.New("no")),
		apierrors.NewBadRequest("pods is forbidden: " + words),
		apierrors.NewForbidden(pods, "x", errors.New(`User "x" cannot get path "/healthz"`)),
	} {
		if right, ok := Denied(err); ok {
			t.Errorf("%v: denies %s", err, right)
		}
	}
}
