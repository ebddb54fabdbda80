package portal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/telemetry"
)

const (
	// onceFor is how long a request with an Idempotency-Key is remembered.
	onceFor = 24 * time.Hour
	// onceGrace is the time after the limit of a request in which an attempt has surely ended.
	onceGrace = 10 * time.Second
	// maxKey is the longest Idempotency-Key.
	maxKey = 255
)

// once is a request that has an Idempotency-Key. A nil one is a request without.
type once struct {
	id, attempt, suffix string
	// again tells that an attempt before this one may have written something.
	again bool
	// wrote tells that this one may have.
	wrote bool
}

// onlyOnce runs do, or answers what it answered when the caller sent the same request before.
func onlyOnce[In, Out any](s *Server, c *call, in In, do func(*call, In) (Out, error)) (out Out, err error) {
	key, err := idempotencyKey(c.request.Header)
	if err != nil || key == "" {
		if err != nil {
			return out, err
		}
		return do(c, in)
	}
	o := &once{id: digest(c.caller.key(), key)}
	if o.attempt, err = secretSuffix(s.o.Random); err != nil {
		return out, err
	}
	if o.suffix, err = secretSuffix(s.o.Random); err != nil {
		return out, err
	}
	asked, err := fingerprint(c.request, in)
	if err != nil {
		return out, err
	}
	now := s.now()
	begun, err := s.o.Registry.BeginRequest(c.mustEnd, registry.Request{
		ID: o.id, Fingerprint: asked, Attempt: o.attempt, Suffix: o.suffix,
		At: now, BusyUntil: now.Add(s.o.RequestTimeout + onceGrace), Expires: now.Add(onceFor),
	})
	if err != nil {
		return out, err
	}
	switch begun.Standing {
	case registry.RequestOther:
		return out, fault.New(fault.KeyReused, "the %s was sent before with another request", apitype.HeaderIdempotencyKey).
			WithHint("make a new key for each request, and send it again only with the same one")
	case registry.RequestBusy:
		return out, later(fault.New(fault.InFlight, "the same request is being worked on").WithHint("send it again in a moment"), time.Second)
	case registry.RequestDone:
		if err := json.Unmarshal(begun.Answer, &out); err != nil {
			return out, fmt.Errorf("the answer that is kept cannot be read: %w", err)
		}
		c.header.Set(apitype.HeaderReplayed, "true")
		return out, nil
	case registry.RequestNew, registry.RequestAgain:
	}
	o.again, o.suffix = begun.Standing == registry.RequestAgain, begun.Suffix
	c.once = o
	ended := false
	defer func() {
		if !ended { // a panic: nobody knows how far it came
			s.endRequest(c, o, nil, fault.New(fault.Internal, "panic"))
		}
	}()
	out, err = do(c, in)
	ended = true
	var answer []byte
	if err == nil {
		if answer, err = json.Marshal(out); err != nil {
			return out, err
		}
	}
	s.endRequest(c, o, answer, err)
	return out, err
}

// endRequest keeps what came of an attempt. What cannot be kept is only found out again by the next one.
func (s *Server) endRequest(c *call, o *once, answer []byte, failed error) {
	// The write itself may have used up its time.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.request.Context()), onceGrace/2)
	defer cancel()
	var err error
	switch {
	case failed == nil:
		err = s.o.Registry.AnswerRequest(ctx, o.id, o.attempt, answer)
	case o.again, o.wrote && undecided(failed):
		err = s.o.Registry.LeaveRequest(ctx, o.id, o.attempt)
	default: // nothing was changed: it may be put right under the same key
		err = s.o.Registry.ForgetRequest(ctx, o.id, o.attempt)
	}
	if err != nil {
		s.log.WarnContext(ctx, "the outcome of a request is not kept", telemetry.KeyError, fault.From(err).Error())
	}
}

// undecided tells whether a write that failed may have happened all the same.
func undecided(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Cluster, fault.Internal, fault.Database, fault.Unavailable:
		return true
	default:
		return false
	}
}

// idempotencyKey reads the header; empty without one.
func idempotencyKey(header http.Header) (string, error) {
	given := header.Values(apitype.HeaderIdempotencyKey)
	if len(given) == 0 {
		return "", nil
	}
	key := given[0]
	odd := strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' })
	if len(given) > 1 || key == "" || len(key) > maxKey || odd {
		return "", malformed("%s is not one text of up to %d plain characters", apitype.HeaderIdempotencyKey, maxKey).
			WithHint("a random UUID does well")
	}
	return key, nil
}

// fingerprint stands for what a request asks for: the call, its condition and the body as it is understood. Of secret
// inputs only the paths count, so that no digest of a value is kept.
func fingerprint(r *http.Request, in any) (string, error) {
	switch body := in.(type) {
	case apitype.CreateRequest:
		body.SecretValues = pathsOnly(body.SecretValues)
		in = body
	case apitype.PatchRequest:
		body.SecretValues = pathsOnly(body.SecretValues)
		in = body
	}
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(in); err != nil {
		return "", invalid("the body holds something that JSON cannot hold")
	}
	return digest(r.Method, r.URL.Path, r.URL.Query().Encode(), strings.Join(r.Header.Values("If-Match"), ","), text.String()), nil
}

func pathsOnly(values map[string]string) map[string]string {
	paths := make(map[string]string, len(values))
	for path := range values {
		paths[path] = ""
	}
	return paths
}

// digest is one short text for several, whatever is in them.
func digest(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part) // a hash takes all
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// secretSuffix is the end of the name of the Secret that the request makes: the same in each attempt.
func (o *once) secretSuffix(random io.Reader) (string, error) {
	if o == nil {
		return secretSuffix(random)
	}
	return o.suffix, nil
}

// writes notes that something may be written from here on.
func (o *once) writes() {
	if o != nil {
		o.wrote = true
	}
}

// sameSecret is the outcome of creating the request's Secret: one that is there already is that of an attempt before, for
// nobody else knows its name.
func (o *once) sameSecret(err error) error {
	if o != nil && apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// mark notes on the resource which request makes its next generation, with the write itself.
func (o *once) mark(r *resource) {
	annotations := r.object.GetAnnotations()
	if o == nil {
		if _, there := annotations[v1alpha1.AnnotationRequest]; !there {
			return
		}
		delete(annotations, v1alpha1.AnnotationRequest) // the resource is no longer as that request left it
		r.object.SetAnnotations(annotations)
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationRequest] = o.id + "." + strconv.FormatInt(r.object.GetGeneration()+1, 10)
	r.object.SetAnnotations(annotations)
}

// written is the answer of an attempt before this one, if it got as far as the resource; else nil.
func (s *Server) written(ctx context.Context, w write) (*apitype.WriteAnswer, error) {
	if w.once == nil || !w.once.again {
		return nil, nil
	}
	r, err := s.read(ctx, w.name)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	id, generation, _ := strings.Cut(r.object.GetAnnotations()[v1alpha1.AnnotationRequest], ".")
	made, _ := strconv.ParseInt(generation, 10, 64) // 0 where somebody else wrote there
	if id != w.once.id || made == 0 {
		return nil, nil
	}
	answer, err := writeAnswer(r)
	answer.Generation = made
	return &answer, err
}
