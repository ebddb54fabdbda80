package operator

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAStatusTellsOfAsManySecretsAsItMay(t *testing.T) {
	t.Parallel()
	var list []unstructured.Unstructured
	for i := range 100 {
		keys := map[string]any{}
		for k := range 20 {
			keys[fmt.Sprintf("k%02d", k)] = "eA=="
		}
		u := unstructured.Unstructured{Object: map[string]any{"data": keys}}
		u.SetName(fmt.Sprintf("zaentrum-addon-example-values-%03d", i))
		u.SetCreationTimestamp(metav1.NewTime(time.Unix(int64(i), 0)))
		list = append(list, u)
	}
	got := tellSecrets(list, "example")
	keys := 0
	for _, s := range got {
		keys += len(s.Keys)
	}
	if len(got) != 32 || got[0].Name != "zaentrum-addon-example-values-068" || got[31].Name != "zaentrum-addon-example-values-099" || keys != 256 || len(got[31].Keys) != 20 {
		t.Errorf("%d Secrets from %s with %d keys", len(got), got[0].Name, keys)
	}
}
