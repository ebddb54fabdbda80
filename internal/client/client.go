// Package client is the Go client of portal-api: typed calls, and faults with the codes the server gave.
//
// It sends a write again only when its answer was lost, under a key with which it happens once, follows no redirect, reads no more than it has
// bounds for, and waits no longer than its time-out. Whatever does not answer in portal-api's language
// (HTML, a login page, a captive portal, silence) is fault.Unreachable, so a script can tell "refused"
// from "undetermined". It must never put a bearer into an error, nor follow a server elsewhere with it.
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/trace"
)

const (
	// DefaultTimeout bounds one call, its answer's body included.
	DefaultTimeout = 30 * time.Second

	// DefaultPoll is the pause between two readings of an addon where a server has no event stream.
	DefaultPoll = 2 * time.Second
	// DefaultSilence is three heartbeats of a server.
	DefaultSilence = 45 * time.Second

	maxAnswer  = 8 << 20   // a status may hold 512 KiB, a list many of them
	maxProblem = 256 << 10 // an error's body
	maxText    = 4 << 10   // one text taken out of an error's body
)

// Options make a Client. Instance is required.
type Options struct {
	// Instance is the public address of the platform; see ParseInstance.
	Instance Instance
	// Bearer gives the token of a call; nil sends none. Its errors are returned as they are.
	Bearer func(context.Context) (string, error)
	// Transport defaults to one of the client's own.
	Transport http.RoundTripper
	// NewKey makes the key of a write, a new one each time; random text when nil.
	NewKey func() string
	// Timeout of one call; DefaultTimeout when zero.
	Timeout time.Duration
	// Poll is the pause between two readings where a server has no event stream; DefaultPoll when zero.
	Poll time.Duration
	// Silence is how long a stream of events may say nothing before it is given up; DefaultSilence when zero.
	Silence time.Duration
	// UserAgent names the caller.
	UserAgent string
	// Debug is told of each call: its request line, status, time and trace, never another header or body.
	Debug func(line string)
	// Trace is a place in the trace that a call is part of; nil sends none.
	Trace func() trace.Context
}

// Client calls one instance. It is safe for concurrent use.
type Client struct {
	o    Options
	http *http.Client
}

// New makes a client. It sends nothing.
func New(o Options) *Client {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.NewKey == nil {
		o.NewKey = rand.Text
	}
	if o.Poll <= 0 {
		o.Poll = DefaultPoll
	}
	if o.Silence <= 0 {
		o.Silence = DefaultSilence
	}
	if o.Transport == nil {
		o.Transport = NewTransport()
	}
	return &Client{o: o, http: &http.Client{
		Transport: o.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}
}

// NewTransport is the transport a client has unless it is given one: the proxy of the environment, and bounds.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           4,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Answer is a document of the API: read into its type, and as it was sent.
type Answer[T any] struct {
	Doc T
	// Raw is the JSON as the server sent it, fields that this client does not know included.
	Raw json.RawMessage
	// ETag names the plan in the document; empty when the server sent none.
	ETag string
}

// Availability tells whether the instance manages chart addons.
func (c *Client) Availability(ctx context.Context) (*Answer[apitype.Availability], error) {
	return call[apitype.Availability](ctx, c, request{method: http.MethodGet, path: apitype.PathAddonCharts})
}

// Create creates the addon, or updates the one of that name, suspended.
func (c *Client) Create(ctx context.Context, body apitype.CreateRequest) (*Answer[apitype.WriteAnswer], error) {
	return call[apitype.WriteAnswer](ctx, c, request{method: http.MethodPost, path: apitype.PathAddonCharts, body: body})
}

// Get reads one chart addon.
func (c *Client) Get(ctx context.Context, name string) (*Answer[apitype.AddonChart], error) {
	return call[apitype.AddonChart](ctx, c, request{method: http.MethodGet, path: addonPath(name)})
}

// ValuesSecrets lists the addon's values Secrets, without what is in them.
func (c *Client) ValuesSecrets(ctx context.Context, name string) (*Answer[apitype.ValuesSecrets], error) {
	return call[apitype.ValuesSecrets](ctx, c, request{method: http.MethodGet, path: addonPath(name) + "/values-secrets"})
}

// Install clears suspend, so that the current plan is applied. With the ETag that a plan was read with it is that
// plan or none: fault.Conflict says that there is another one. An empty ETag is whatever plan is current.
func (c *Client) Install(ctx context.Context, name, etag string) (*Answer[apitype.WriteAnswer], error) {
	return call[apitype.WriteAnswer](ctx, c, request{method: http.MethodPost, path: addonPath(name) + "/install", ifMatch: etag})
}

// Patch changes what the body names and leaves the rest.
func (c *Client) Patch(ctx context.Context, name string, body apitype.PatchRequest) (*Answer[apitype.WriteAnswer], error) {
	return call[apitype.WriteAnswer](ctx, c, request{method: http.MethodPatch, path: addonPath(name), body: body})
}

// Delete deletes the addon and its registry rows.
func (c *Client) Delete(ctx context.Context, name string, keepValues bool) (*Answer[apitype.DeleteAnswer], error) {
	query := url.Values{"keepValues": {fmt.Sprint(keepValues)}}
	return call[apitype.DeleteAnswer](ctx, c, request{method: http.MethodDelete, path: addonPath(name), query: query})
}

// List reads all addons, from charts and from addresses.
func (c *Client) List(ctx context.Context) (*Answer[apitype.Addons], error) {
	return call[apitype.Addons](ctx, c, request{method: http.MethodGet, path: apitype.PathAddons})
}

// Discovery reads where to sign in. It sends no bearer.
func (c *Client) Discovery(ctx context.Context) (*Answer[apitype.Discovery], error) {
	return call[apitype.Discovery](ctx, c, request{method: http.MethodGet, path: apitype.PathDiscovery, anonymous: true})
}

func addonPath(name string) string { return apitype.PathAddonCharts + "/" + url.PathEscape(name) }

type request struct {
	method, path string
	query        url.Values
	body         any
	// key names the write; see once.
	key       string
	anonymous bool
	ifMatch   string
	// accept is what the answer may be beside a problem; JSON when empty.
	accept string
	// lastEvent is the id of the last event of the stream that this one goes on from.
	lastEvent string
}

// call sends r once and reads the answer into T.
func call[T any](ctx context.Context, c *Client, r request) (*Answer[T], error) {
	raw, header, err := c.once(ctx, r)
	if err != nil {
		return nil, err
	}
	a := &Answer[T]{Raw: raw, ETag: strongTag(header.Get("ETag"))}
	if err := decode(raw, &a.Doc); err != nil {
		return nil, c.foreign("answered %s %s with JSON of another shape", r.method, r.path).Because(err)
	}
	return a, nil
}

func decode(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // an integer in values must come back as it was
	return dec.Decode(into)
}

// strongTag is an ETag as If-Match takes it. A proxy that compresses answers makes the tag weak, because the bytes
// are others; the plan that it names is the same. What a header cannot hold is none.
func strongTag(tag string) string {
	tag = strings.TrimPrefix(tag, "W/")
	if len(tag) < 2 || len(tag) > 200 || tag[0] != '"' || tag[len(tag)-1] != '"' || !sendable(tag) || strings.Contains(tag[1:len(tag)-1], `"`) {
		return ""
	}
	return tag
}

func (c *Client) send(ctx context.Context, r request) (json.RawMessage, http.Header, error) {
	limited, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	req, bearer, err := c.prepare(ctx, limited, r)
	if err != nil {
		return nil, nil, err
	}
	start := time.Now()
	res, err := c.http.Do(req)
	if err != nil {
		c.debug(req, "no answer", start)
		return nil, nil, lostAnswer(err, c.broken(ctx, err))
	}
	defer func() { _ = res.Body.Close() }()
	c.debug(req, fmt.Sprint(res.StatusCode), start)
	raw, err := c.read(r, res)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if fault.CodeOf(err) == fault.Unreachable && (res.StatusCode >= 500 || res.StatusCode < 300 && mediaType(res) == "application/json") {
			return nil, nil, &lost{withoutToken(err, bearer)} // a gateway's word, or half of an answer
		}
		return nil, nil, withoutToken(err, bearer)
	}
	return raw, res.Header, nil
}

// prepare makes a request that ends with limited; the bearer is asked for within ctx.
func (c *Client) prepare(ctx, limited context.Context, r request) (_ *http.Request, bearer string, err error) {
	if c.o.Bearer != nil && !r.anonymous {
		if bearer, err = c.o.Bearer(ctx); err != nil {
			return nil, "", err
		}
		if !sendable(bearer) {
			return nil, "", fault.New(fault.NoBearer, "the bearer token holds characters that no token has").
				WithHint("set ZAE_TOKEN to the token alone, without \"Bearer\", quotes or line breaks")
		}
	}
	req, err := c.build(limited, r, bearer)
	if err != nil {
		return nil, "", err
	}
	if c.o.Trace != nil {
		if here := c.o.Trace(); here.Valid() {
			req.Header.Set(trace.HeaderParent, here.String())
		}
	}
	return req, bearer, nil
}

func (c *Client) build(ctx context.Context, r request, bearer string) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			// The error's text may quote a value.
			return nil, fault.New(fault.Internal, "the request for %s %s cannot be written as JSON", r.method, r.path).Because(err)
		}
		body = bytes.NewReader(text)
	}
	target := c.o.Instance.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, fault.New(fault.Internal, "no request can be made for %s %s", r.method, r.path).Because(err)
	}
	req.Header.Set("Accept", firstOf(r.accept, "application/json")+", "+apitype.ProblemType)
	if r.lastEvent != "" {
		req.Header.Set("Last-Event-ID", r.lastEvent)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	if r.key != "" {
		req.Header.Set(apitype.HeaderIdempotencyKey, r.key)
	}
	if r.ifMatch != "" {
		req.Header.Set("If-Match", r.ifMatch)
	}
	if c.o.UserAgent != "" {
		req.Header.Set("User-Agent", c.o.UserAgent)
	}
	return req, nil
}

// read takes the body of an answer: the JSON of a success, or the fault of anything else.
func (c *Client) read(r request, res *http.Response) (json.RawMessage, error) {
	what := r.method + " " + r.path
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		to := "elsewhere"
		if u, err := res.Location(); err == nil && u.Host != "" {
			to = u.Scheme + "://" + u.Host
		}
		return nil, c.foreign("answered %s with a redirect to %s, which is not followed", what, to).
			WithHint("give the address the platform itself is served at with --url")
	case res.StatusCode >= 400:
		return nil, c.problem(what, res)
	case res.StatusCode < 200:
		return nil, c.foreign("answered %s with status %d", what, res.StatusCode)
	}
	kind := mediaType(res)
	if kind != "application/json" {
		return nil, c.foreign("answered %s with %s instead of JSON", what, kindText(kind))
	}
	raw, err := c.bounded(what, res.Body, maxAnswer)
	if err != nil {
		return nil, err
	}
	if !json.Valid(raw) {
		return nil, c.foreign("answered %s with text that is not JSON", what)
	}
	return raw, nil
}

// bounded reads a whole body, and gives up where it grows over limit bytes.
func (c *Client) bounded(what string, body io.Reader, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, c.foreign("did not finish its answer to %s within %s", what, c.o.Timeout).Because(err)
		}
		return nil, c.foreign("broke off its answer to %s", what).Because(err)
	}
	if int64(len(raw)) > limit {
		return nil, c.foreign("answered %s with more than %d KiB", what, limit>>10)
	}
	return raw, nil
}

// traceID is what a server's log has a request under: what it may be, and no other text of a server's.
var traceID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// problem is the fault of an answer with an error status.
func (c *Client) problem(what string, res *http.Response) error {
	kind := mediaType(res)
	if kind != apitype.ProblemType && kind != "application/json" {
		return c.foreign("answered %s with status %d and %s, not as portal-api does", what, res.StatusCode, kindText(kind)).
			WithHint("check that --url is the address of a zaentrum platform")
	}
	raw, err := c.bounded(what, res.Body, maxProblem)
	if err != nil {
		return err
	}
	var p apitype.Problem
	if json.Unmarshal(raw, &p) != nil {
		return c.foreign("answered %s with status %d and text that is not JSON", what, res.StatusCode)
	}
	code := codeOf(p.Code, res.StatusCode)
	text := firstOf(p.Detail, p.Note, p.Title, strings.ToLower(http.StatusText(res.StatusCode)), fmt.Sprintf("status %d", res.StatusCode))
	f := fault.New(code, "%s", shorten(text))
	if p.Hint != "" {
		f = f.WithHint("%s", shorten(p.Hint))
	}
	if traceID.MatchString(p.Trace) {
		f = f.WithTrace(p.Trace)
	}
	return f
}

// broken is the fault of a call without an answer.
func (c *Client) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil { // the caller's own deadline, or an interruption with its cause
		return context.Cause(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return c.foreign("did not answer within %s", c.o.Timeout).Because(err)
	}
	why := err
	var ue *url.Error
	if errors.As(err, &ue) { // its own text repeats method and address
		why = ue.Err
	}
	return fault.New(fault.Unreachable, "%s cannot be reached: %s", c.o.Instance, shorten(why.Error())).Because(err)
}

func (c *Client) foreign(format string, args ...any) *fault.Fault {
	return fault.New(fault.Unreachable, "%s %s", c.o.Instance, fmt.Sprintf(format, args...))
}

func (c *Client) debug(req *http.Request, status string, start time.Time) {
	if c.o.Debug != nil {
		line := fmt.Sprintf("%s %s %s %s", req.Method, req.URL.RequestURI(), status, time.Since(start).Round(time.Millisecond))
		if here, ok := trace.Parse(req.Header.Get(trace.HeaderParent)); ok {
			line += " trace " + here.ID()
		}
		c.o.Debug(line)
	}
}

// local are codes about the command line and the person in front of it. A server that sends one is
// taken by its status: it has no say about exit 2 or 130.
var local = map[fault.Code]bool{
	fault.Usage: true, fault.Declined: true, fault.Interrupted: true, fault.Terminated: true, fault.Unreachable: true,
}

// byStatus is what a status means when the problem has no code that this client knows.
var byStatus = map[int]fault.Code{
	http.StatusUnauthorized:          fault.NoBearer,
	http.StatusForbidden:             fault.Forbidden,
	http.StatusNotFound:              fault.NotFound,
	http.StatusConflict:              fault.Conflict,
	http.StatusRequestEntityTooLarge: fault.TooLarge,
	http.StatusUnsupportedMediaType:  fault.NotJSON,
	http.StatusUnprocessableEntity:   fault.Refused,
	http.StatusTooManyRequests:       fault.RateLimited,
	http.StatusBadGateway:            fault.Cluster,
	http.StatusServiceUnavailable:    fault.Unavailable,
	http.StatusGatewayTimeout:        fault.Cluster,
}

func codeOf(code string, status int) fault.Code {
	for _, known := range fault.Codes() {
		if string(known) == code && !local[known] {
			return known
		}
	}
	if c, ok := byStatus[status]; ok {
		return c
	}
	if status >= 500 {
		return fault.Internal
	}
	return fault.Invalid
}

// withoutToken makes sure that a server that echoes the bearer does not get it printed.
func withoutToken(err error, bearer string) error {
	f := fault.From(err)
	if bearer == "" || !strings.Contains(f.Message+f.Hint, bearer) {
		return err
	}
	g := *f
	g.Message = strings.ReplaceAll(f.Message, bearer, "[bearer]")
	g.Hint = strings.ReplaceAll(f.Hint, bearer, "[bearer]")
	return &g
}

// sendable tells whether a token can stand in a header; an empty one cannot.
func sendable(token string) bool {
	if token == "" {
		return false
	}
	for i := range len(token) {
		if token[i] <= ' ' || token[i] >= 0x7f {
			return false
		}
	}
	return true
}

func mediaType(res *http.Response) string {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

func kindText(kind string) string {
	if kind == "" {
		return "an unknown kind of document"
	}
	return shorten(kind)
}

func shorten(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return t
		}
	}
	return ""
}
