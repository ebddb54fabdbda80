package apply

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// lastApplied is where kubectl's client-side apply keeps a copy of what it was given: of a Secret, with its data.
const lastApplied = corev1.LastAppliedConfigAnnotation

// Compact makes an unstructured object small enough to be kept in a cache by the thousand, for a Cluster to read it
// there: the fields that each manager holds become a text, which takes a fifth of the memory that they take as a
// tree, and kubectl's copy of the object is left out. It changes the object and answers with it, and leaves what is
// none as it is; it is for a cache to transform with, and never fails.
func Compact(o any) (any, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	metadata := asMap(u.Object["metadata"])
	// What is in a cache already comes by again, and must not be written to.
	if annotations := asMap(metadata["annotations"]); annotations[lastApplied] != nil {
		delete(annotations, lastApplied)
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
