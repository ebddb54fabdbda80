package apply

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/manifest"
)

// Refusal is one object that the cluster does not accept. It holds what can be said without the API server's
// own text, which quotes values.
type Refusal struct {
	ID manifest.ID
	// Reason is one CamelCase word, such as Invalid or Forbidden; it may be empty.
	Reason string
	// Paths are the fields the cluster objects to, in its order; none when it names none.
	Paths []string
	// Immutable tells that the object exists and these fields of it cannot be changed.
	Immutable bool
}

const maxPaths = 5

// String is the refusal for people, such as
// "Deployment/worker: spec.selector cannot be changed on the existing object".
func (r Refusal) String() string {
	paths := strings.Join(r.Paths[:min(len(r.Paths), maxPaths)], ", ")
	if more := len(r.Paths) - maxPaths; more > 0 {
		paths += fmt.Sprintf(" and %d more", more)
	}
	switch {
	case r.Immutable && paths != "":
		return fmt.Sprintf("%s: %s cannot be changed on the existing object", r.ID, paths)
	case r.Immutable:
		return fmt.Sprintf("%s: cannot be changed on the existing object", r.ID)
	case paths != "":
		return fmt.Sprintf("%s: %s not accepted by the cluster%s", r.ID, paths, r.reason())
	default:
		return fmt.Sprintf("%s: not accepted by the cluster%s", r.ID, r.reason())
	}
}

func (r Refusal) reason() string {
	if r.Reason == "" {
		return ""
	}
	return " (" + r.Reason + ")"
}

// outcome is what the API server's answer to a write means.
type outcome int

const (
	accepted outcome = iota
	refused          // the object is not acceptable as it is; trying again does not help
	conflict         // it is not the object that was observed
	broken           // the request failed; nothing is known about the object
)

func classify(err error) outcome {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return accepted
	case meta.IsNoMatchError(err):
		return refused
	case !errors.As(err, &status), denied(err):
		return broken
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), hasCause(status.Status(), "metadata.uid"):
		return conflict
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err),
		apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err),
		untypable(err):
		return refused
	default:
		return broken
	}
}

// untypable recognises how the API server answers to an apply that does not fit the kind's schema. It is an
// internal error to it, but the object's fault.
func untypable(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed to create typed patch object")
}

// noDryRun recognises a cluster whose admission cannot tell what it would do.
func noDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// overQuota recognises that an object is refused because there are too many already.
func overQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

func hasCause(s metav1.Status, field string) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == field })
}

// refusal says what of an answer can be said. update tells whether the object exists.
func (c *Cluster) refusal(want manifest.Object, update bool, err error) Refusal {
	r := Refusal{ID: want.ID()}
	var status apierrors.APIStatus
	switch {
	case meta.IsNoMatchError(err):
		r.Reason = "NotServed"
	case untypable(err):
		r.Reason = "Malformed"
		r.Paths = c.misfits(want)
	case errors.As(err, &status):
		s := status.Status()
		r.Reason = word(string(s.Reason))
		if s.Details == nil {
			break
		}
		immutable := 0
		for _, cause := range s.Details.Causes {
			if cause.Type == "NamespaceTerminating" {
				r.Reason = string(cause.Type)
			}
			if p := fieldPath(cause.Field); p != "" && !slices.Contains(r.Paths, p) {
				r.Paths = append(r.Paths, p)
			}
			// A value in the text can contain the word as well: it then only words our sentence.
			if strings.Contains(cause.Message, "immutable") {
				immutable++
			}
		}
		r.Immutable = update && immutable > 0 && immutable == len(s.Details.Causes)
	}
	return r
}

// misfits are the fields that do not fit the kind's schema, as far as we know it.
func (c *Cluster) misfits(want manifest.Object) []string {
	_, err := c.types().ObjectToTyped(want.Unstructured())
	var errs typed.ValidationErrors
	if !errors.As(err, &errs) {
		return nil
	}
	var paths []string
	for _, e := range errs {
		if p := fieldPath(e.Path); p != "" && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	return paths
}

var (
	camelCase = regexp.MustCompile(`^[A-Za-z]{1,64}$`)
	index     = regexp.MustCompile(`\[[^\[\]]*\]`)
	number    = regexp.MustCompile(`^\[\d+\]$`)
	plainPath = regexp.MustCompile(`^[A-Za-z0-9_.\-/\[\]*]{1,256}$`)
)

// word is s when it is one word, which no value hides in; else empty.
func word(s string) string {
	if camelCase.MatchString(s) {
		return s
	}
	return ""
}

// fieldPath is a path without the keys it selects items by, which are values: what stands in brackets and is
// no number becomes a star. It is empty when something odd is left.
func fieldPath(raw string) string {
	p := index.ReplaceAllStringFunc(strings.TrimPrefix(raw, "."), func(key string) string {
		if number.MatchString(key) {
			return key
		}
		return "[*]"
	})
	if p == "<nil>" || !plainPath.MatchString(p) {
		return ""
	}
	return p
}

// failed is a request that failed, without the API server's text.
func failed(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if right, ok := Denied(err); ok {
		return rightless(right, what, err)
	}
	if reason := word(string(apierrors.ReasonForError(err))); reason != "" {
		what += ": " + reason
	} else if code := statusCode(err); code != 0 {
		what += fmt.Sprintf(": status %d", code)
	}
	return fault.New(fault.Cluster, "the cluster failed to %s", what).Because(err)
}

func statusCode(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}

// moved says that an object is not the one that was observed.
func moved(id manifest.ID) error {
	return fault.New(fault.Conflict, "%s was changed, created or deleted by somebody else meanwhile", id)
}
