package portal

import (
	"context"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
)

const (
	// availableFor and missingFor are how long an answer holds. What is missing may be there any moment.
	availableFor = 15 * time.Second
	missingFor   = 3 * time.Second
)

// Why chart addons are not available.
const (
	noteOutside = "this portal-api does not run in a cluster"
	noteNoKind  = "the cluster has no ZaentrumAddon resource (zaentrum.io/v1alpha1)"
	noteRole    = "portal-api's Role does not let it "
)

// needed are the rights without which chart addons cannot be managed.
func needed() []authorizationv1.ResourceAttributes {
	var all []authorizationv1.ResourceAttributes
	for _, verb := range []string{"get", "list", "watch", "create", "update", "delete"} {
		all = append(all, authorizationv1.ResourceAttributes{Verb: verb, Group: v1alpha1.GroupVersion.Group, Resource: "zaentrumaddons"})
	}
	return append(all, authorizationv1.ResourceAttributes{Verb: "create", Resource: "secrets"})
}

// availability knows whether chart addons can be managed here, and why not. It recovers by itself.
type availability struct {
	client    client.Client
	namespace string
	now       func() time.Time

	mu      sync.Mutex // held while asking, so that many requests ask once
	known   bool
	note    string
	checked time.Time
}

// require is nil when chart addons can be managed; else the note is the fault's message.
func (a *availability) require(ctx context.Context) error {
	note, err := a.get(ctx)
	if err != nil {
		return err
	}
	if note != "" {
		return unavailable(note)
	}
	return nil
}

func unavailable(note string) error { return fault.New(fault.Unavailable, "%s", note) }

// get is the note; empty when chart addons can be managed. An error means that the cluster did not tell.
func (a *availability) get(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known {
		age, limit := a.now().Sub(a.checked), availableFor
		if a.note != "" {
			limit = missingFor
		}
		if age >= 0 && age < limit {
			return a.note, nil
		}
	}
	note, err := a.ask(ctx)
	a.known = err == nil
	a.note, a.checked = note, a.now()
	return note, err
}

// forget makes the next call ask the cluster.
func (a *availability) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = false
}

func (a *availability) ask(ctx context.Context) (string, error) {
	if a.client == nil {
		return noteOutside, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := a.client.List(ctx, &v1alpha1.ZaentrumAddonList{}, client.InNamespace(a.namespace), client.Limit(1))
	switch {
	case err == nil, apierrors.IsForbidden(err):
	case kindMissing(err):
		return noteNoKind, nil
	default:
		return "", clusterFault(err, "list chart addons")
	}
	lacks, asked := a.lacks(ctx)
	if err != nil && len(lacks) == 0 {
		lacks = []string{"list zaentrumaddons"} // whatever the reviews say, this was refused
	}
	if len(lacks) > 0 {
		return noteRole + strings.Join(lacks, ", ") + " in namespace " + a.namespace, nil
	}
	return "", asked
}

// lacks are the rights that portal-api has not, as its Role would have to name them. A cluster that does not
// let it ask is taken to grant them: the call itself will tell.
func (a *availability) lacks(ctx context.Context) (lacks []string, _ error) {
	for _, right := range needed() {
		right.Namespace = a.namespace
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
		}
		if err := a.client.Create(ctx, review); err != nil {
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
				return lacks, nil
			}
			return lacks, clusterFault(err, "ask for its own rights")
		}
		if !review.Status.Allowed {
			lacks = append(lacks, right.Verb+" "+right.Resource)
		}
	}
	return lacks, nil
}

// availability answers GET /api/portal/addon-charts.
func (s *Server) availability(c *call, _ none) (apitype.Availability, error) {
	note, err := s.available.get(c.mayWait)
	if err != nil {
		return apitype.Availability{}, err
	}
	return apitype.Availability{Available: note == "", Note: note}, nil
}
