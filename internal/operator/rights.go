package operator

import (
	"fmt"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
)

// need is a right that the operator needs. The roles in deploy/ grant exactly these, and docs/operating.md
// explains them.
type need struct {
	group, resource string // with its subresource
	verb            string
	// name limits the right to one object.
	name string
	// home: in the namespace of the lease, wherever the operator watches.
	home bool
	// fills: the caches are filled with it.
	fills bool
	// spare: addons are kept without it.
	spare bool
	// inside: by an operator whose rights are the watched namespace's own, and go with it.
	inside bool

	what, without string // for people
}

func (n need) String() string { return n.verb + " " + apply.ResourceName(n.group, n.resource) }

const (
	noList  = "nothing, where the API server streams lists into watches (by default since Kubernetes 1.34); else as without watch"
	noWatch = "no addon is worked on, and each says so"
	noLead  = "nobody leads, and nothing is worked on"
)

// needs are all rights that the operator needs, those to lead only when it has to.
func needs(leads bool) []need {
	group := v1alpha1.GroupVersion.Group
	all := []need{
		{group: group, resource: "zaentrumaddons", verb: "list", fills: true, what: "which addons there are", without: noList},
		{group: group, resource: "zaentrumaddons", verb: "watch", fills: true, what: "what is asked for, at once",
			without: "no addon is worked on, and no new one is seen"},
		{group: group, resource: "zaentrumaddons", verb: "get", what: "a last look before a value is generated, a Job created, or a values Secret deleted that nothing references",
			without: "addons with a new Job or generated input fail, and such Secrets stay"},
		{group: group, resource: "zaentrumaddons", verb: "patch", what: "the finalizer, while values are to be kept",
			without: "an addon with `keep-values` is not worked on"},
		{group: group, resource: "zaentrumaddons/status", verb: "patch", what: "phase, plan and progress",
			without: "addons are kept as rendered, but no status is written: an event on the addon says so"},
		{group: group, resource: "zaentrumaddons/finalizers", verb: "update",
			what:    "owner references that block the owner's deletion, where the admission plugin `OwnerReferencesPermissionEnforcement` asks for it",
			without: "there, no object of a chart can be written"},
		{group: group, resource: "zaentrums", verb: "list", fills: true, what: "the platform; whether one is left, before values are kept",
			without: noList + "; and addons that are removed with `keep-values` stay"},
		{group: group, resource: "zaentrums", verb: "watch", fills: true, what: "the platform's facts", without: noWatch},
	}
	const meet = "; those of others, for selectors that meet"
	for _, k := range []struct{ group, resource, list, get, create, patch, delete string }{
		{resource: "serviceaccounts"},
		{resource: "configmaps", get: "; values documents"},
		{resource: "persistentvolumeclaims"},
		{resource: "services", list: meet},
		{group: "apps", resource: "deployments", list: meet},
		{group: "batch", resource: "jobs", list: meet, delete: "; a Job that runs again"},
		{resource: "secrets", list: "; the values Secrets to keep", get: "; values", create: "; generated values",
			patch: "; owners of values Secrets", delete: "; values Secrets that nothing references"},
	} {
		list := noList
		if k.list != "" {
			list += "; and what needs that look fails"
		}
		all = append(all,
			need{group: k.group, resource: k.resource, verb: "list", fills: true, what: "what addons have, by label" + k.list, without: list},
			need{group: k.group, resource: k.resource, verb: "watch", fills: true, what: "what addons have, by label, at once", without: noWatch},
			need{group: k.group, resource: k.resource, verb: "get", what: "whether a name that a chart wants is taken" + k.get, without: "addons with a new one fail"},
			need{group: k.group, resource: k.resource, verb: "create", what: "what charts render" + k.create, without: "addons with a new one fail"},
			need{group: k.group, resource: k.resource, verb: "patch", what: "what charts render" + k.patch, without: "addons with a new or changed one fail"},
			need{group: k.group, resource: k.resource, verb: "delete", what: "what charts render no more" + k.delete, without: "addons that drop one fail, and it stays"},
		)
	}
	all = append(all,
		need{resource: "pods", verb: "list", what: "the labels of what others run, for selectors that meet; why an addon's pods do not run, by label",
			without: "addons with a new selector, or new labels of pods, fail"},
		need{resource: "pods", verb: "watch", spare: true, what: "why an addon's pods do not run, at once; when those of a former Job are gone",
			without: "what keeps an addon from running is told by its Deployments and Jobs alone, and a Job that changes does not wait for the pods of the one before"},
		need{resource: "namespaces", verb: "get", what: "whether the namespace is on its way out, before values are kept",
			without: "addons that are removed with `keep-values` stay"},
		need{resource: "namespaces", verb: "watch", inside: true, spare: true, what: "that the namespace is being deleted, before its Roles are; in the Role only",
			without: "an addon with `keep-values` may hold up the deletion of its namespace for ever"},
		need{group: "events.k8s.io", resource: "events", verb: "create", spare: true, what: "what happened to an addon", without: "no events"},
	)
	if !leads {
		return all
	}
	return append(all,
		need{resource: "events", verb: "create", home: true, spare: true, what: "who leads", without: "no such event"},
		need{group: "coordination.k8s.io", resource: "leases", verb: "create", home: true, what: "the first lead", without: noLead},
		need{group: "coordination.k8s.io", resource: "leases", verb: "get", home: true, name: LeaderElectionID, what: "who leads", without: noLead},
		need{group: "coordination.k8s.io", resource: "leases", verb: "update", home: true, name: LeaderElectionID, what: "taking and keeping the lead", without: noLead},
	)
}

// where is the namespace that the right is needed in, for an operator that watches one namespace or, when
// that is empty, all.
func (n need) where(watched, home string) string {
	switch {
	case n.home:
		return home
	case watched == "":
		return apply.AllNamespaces
	default:
		return watched
	}
}

func (n need) right(watched, home string) apply.Right {
	return apply.Right{Verb: n.verb, Resource: apply.ResourceName(n.group, n.resource), Namespace: n.where(watched, home)}
}

// cannot says to people what the operator cannot do.
func cannot(r apply.Right) string {
	return fmt.Sprintf("the operator has no right to %s: see that its Role has it", r)
}
