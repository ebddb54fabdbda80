package portal

import (
	"encoding/json"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/values"
)

const (
	// maxSecretInputs is how many secret inputs an addon may have (decisions §6).
	maxSecretInputs = 64
	// maxInputPath is the longest path of a secret input (contract §1).
	maxInputPath = 250
	// maxValuesDepth is how deep values may be nested.
	maxValuesDepth = 100
)

// inputPath is what can be both a dotted path and the key of a Secret.
var inputPath = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)

// inputs are what one request does to the secret inputs of an addon.
type inputs struct {
	addon string
	set   map[string]string // path → value, on its way into a new Secret
	refs  map[string]apitype.SecretRef
	clear []string
}

// paths are the paths of all secret inputs that the request touches.
func (in inputs) paths() []string {
	return slices.Concat(sortedKeys(in.set), sortedKeys(in.refs), in.clear)
}

// newInputs checks the secret inputs of a request. No message holds a value, nor a path that is none, for it
// may be a value in the wrong place.
func newInputs(addon string, set map[string]string, refs map[string]apitype.SecretRef, clear []string) (inputs, error) {
	in := inputs{addon: addon, set: set, refs: map[string]apitype.SecretRef{}, clear: clear}
	seen := map[string]string{}
	check := func(field, path string) error {
		if err := checkPath(field, path); err != nil {
			return err
		}
		if other, ok := seen[path]; ok {
			if other == field {
				return invalid("%s names %s twice", field, path)
			}
			return invalid("%s is in both %s and %s", path, other, field).WithHint("a path goes into one of them")
		}
		seen[path] = field
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(set)) {
		if err := check("secretValues", path); err != nil {
			return in, err
		}
		if set[path] == "" {
			return in, invalid("secretValues: %s is empty", path).WithHint("name it in clearSecrets to clear it")
		}
		// Half of a surrogate pair, decoded: what would be stored is not what was meant.
		if strings.ContainsRune(set[path], utf8.RuneError) {
			return in, invalid("secretValues: %s holds something that is no character", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(refs)) {
		if err := check("secretRefs", path); err != nil {
			return in, err
		}
		ref := refs[path]
		if ref.Key == "" {
			ref.Key = path
		}
		if err := checkRef(addon, path, ref); err != nil {
			return in, err
		}
		in.refs[path] = ref
	}
	for _, path := range clear {
		if err := check("clearSecrets", path); err != nil {
			return in, err
		}
	}
	if len(set)+len(refs) > maxSecretInputs {
		return in, tooMany()
	}
	return in, nil
}

func tooMany() error {
	return invalid("an addon has at most %d secret inputs", maxSecretInputs)
}

func checkPath(field, path string) error {
	if len(path) > maxInputPath {
		return invalid("%s: a path is longer than %d characters", field, maxInputPath)
	}
	if !inputPath.MatchString(path) {
		return invalid("%s: a path holds something else than letters, digits, '-', '_' and '.'", field)
	}
	segments, err := values.ParsePath(path)
	if err != nil {
		return invalid("%s: path %s has an empty segment", field, path)
	}
	if segments[0] == v1alpha1.PlatformKey {
		return invalid("%s: %s is the platform's: only the operator sets what is under %s", field, path, v1alpha1.PlatformKey)
	}
	return nil
}

func checkRef(addon, path string, ref apitype.SecretRef) error {
	prefix := v1alpha1.ValuesObjectPrefix(addon)
	if len(validation.IsDNS1123Subdomain(ref.Name)) > 0 || !strings.HasPrefix(ref.Name, prefix) || ref.Name == prefix {
		return invalid("secretRefs: the Secret of %s is not one of the addon", path).
			WithHint("its name starts with %s, and it is labelled %s: %s", prefix, v1alpha1.LabelAddon, addon)
	}
	if len(validation.IsConfigMapKey(ref.Key)) > 0 {
		return invalid("secretRefs: the key of %s is not a key a Secret can have", path)
	}
	return nil
}

// apply answers the values sources of an addon after the request: what was set earlier stays where it is, a
// replaced path keeps its place, and new ones follow, sorted. secret is the name of the new Secret.
func (in inputs) apply(was []v1alpha1.ValuesSource, secret string) ([]v1alpha1.ValuesSource, error) {
	wanted := map[string]v1alpha1.ValuesSource{}
	for path := range in.set {
		wanted[path] = source(secret, path, path)
	}
	for path, ref := range in.refs {
		wanted[path] = source(ref.Name, ref.Key, path)
	}
	for _, path := range in.clear {
		if !slices.ContainsFunc(was, func(v v1alpha1.ValuesSource) bool { return isInput(v) && v.TargetPath == path }) {
			return nil, invalid("clearSecrets: %s is not set", path).WithHint("the plan and secretKeys name those that are")
		}
	}
	// Of several entries for one path the last one counts, so that is the place to keep.
	last := map[string]int{}
	for i, v := range was {
		last[v.TargetPath] = i
	}
	var now []v1alpha1.ValuesSource
	for i, v := range was {
		replacement, replaced := wanted[v.TargetPath]
		switch {
		case v.TargetPath == "":
			now = append(now, v)
		case replaced && last[v.TargetPath] == i:
			now = append(now, replacement)
		case replaced, isInput(v) && slices.Contains(in.clear, v.TargetPath):
		default:
			now = append(now, v)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(wanted)) {
		if _, there := last[path]; !there {
			now = append(now, wanted[path])
		}
	}
	if len(wanted) > 0 && len(secretKeys(now)) > maxSecretInputs {
		return nil, tooMany()
	}
	return now, nil
}

func source(secret, key, path string) v1alpha1.ValuesSource {
	return v1alpha1.ValuesSource{Kind: v1alpha1.ValuesFromSecret, Name: secret, ValuesKey: key, TargetPath: path}
}

// isInput tells whether a values source is a secret input: one key of a Secret for one path.
func isInput(v v1alpha1.ValuesSource) bool {
	return v.Kind == v1alpha1.ValuesFromSecret && v.TargetPath != ""
}

// secretRefs are where the secret inputs are read from, by path.
func secretRefs(from []v1alpha1.ValuesSource) map[string]apitype.SecretRef {
	refs := map[string]apitype.SecretRef{}
	for _, v := range from {
		if isInput(v) {
			refs[v.TargetPath] = apitype.SecretRef{Name: v.Name, Key: v.Key()}
		}
	}
	return refs
}

// secretKeys are the paths of the secret inputs, sorted.
func secretKeys(from []v1alpha1.ValuesSource) []string {
	keys := slices.Sorted(maps.Keys(secretRefs(from)))
	if keys == nil {
		keys = []string{}
	}
	return keys
}

// secret is the new Secret for the values of this request, and of no other. It has no name yet, and no data
// when the request sets nothing.
func (in inputs) secret(namespace string) *corev1.Secret {
	data := make(map[string][]byte, len(in.set))
	for path, value := range in.set {
		data[path] = []byte(value)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{v1alpha1.LabelAddon: in.addon}},
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}

// secretSuffix is the end of a new name for a values Secret.
func secretSuffix(random io.Reader) (string, error) {
	const alphabet, length = "abcdefghijklmnopqrstuvwxyz0123456789", 10
	// Bytes from here on would favour the first letters.
	const limit = 256 - 256%len(alphabet)
	suffix, buf := make([]byte, 0, length), make([]byte, 2*length)
	for len(suffix) < length {
		if _, err := io.ReadFull(random, buf); err != nil {
			return "", err
		}
		for _, b := range buf {
			if int(b) < limit && len(suffix) < length {
				suffix = append(suffix, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(suffix), nil
}

// checkValues makes what a resource holds of the values in a request.
func checkValues(tree map[string]any) (*runtime.RawExtension, error) {
	if _, ok := tree[v1alpha1.PlatformKey]; ok {
		return nil, invalid("values: the top-level key %s is the platform's: only the operator sets it", v1alpha1.PlatformKey)
	}
	if len(tree) == 0 {
		return nil, nil
	}
	if depth(tree) > maxValuesDepth {
		return nil, invalid("values are nested deeper than %d levels", maxValuesDepth)
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, invalid("values hold something that JSON cannot hold")
	}
	return &runtime.RawExtension{Raw: raw}, nil
}

func depth(v any) (deepest int) {
	switch v := v.(type) {
	case map[string]any:
		for _, item := range v {
			deepest = max(deepest, depth(item))
		}
	case []any:
		for _, item := range v {
			deepest = max(deepest, depth(item))
		}
	default:
		return 0
	}
	return deepest + 1
}
