package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// lastApplied is where kubectl's client-side apply keeps a copy of what it was given: of a Secret, with its data.
const lastApplied = corev1.LastAppliedConfigAnnotation

// Compact makes unstructured objects small enough to be kept in a cache by the thousand, for a Cluster to read them
// there: the fields that each manager holds become a text, which takes a fifth of the memory that they take as a
// tree; of a Secret's data there are digests, which tell what differs, unless its name starts with keep; and kubectl's
// copy of the object is left out. It is for a cache to transform with: it changes an object and answers with it,
// leaves what is none as it is, and never fails.
func Compact(keep string) func(any) (any, error) {
	return func(o any) (any, error) {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return o, nil
		}
		// What is in a cache already comes by again, and must not be written to.
		metadata := asMap(u.Object["metadata"])
		if annotations := asMap(metadata["annotations"]); annotations[lastApplied] != nil {
			delete(annotations, lastApplied)
		}
		if isSecret(u.Object) && !strings.HasPrefix(u.GetName(), keep) && !digested(u.Object) {
			u.Object["data"] = digests(u.Object)
		}
		list, _ := metadata["managedFields"].([]any)
		for _, e := range list {
			entry := asMap(e)
			if asMap(entry["fieldsV1"]) == nil {
				continue
			}
			if text, ok := fieldsText(entry); ok {
				entry["fieldsV1"] = text
			}
		}
		return o, nil
	}
}

// digestMark starts a digest. No data starts so: it is base64.
const digestMark = "sha256:"

// digests are a Secret's data with each value as a digest, from its data or from such digests. What is no data is as it
// is. They are nil for none.
func digests(secret map[string]any) any {
	data := asMap(secret["data"])
	if data == nil {
		return secret["data"]
	}
	out := make(map[string]any, len(data))
	for key, value := range data {
		out[key] = value
		if text, ok := value.(string); ok && !strings.HasPrefix(text, digestMark) {
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
				sum := sha256.Sum256(plain)
				out[key] = digestMark + base64.StdEncoding.EncodeToString(sum[:])
			}
		}
	}
	return out
}

// digested tells whether there is nothing left to make a digest of.
func digested(secret map[string]any) bool {
	for _, value := range asMap(secret["data"]) {
		if text, ok := value.(string); ok && !strings.HasPrefix(text, digestMark) {
			return false
		}
	}
	return true
}

// entry is what one manager holds of an object by one kind of write.
type entry struct {
	manager, operation, apiVersion, subresource string

	time   string // RFC 3339 in UTC; may be empty
	fields string // JSON; may be empty
}

// appliedBy tells whether the entry is of a manager's applies.
func (e entry) appliedBy(manager string) bool {
	return e.manager == manager && e.operation == string(metav1.ManagedFieldsOperationApply) && e.subresource == ""
}

// set is what the entry holds; false when that cannot be told.
func (e entry) set() (*fieldpath.Set, bool) {
	set := &fieldpath.Set{}
	return set, e.fields != "" && set.FromJSON(strings.NewReader(e.fields)) == nil
}

// entries are what the managers hold of an object, compacted or not.
func entries(u *unstructured.Unstructured) []entry {
	list, _ := asMap(u.Object["metadata"])["managedFields"].([]any)
	out := make([]entry, 0, len(list))
	for _, e := range list {
		m := asMap(e)
		text := func(key string) string {
			s, _ := m[key].(string)
			return s
		}
		fields, _ := fieldsText(m)
		out = append(out, entry{text("manager"), text("operation"), text("apiVersion"), text("subresource"), text("time"), fields})
	}
	return out
}

// fieldsText is an entry's fields as JSON, always the same for the same fields.
func fieldsText(entry map[string]any) (string, bool) {
	switch fields := entry["fieldsV1"].(type) {
	case string:
		return fields, true
	case map[string]any:
		text, err := json.Marshal(fields) // in the order of keys
		return string(text), err == nil
	default:
		return "", false
	}
}
