package guard

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"zaentrum.io/zae/internal/manifest"
)

// fault is a place where a tree is not what its kind and version say.
type fault struct {
	hit
	of faultKind
}

type faultKind int

const (
	mistyped faultKind = iota // a value of another type
	unknown                   // a field that the kind does not have
	invalid                   // a value, or the lack of one, that the API server does not accept
)

// shape is what may stand at a place. Exactly one of its parts is set, but for limits, which go with fields.
type shape struct {
	fields map[string]*shape          // an object with these fields
	limits map[string]limit           // what else must hold for some of them
	whole  form                       // and for them together; nil for nothing
	values *shape                     // a mapping from any key to this
	items  *shape                     // a list of this
	scalar func(v any) (fault string) // anything else; the fault is empty when v fits
}

// shapes are the trees of the allowed kinds, derived from the types of the Kubernetes API that this module
// is built with. Fields of reviewed types that were not reviewed are left out, so they are refused.
var shapes = sync.OnceValue(func() map[manifest.ID]*shape {
	b := shapeBuilder{done: map[reflect.Type]*shape{}, reviewed: reviewed(), limits: limits(), wholes: wholes()}
	out := map[manifest.ID]*shape{}
	for kind, of := range map[string]any{
		kindServiceAccount: corev1.ServiceAccount{},
		kindSecret:         corev1.Secret{},
		kindConfigMap:      corev1.ConfigMap{},
		kindClaim:          corev1.PersistentVolumeClaim{},
		kindService:        corev1.Service{},
		kindDeployment:     appsv1.Deployment{},
		kindJob:            batchv1.Job{},
	} {
		out[manifest.ID{APIVersion: allowedVersion(kind), Kind: kind}] = b.build(reflect.TypeOf(of))
	}
	return out
})

// faults compares a tree with the shape of its kind. Kinds without one have no faults: they are refused
// as a whole. Texts that are madeUp, which may be nil, stand for what an admin would give: their form says nothing.
func faults(id manifest.ID, root value, madeUp func(string) bool) []fault {
	s := shapes()[manifest.ID{APIVersion: id.APIVersion, Kind: id.Kind}]
	if s == nil {
		return nil
	}
	c := comparison{madeUp: madeUp}
	c.compare(s, root)
	return c.found
}

type comparison struct {
	madeUp func(string) bool
	found  []fault
}

// compare collects the faults of v. A null stands for an absent field, as the API server reads it, but
// is no element of a list or mapping.
func (c *comparison) compare(s *shape, v value) {
	wrong := func(what string) {
		c.found = append(c.found, fault{hit: v.hit("wrong type, must be %s", what)})
	}
	switch {
	case s.fields != nil:
		if _, ok := v.raw.(map[string]any); !ok {
			wrong("an object")
			return
		}
		for _, k := range v.keys() {
			field, known := s.fields[k]
			at := v.at(k)
			switch {
			case !known:
				hint := ""
				if len(c.found) < maxMeant {
					hint = s.meant(k)
				}
				c.found = append(c.found, fault{hit: at.hit("unknown field%s", hint), of: unknown})
			case at.raw != nil:
				c.compare(field, at)
			}
		}
		c.limit(s, v)
	case s.values != nil:
		if _, ok := v.raw.(map[string]any); !ok {
			wrong("an object")
			return
		}
		for _, k := range v.keys() {
			at := v.at(k)
			if at.raw == nil {
				// What templates write for a value that is not there. The API server refuses it or drops the key.
				c.found = append(c.found, fault{hit: at.hit("null: give it a value, in quotes if it is empty, or leave the key out")})
				continue
			}
			c.compare(s.values, at)
		}
	case s.items != nil:
		if _, ok := v.raw.([]any); !ok {
			wrong("a list")
			return
		}
		for _, e := range v.items() {
			c.compare(s.items, e)
		}
	default:
		if what := s.scalar(v.raw); what != "" {
			wrong(what)
		}
	}
}

// limit asks of the fields of v, and of v as a whole, what must hold beyond their types.
func (c *comparison) limit(s *shape, v value) {
	for _, k := range slices.Sorted(maps.Keys(s.limits)) {
		for _, h := range s.limits[k].judge(v.at(k), c.madeUp) {
			c.found = append(c.found, fault{hit: h, of: invalid})
		}
	}
	if s.whole != nil {
		for _, h := range s.whole(v) {
			c.found = append(c.found, fault{hit: h, of: invalid})
		}
	}
}

// maxMeant is how many faults of an object may come with a guess: an object can have any number of them.
const maxMeant = 50

// meant asks whether the one field whose name is nearest to a key was meant; empty when none is near, or several are.
func (s *shape) meant(key string) string {
	if len(key) > maxKind {
		return ""
	}
	best, nearest := "", 1+max(1, min(3, len(key)/3))
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		switch d := distance(strings.ToLower(key), strings.ToLower(name)); {
		case d < nearest:
			best, nearest = name, d
		case d == nearest:
			best = ""
		}
	}
	if best == "" {
		return ""
	}
	return ": did you mean " + best + "?"
}

// distance is how many letters are to be added, left out, changed or swapped with the next to make b of a.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// shapeBuilder derives shapes from Go types by their JSON tags.
type shapeBuilder struct {
	done     map[reflect.Type]*shape // also breaks the circle of types that contain themselves
	reviewed map[reflect.Type]map[string]string
	limits   map[reflect.Type]map[string]limit
	wholes   map[reflect.Type]form
}

func (b *shapeBuilder) build(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, ok := b.done[t]; ok {
		return s
	}
	s := &shape{}
	b.done[t] = s
	switch {
	case special(t) != nil:
		s.scalar = special(t)
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		s.scalar = unsupported // reads JSON in a way of its own that is not described here
	case t.Kind() == reflect.Struct:
		s.fields, s.limits, s.whole = map[string]*shape{}, b.limits[t], b.wholes[t]
		b.addFields(s.fields, t, b.reviewed[t])
	case t.Kind() == reflect.Map:
		s.values = b.build(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		s.scalar = base64Text
	case t.Kind() == reflect.Slice:
		s.items = b.build(t.Elem())
	default:
		s.scalar = primitive(t)
	}
	return s
}

// addFields adds the fields of a struct, those of embedded structs included. With a review, only the
// reviewed ones.
func (b *shapeBuilder) addFields(fields map[string]*shape, t reflect.Type, review map[string]string) {
	for f := range jsonFields(t) {
		if _, ok := review[f.name]; ok || review == nil {
			fields[f.name] = b.build(f.of)
		}
	}
}

type jsonField struct {
	name string
	of   reflect.Type
}

// jsonFields are the fields of a struct as JSON shows them.
func jsonFields(t reflect.Type) func(yield func(jsonField) bool) {
	return func(yield func(jsonField) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-" || !f.IsExported() && !f.Anonymous:
				continue
			case f.Anonymous && name == "":
				for inner := range jsonFields(f.Type) {
					if !yield(inner) {
						return
					}
				}
				continue
			case name == "":
				name = f.Name
			}
			if !yield(jsonField{name, f.Type}) {
				return
			}
		}
	}
}

// special are the types that JSON shows in another form than their Go type; nil for all others.
func special(t reflect.Type) func(any) string {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return func(v any) string {
			switch q := v.(type) {
			case int64, float64:
				return ""
			case string:
				if quantity(q) {
					return ""
				}
			}
			return "a quantity"
		}
	case reflect.TypeFor[intstr.IntOrString]():
		whole := primitive(reflect.TypeFor[int32]())
		return func(v any) string {
			if _, ok := v.(string); ok || whole(v) == "" {
				return ""
			}
			return "a whole number or a string"
		}
	case reflect.TypeFor[metav1.Time]():
		return func(v any) string {
			s, ok := v.(string)
			if ok && new(metav1.Time).UnmarshalQueryParameter(s) == nil {
				return ""
			}
			return "a time"
		}
	case reflect.TypeFor[metav1.FieldsV1]():
		return func(v any) string {
			if _, ok := v.(map[string]any); ok {
				return ""
			}
			return "an object"
		}
	}
	return nil
}

func primitive(t reflect.Type) func(any) string {
	switch t.Kind() {
	case reflect.String:
		return func(v any) string {
			if _, ok := v.(string); ok {
				return ""
			}
			return "a string"
		}
	case reflect.Bool:
		return func(v any) string {
			if _, ok := v.(bool); ok {
				return ""
			}
			return "true or false"
		}
	case reflect.Int32:
		return func(v any) string {
			if n, ok := v.(int64); ok && n >= math.MinInt32 && n <= math.MaxInt32 {
				return ""
			}
			return "a whole number of 32 bits"
		}
	case reflect.Int64:
		return func(v any) string {
			if _, ok := v.(int64); ok {
				return ""
			}
			return "a whole number"
		}
	}
	return unsupported
}

func base64Text(v any) string {
	if s, ok := v.(string); ok {
		if _, err := base64.StdEncoding.DecodeString(s); err == nil {
			return ""
		}
	}
	return "base64 text"
}

// unsupported refuses whatever stands in a field whose type is not described here.
func unsupported(any) string { return "left out: it is of a type that is not supported" }
