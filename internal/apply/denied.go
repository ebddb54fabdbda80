package apply

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"zaentrum.io/zae/internal/fault"
)

// Right is one thing that somebody may do in a cluster, or may not.
type Right struct {
	Verb string
	// Resource is as kubectl takes it, such as deployments.apps or zaentrumaddons.zaentrum.io/status.
	Resource string
	// Namespace is AllNamespaces for all of the cluster, and empty where that is not known.
	Namespace string
}

// AllNamespaces is the namespace of a right that is for the whole cluster.
const AllNamespaces = "*"

// String is such as "patch deployments.apps in namespace zaentrum".
func (r Right) String() string {
	switch r.Namespace {
	case "":
		return r.Verb + " " + r.Resource
	case AllNamespaces:
		return fmt.Sprintf("%s %s in all namespaces", r.Verb, r.Resource)
	default:
		return fmt.Sprintf("%s %s in namespace %s", r.Verb, r.Resource, r.Namespace)
	}
}

// What the API server says, in words of its own, when a right is missing. An answer is matched from its beginning, so
// that no admission plugin that quotes what it was given can be taken for one.
var noRight = regexp.MustCompile(`^[a-z0-9.-]+(?: "[^"]*")? is forbidden: User "(?:[^"\\]|\\.)*" ` +
	`cannot ([a-z]+) resource "([a-z0-9.-]+(?:/[a-z]+)?)" in API group "([a-z0-9.-]*)"` +
	`(?: in the namespace "([a-z0-9-]+)"| at the cluster scope)`)

// OwnerReferencesPermissionEnforcement, an admission plugin, asks for more rights than the request itself needs.
const (
	noDelete     = "cannot set an ownerRef on a resource you can't delete"
	noFinalizers = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
)

// OwnerFinalizers stands, as the resource of a Right, for the finalizers of the owner of what was written.
const OwnerFinalizers = "the owner's finalizers"

// Denied tells which right an error says is missing; false when that is not what it says. An admission
// plugin or a quota that refuses an object does not deny a right.
func Denied(err error) (Right, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsForbidden(err) {
		return Right{}, false
	}
	s := status.Status()
	if m := noRight.FindStringSubmatch(s.Message); m != nil {
		right := Right{Verb: m[1], Resource: ResourceName(m[3], m[2]), Namespace: m[4]}
		if right.Namespace == "" {
			right.Namespace = AllNamespaces
		}
		return right, true
	}
	switch {
	case strings.Contains(s.Message, noDelete) && s.Details != nil:
		return Right{Verb: "delete", Resource: ResourceName(s.Details.Group, s.Details.Kind)}, true
	case strings.Contains(s.Message, noFinalizers):
		return Right{Verb: "update", Resource: OwnerFinalizers}, true
	}
	return Right{}, false
}

func denied(err error) bool {
	_, ok := Denied(err)
	return ok
}

// ResourceName writes a resource, with its subresource if any, and its group as kubectl does.
func ResourceName(group, name string) string {
	if group == "" {
		return name
	}
	name, sub, ok := strings.Cut(name, "/")
	name += "." + group
	if ok {
		name += "/" + sub
	}
	return name
}

// rightless is the fault of a right that is missing.
func rightless(r Right, what string, err error) error {
	return fault.New(fault.Cluster, "the cluster failed to %s: no right to %s", what, r).
		WithHint("whoever runs this needs that right").Because(err)
}
