package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/manifest"
)

const (
	hookAnnotation = "helm.sh/hook"
	notesSuffix    = "NOTES.txt"
)

// objects reads what the templates rendered: text by file, named as the engine names templates.
func objects(ctx context.Context, chartName string, files map[string]string) (manifest.Set, []string) {
	set := manifest.Set{}
	var errs []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if ctx.Err() != nil {
			return nil, []string{givenUp(ctx)}
		}
		if strings.HasSuffix(name, notesSuffix) || strings.TrimSpace(files[name]) == "" {
			continue
		}
		source := strings.TrimPrefix(name, chartName+"/")
		docs, err := manifest.Decode([]byte(files[name]))
		if err != nil { // a place, without text
			errs = append(errs, printable(source)+": "+inOutput(err))
			continue
		}
		for _, doc := range docs {
			if set, err = appendObjects(set, source, doc); err != nil {
				errs = append(errs, printable(source)+": "+err.Error())
				break
			}
		}
	}
	if len(errs) > 0 {
		slices.Sort(errs)
		return nil, errs
	}
	return set, nil
}

// inOutput says of a place in the rendered text that it is one, since the template's own lines are others.
func inOutput(err error) string {
	var d *manifest.DecodeError
	if errors.As(err, &d) && d.Line > 0 {
		return fmt.Sprintf("line %d of its output: %s", d.Line, d.What)
	}
	return err.Error()
}

// notAnObject is a rendered document that cannot be one.
type notAnObject string

func (e notAnObject) Error() string { return string(e) }

// onlyItems refuses a List that says anything else, which would be lost. What a cluster writes, without meaning, is fine.
func onlyItems(tree map[string]any) error {
	if v := tree["apiVersion"]; v != nil && v != "v1" {
		return notAnObject("a List (apiVersion) that is not of v1")
	}
	for _, k := range slices.Sorted(maps.Keys(tree)) {
		switch v := tree[k].(type) {
		case nil:
		case map[string]any:
			if k != "metadata" {
				return notAnObject("a List with a field besides items, which counts for nothing")
			}
			for _, item := range v {
				if item != nil && item != "" {
					return notAnObject("a List with metadata of its own, which counts for nothing (metadata)")
				}
			}
		default:
			if k != "apiVersion" && k != "kind" && k != "items" {
				return notAnObject("a List with a field besides items, which counts for nothing")
			}
		}
	}
	return nil
}

// appendObjects appends the object that doc is, or those of the list that it is.
func appendObjects(set manifest.Set, source string, doc any) (manifest.Set, error) {
	tree, ok := doc.(map[string]any)
	if !ok {
		return set, notAnObject("a document that is not an object")
	}
	if isTest(tree) {
		return set, nil
	}
	if tree["kind"] != "List" {
		return append(set, manifest.Object{Source: source, Tree: tree}), nil
	}
	if err := onlyItems(tree); err != nil {
		return set, err
	}
	items, ok := tree["items"].([]any)
	if !ok && tree["items"] != nil {
		return set, notAnObject("a List whose items are no list")
	}
	for _, item := range items {
		var err error
		if set, err = appendObjects(set, source, item); err != nil {
			return set, notAnObject("a List with an item that is not an object")
		}
	}
	return set, nil
}

// isTest tells whether an object is a test hook: one that names test or test-success, alone or among others.
func isTest(tree map[string]any) bool {
	metadata, _ := tree["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	hooks, _ := annotations[hookAnnotation].(string)
	for _, hook := range strings.Split(hooks, ",") {
		switch strings.ToLower(strings.TrimSpace(hook)) {
		case "test", "test-success":
			return true
		}
	}
	return false
}
