package portal_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
)

func TestValuesSecretsAreListedWithoutTheirData(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := chartPath("example") + "/values-secrets"
	b.problem(b.do(http.MethodGet, path, nil), http.StatusNotFound, "not-found")
	b.answer(http.MethodPost, apitype.PathAddonCharts, apitype.CreateRequest{
		Chart: exampleRef, Version: "1.2.0", SecretValues: map[string]string{"database.url": canary, "api.token": canary},
		SecretRefs: map[string]apitype.SecretRef{"smtp.password": {Name: "zaentrum-addon-example-old", Key: "smtp"}},
	}, http.StatusAccepted, &apitype.WriteAnswer{})
	made := b.secrets()[0].Name
	list := func() []apitype.ValuesSecret {
		t.Helper()
		var got apitype.ValuesSecrets
		b.answer(http.MethodGet, path, nil, http.StatusOK, &got)
		if got.Name != "example" {
			t.Errorf("name %s", got.Name)
		}
		return got.Secrets
	}
	old := apitype.ValuesSecret{Name: "zaentrum-addon-example-old", Keys: []string{"smtp"}, Referenced: []string{"smtp.password"}}
	mine := apitype.ValuesSecret{Name: made, Keys: []string{"api.token", "database.url"}, Referenced: []string{"api.token", "database.url"}}
	if diff := cmp.Diff([]apitype.ValuesSecret{old, mine}, list()); diff != "" {
		t.Errorf("before the operator has seen them:\n%s", diff)
	}
	at := metav1.NewTime(time.Date(2031, 5, 4, 12, 0, 0, 0, time.UTC))
	b.operate("example", func(a *v1alpha1.ZaentrumAddon) {
		planned(a)
		a.Status.ValuesSecrets = []v1alpha1.ValuesSecret{
			{Name: "zaentrum-addon-example-generated", Keys: []string{"config.key"}, CreatedAt: at, Kept: true, Generated: true},
			{Name: "zaentrum-addon-example-old", Keys: []string{"imap", "smtp"}, CreatedAt: at, Kept: true},
			{Name: made, Keys: []string{"api.token", "database.url"}, CreatedAt: at},
		}
	})
	old.Keys, old.Kept, old.Seen, old.CreatedAt = []string{"imap", "smtp"}, true, true, &at
	mine.Seen, mine.CreatedAt = true, &at
	generated := apitype.ValuesSecret{
		Name: "zaentrum-addon-example-generated", Keys: []string{"config.key"}, CreatedAt: &at, Kept: true, Generated: true, Referenced: []string{}, Seen: true,
	}
	want := []apitype.ValuesSecret{generated, old, mine}
	if diff := cmp.Diff(want, list(), cmp.Comparer(func(a, b *metav1.Time) bool { return a.Equal(b) })); diff != "" {
		t.Errorf("when it has:\n%s", diff)
	}
}
