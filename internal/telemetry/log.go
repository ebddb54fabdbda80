package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
)

// Keys of log lines that several parts write; docs/operating.md lists all.
const (
	KeyAddon      = "addon"
	KeyNamespace  = "namespace"
	KeyGeneration = "generation"
	KeyTrace      = "trace"
	KeyError      = "error"
)

// NewLog writes one JSON object per line. It takes what the libraries log too: their errors get our key, and errors of the
// API server are told without its words, which quote values.
func NewLog(w io.Writer, debug bool) *slog.Logger {
	level := slog.LevelInfo
	if debug {
		level = slog.LevelDebug
	}
	return slog.New(&handler{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: plainLevel})})
}

// plainLevel names the levels between ours, which the libraries have, as the one of ours below.
func plainLevel(groups []string, a slog.Attr) slog.Attr {
	if level, ok := a.Value.Any().(slog.Level); ok && len(groups) == 0 && a.Key == slog.LevelKey && level < slog.LevelInfo {
		return slog.String(slog.LevelKey, slog.LevelDebug.String())
	}
	return a
}

// handler makes lines fit to be shown.
type handler struct{ slog.Handler }

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	id, has := "", false
	r.Attrs(func(a slog.Attr) bool {
		has = has || a.Key == KeyTrace
		if t, ok := errors.AsType[*traced](errorOf(a)); ok {
			id = t.id
		}
		out.AddAttrs(fit(a))
		return true
	})
	if id != "" && !has {
		out.AddAttrs(slog.String(KeyTrace, id))
	}
	return h.Handler.Handle(ctx, out)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	fitted := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		fitted[i] = fit(a)
	}
	return &handler{h.Handler.WithAttrs(fitted)}
}

func (h *handler) WithGroup(name string) slog.Handler { return &handler{h.Handler.WithGroup(name)} }

func errorOf(a slog.Attr) error {
	err, _ := a.Value.Resolve().Any().(error)
	return err
}

// fit tells an error as a text of ours.
func fit(a slog.Attr) slog.Attr {
	err := errorOf(a)
	if err == nil {
		return a
	}
	if a.Key == "err" {
		a.Key = KeyError
	}
	a.Value = slog.StringValue(ErrorText(err))
	return a
}

// ErrorText is the text of an error, without the words of the API server: of its answers it has the reason, the object and
// the names of fields, or the right that is missing.
func ErrorText(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	all, theirs := err.Error(), ""
	if e, ok := status.(error); ok {
		theirs = e.Error()
	}
	ours, found := strings.CutSuffix(all, theirs)
	if !found || theirs == "" {
		if !strings.Contains(all, theirs) || theirs == "" {
			return all // a fault of ours, which has it as its cause
		}
		ours = ""
	}
	return ours + answer(err, status)
}

func answer(err error, status apierrors.APIStatus) string {
	s := status.Status()
	said := "the API server answered " + wordOf(string(s.Reason), fmt.Sprint(s.Code))
	if right, ok := apply.Denied(err); ok {
		return said + ": no right to " + right.String()
	}
	if s.Details == nil {
		return said
	}
	if s.Details.Kind != "" {
		said += " about " + wordOf(apply.ResourceName(s.Details.Group, s.Details.Kind), "an object")
	}
	if s.Details.Group == v1alpha1.GroupVersion.Group { // other objects are charts', and named as they like
		said += " " + wordOf(s.Details.Name, "")
	}
	var fields []string
	for _, c := range s.Details.Causes {
		if f := strings.Map(notKey(), c.Field); c.Field != "" {
			fields = append(fields, wordOf(f, "a field"))
		}
	}
	if len(fields) > 0 {
		said += ": " + strings.Join(fields, ", ")
	}
	return strings.TrimSpace(said)
}

// plainWord is a name or a path, which no value hides in.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./\[\]-]{1,256}$`)

func wordOf(s, otherwise string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return otherwise
}

// notKey drops what stands in brackets: the keys of a map or of a list's items may be anything.
func notKey() func(rune) rune {
	inside := false
	return func(r rune) rune {
		switch {
		case r == ']':
			inside = false
		case inside:
			return -1
		case r == '[':
			inside = true
		}
		return r
	}
}
