package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/telemetry"
)

const canary = "c4n4ry-value"

// line is the one line that was written, without its time.
func line(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	delete(out, "time")
	return out
}

func TestErrorsOfTheAPIServerAreToldWithoutItsWords(t *testing.T) {
	t.Parallel()
	addons := schema.GroupKind{Group: "zaentrum.io", Kind: "ZaentrumAddon"}
	invalid := apierrors.NewInvalid(addons, "example", field.ErrorList{
		field.Invalid(field.NewPath("status", "plan", "objects").Index(3).Child("name"), canary, canary),
		field.Invalid(field.NewPath("metadata", "labels").Key(canary), canary, canary),
	})
	pods := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"an object that is not valid": {invalid, "the API server answered Invalid about ZaentrumAddon.zaentrum.io example: status.plan.objects[].name, metadata.labels[]"},
		"wrapped":                     {fmt.Errorf("status: %w", invalid), "status: the API server answered Invalid about ZaentrumAddon.zaentrum.io example: status.plan.objects[].name, metadata.labels[]"},
		"in the middle of a text":     {fmt.Errorf("status: %w: after", invalid), "the API server answered Invalid about ZaentrumAddon.zaentrum.io example: status.plan.objects[].name, metadata.labels[]"},
		"admission that quotes":       {apierrors.NewForbidden(pods, canary, errors.New("exceeded quota, requested "+canary)), "the API server answered Forbidden about deployments.apps"},
		"a right that is missing": {apierrors.NewForbidden(pods, "x", errors.New(`User "system:serviceaccount:a:b" cannot patch resource "deployments" in API group "apps" in the namespace "zaentrum"`)),
			"the API server answered Forbidden: no right to patch deployments.apps in namespace zaentrum"},
		"one that is ours, because of one of theirs": {fault.New(fault.Cluster, "the cluster failed to list").Because(invalid), "the cluster failed to list"},
		"any other": {errors.New("disk full"), "disk full"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			telemetry.NewLog(&out, false).With("before", tc.err).Error("failed", telemetry.KeyError, tc.err)
			want := map[string]any{"level": "ERROR", "msg": "failed", "before": tc.want, "error": tc.want}
			if d := cmp.Diff(want, line(t, out.String())); d != "" {
				t.Error(d)
			}
			if strings.Contains(out.String(), canary) {
				t.Errorf("a value shows: %s", out.String())
			}
		})
	}
}

func TestLinesOfLibrariesLookLikeOurs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := logr.FromSlogHandler(telemetry.NewLog(&out, true).Handler())
	logger.WithName("reflector").V(2).Info("noise", "a", 1)
	if d := cmp.Diff(map[string]any{"level": "DEBUG", "msg": "noise", "logger": "reflector", "a": 1.0}, line(t, out.String())); d != "" {
		t.Error(d)
	}
	out.Reset()
	logger.WithValues("addon", "example").Error(errors.New("away"), "Reconciler error")
	if d := cmp.Diff(map[string]any{"level": "ERROR", "msg": "Reconciler error", "addon": "example", "error": "away"}, line(t, out.String())); d != "" {
		t.Error(d)
	}
	out.Reset()
	quiet := telemetry.NewLog(&out, false)
	logr.FromSlogHandler(quiet.Handler()).V(1).Info("noise")
	quiet.Debug("noise")
	quiet.WithGroup("g").Log(t.Context(), slog.LevelInfo-1, "noise")
	if out.Len() > 0 {
		t.Errorf("without debug there is %s", &out)
	}
}
