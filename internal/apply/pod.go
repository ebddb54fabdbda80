package apply

import (
	"reflect"
)

// podDefaults sets what the contract (§3) promises for pods that leave it unset, and nothing else. Where
// Kubernetes has a setting on the pod and on the container, the default goes on the pod, so that either
// level of the chart's own wins.
func podDefaults(spec map[string]any) {
	setDefault(spec, "automountServiceAccountToken", false)
	security := child(spec, "securityContext")
	setDefault(security, "runAsNonRoot", true)
	setDefault(security, "seccompProfile", map[string]any{"type": "RuntimeDefault"})

	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range mapItems(spec[list]) {
			security := child(c, "securityContext")
			setDefault(security, "allowPrivilegeEscalation", false)
			capabilities := child(security, "capabilities")
			// An empty list drops nothing: it is not a setting.
			if drop, ok := capabilities["drop"].([]any); ok && len(drop) == 0 {
				delete(capabilities, "drop")
			}
			setDefault(capabilities, "drop", []any{"ALL"})

			lastOfEach(c, "env", "name")
			withoutRepeats(c, "ports")
		}
	}
	withoutRepeats(spec, "imagePullSecrets")
}

func setDefault(tree map[string]any, key string, value any) {
	if _, ok := tree[key]; !ok {
		tree[key] = value
	}
}

// lastOfEach keeps the last of the list's items with the same key, where it stands.
func lastOfEach(tree map[string]any, list, key string) {
	items, ok := tree[list].([]any)
	if !ok {
		return
	}
	last := map[string]int{}
	for i, item := range items {
		if name, ok := keyOf(item, key); ok {
			last[name] = i
		}
	}
	kept := make([]any, 0, len(items))
	for i, item := range items {
		if name, ok := keyOf(item, key); !ok || last[name] == i {
			kept = append(kept, item)
		}
	}
	tree[list] = kept
}

func keyOf(item any, key string) (string, bool) {
	m, _ := item.(map[string]any)
	name, ok := m[key].(string)
	return name, ok
}

// withoutRepeats drops items that say the same as an earlier one. Server-side apply refuses them; items with
// the same key that say different things are for it to refuse.
func withoutRepeats(tree map[string]any, list string) {
	items, ok := tree[list].([]any)
	if !ok {
		return
	}
	kept := make([]any, 0, len(items))
next:
	for _, item := range items {
		for _, k := range kept {
			if reflect.DeepEqual(item, k) {
				continue next
			}
		}
		kept = append(kept, item)
	}
	tree[list] = kept
}

// mapItems are the items of a list that are maps.
func mapItems(list any) []map[string]any {
	items, _ := list.([]any)
	out := make([]map[string]any, 0, len(items))
	for _, i := range items {
		if m, ok := i.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
