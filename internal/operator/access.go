package operator

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"zaentrum.io/zae/internal/apply"
)

// access knows which rights the operator lacks: it asks the cluster at the start, it sees every answer that says
// so, and while one is missing it asks again. Without it, most requests would only be tried again and again,
// without a word.
type access struct {
	watched, home string // namespaces
	needs         []need
	log           *slog.Logger
	now           func() time.Time

	mu      sync.Mutex
	lacking map[apply.Right]lack
	wake    chan struct{} // something is lacking that was not
	blinded chan struct{} // closed once a right that fills the caches was lacking
}

// lack is a right that is missing.
type lack struct {
	need need      // zero for a right that is not among the needs
	seen time.Time // when it was found out last
}

// How soon it asks again while something is lacking, at first and at most, and how long it believes an answer
// that it cannot ask about.
const (
	askAgain     = time.Second
	askAgainMost = 20 * time.Second
	believed     = 2 * time.Minute
)

// newAccess is for an operator that watches one namespace or, when that is empty, all, and has its Lease, if any,
// in its home.
func newAccess(watched, home string, leads bool, log *slog.Logger, now func() time.Time) *access {
	all := slices.DeleteFunc(needs(leads), func(n need) bool { return n.inside && watched == "" })
	return &access{
		watched: watched, home: home, needs: all, log: log, now: now,
		lacking: map[apply.Right]lack{}, wake: make(chan struct{}, 1), blinded: make(chan struct{}),
	}
}

// reviews is where to ask about rights. It changes nothing, so that one who does not lead may ask too.
type reviews interface {
	Create(ctx context.Context, review *authorizationv1.SelfSubjectAccessReview, o metav1.CreateOptions) (*authorizationv1.SelfSubjectAccessReview, error)
}

// run asks the cluster about all rights, and then about those that are lacking, until the context ends.
func (x *access) run(ctx context.Context, c reviews) {
	x.ask(ctx, c, x.needs)
	for pause := askAgain; ctx.Err() == nil; pause = min(2*pause, askAgainMost) {
		lacking := x.lacks()
		if len(lacking) == 0 {
			select {
			case <-ctx.Done():
			case <-x.wake:
				pause = askAgain
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			x.ask(ctx, c, lacking)
		}
	}
}

// ask brings what is known about these rights up to date. An API server that does not tell is believed to have
// meant what it answered before, for a while.
func (x *access) ask(ctx context.Context, c reviews, which []need) {
	for _, n := range which {
		if n.verb == "" {
			continue
		}
		resource, sub, _ := strings.Cut(n.resource, "/")
		review := &authorizationv1.SelfSubjectAccessReview{}
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: strings.TrimSuffix(n.where(x.watched, x.home), apply.AllNamespaces),
			Verb:      n.verb, Group: n.group, Resource: resource, Subresource: sub, Name: n.name,
		}
		answer, err := c.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			break
		}
		x.found(n.right(x.watched, x.home), n, !answer.Status.Allowed)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for right, l := range x.lacking {
		if x.now().Sub(l.seen) > believed {
			delete(x.lacking, right)
		}
	}
}

// lacks are the needs that are lacking, in their order; those it cannot ask about are zero.
func (x *access) lacks() []need {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []need
	for _, l := range x.lacking {
		out = append(out, l.need)
	}
	slices.SortFunc(out, func(a, b need) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// denied notes what the cluster answered to a request.
func (x *access) denied(right apply.Right) {
	right, n := x.named(right)
	x.found(right, n, true)
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// named finds the need for a right, which then has its name.
func (x *access) named(right apply.Right) (apply.Right, need) {
	for _, n := range x.needs {
		r := n.right(x.watched, x.home)
		same := r.Verb == right.Verb && (r.Resource == right.Resource ||
			right.Resource == apply.OwnerFinalizers && strings.HasSuffix(n.resource, "/finalizers"))
		if same && (right.Namespace == "" || r.Namespace == apply.AllNamespaces || r.Namespace == right.Namespace) {
			return r, n
		}
	}
	group := strings.TrimPrefix(right.Resource, "events")
	return right, need{spare: group == "" || group == ".events.k8s.io"}
}

// found notes that a right is lacking, or that it is there, and tells when that is news.
func (x *access) found(right apply.Right, n need, lacking bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, was := x.lacking[right]
	switch {
	case lacking:
		x.lacking[right] = lack{n, x.now()}
	case was:
		delete(x.lacking, right)
	}
	if lacking && n.fills {
		select {
		case <-x.blinded:
		default:
			close(x.blinded)
		}
	}
	switch {
	case lacking && !was && n.spare:
		x.log.Warn("the operator lacks a right", "right", right.String(), "for", n.what, "without", n.without)
	case lacking && !was:
		x.log.Error("the operator lacks a right", "right", right.String(), "for", n.what, "without", n.without)
	case was && !lacking:
		x.log.Info("the operator has a right that it lacked", "right", right.String())
	}
}

// blind is a right that is lacking and without which the caches cannot be relied on. Those that are filled do
// without lists: where the API server can, it streams what there is into a watch.
func (x *access) blind(filled bool) (apply.Right, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.lacking) == 0 {
		return apply.Right{}, false
	}
	for _, n := range x.needs {
		right := n.right(x.watched, x.home)
		if _, ok := x.lacking[right]; ok && n.fills && (n.verb == "watch" || !filled) {
			return right, true
		}
	}
	return apply.Right{}, false
}

// misses tells whether a right to a resource of the core group is lacking.
func (x *access) misses(resource string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.lacking {
		if l.need.group == "" && l.need.resource == resource {
			return true
		}
	}
	return false
}

// problems says which rights are lacking that addons cannot be kept without, in order.
func (x *access) problems() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []string
	for right, l := range x.lacking {
		if !l.need.spare {
			out = append(out, "no right to "+right.String())
		}
	}
	slices.Sort(out)
	return out
}

// maxDenial bounds what is read of an answer to find out about a right.
const maxDenial = 64 << 10

// wrap is a transport that sees which requests are denied.
func (x *access) wrap(next http.RoundTripper) http.RoundTripper { return &denials{next, x} }

type denials struct {
	next   http.RoundTripper
	access *access
}

// WrappedRoundTripper lets idle connections be closed.
func (d *denials) WrappedRoundTripper() http.RoundTripper { return d.next }

func (d *denials) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusForbidden || resp.Body == nil {
		return resp, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDenial))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = broken{err}
	}
	resp.Body = &both{io.MultiReader(bytes.NewReader(body), rest), resp.Body}
	answer, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return resp, nil //nolint:nilerr // an answer of somebody else; who asked reads it
	}
	if status, ok := answer.(*metav1.Status); ok {
		if right, ok := apply.Denied(apierrors.FromObject(status)); ok {
			d.access.denied(right)
		}
	}
	return resp, nil
}

// both reads from one and closes the other.
type both struct {
	io.Reader
	io.Closer
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
