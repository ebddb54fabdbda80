package guard

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"zaentrum.io/zae/internal/manifest"
)

// A field that a newer Kubernetes API adds to these types must be looked at before it is let through.
func TestEveryFieldOfTheAPIIsReviewed(t *testing.T) {
	t.Parallel()
	known := map[string]bool{plain: true}
	for _, r := range Rules() {
		known[r.ID] = true
	}
	for of, fields := range reviewed() {
		var have []string
		for f := range jsonFields(of) {
			have = append(have, f.name)
		}
		for _, name := range have {
			if _, ok := fields[name]; !ok {
				t.Errorf("%s.%s is new: decide which rule looks at it, or that it needs none, and say so in reviewed.go", of, name)
			}
		}
		for name, verdict := range fields {
			if !slices.Contains(have, name) {
				t.Errorf("%s.%s was reviewed and is no field of the API", of, name)
			}
			if !known[verdict] {
				t.Errorf("%s.%s: %s is no rule", of, name, verdict)
			}
		}
	}
}

func TestFieldsThatWereNotReviewedAreUnknown(t *testing.T) {
	t.Parallel()
	review := reviewed()
	delete(review[reflect.TypeFor[corev1.PodSpec]()], "hostUsers")
	b := shapeBuilder{done: map[reflect.Type]*shape{}, reviewed: review}
	var c comparison
	c.compare(b.build(reflect.TypeFor[corev1.PodSpec]()), value{raw: map[string]any{"hostUsers": false, "hostPID": false}})
	if len(c.found) != 1 || c.found[0].of != unknown || c.found[0].path != "hostUsers" {
		t.Errorf("got %+v", c.found)
	}
}

// No part of the shapes is of a type that is not described, such as one that reads JSON in a way of its own.
func TestEveryTypeOfTheAPIIsSupported(t *testing.T) {
	t.Parallel()
	seen := map[*shape]bool{}
	var visit func(path string, s *shape)
	visit = func(path string, s *shape) {
		if seen[s] {
			return
		}
		seen[s] = true
		switch {
		case s.fields != nil:
			for _, k := range slices.Sorted(maps.Keys(s.fields)) {
				visit(path+"."+k, s.fields[k])
			}
		case s.values != nil:
			visit(path+"[]", s.values)
		case s.items != nil:
			visit(path+"[]", s.items)
		case s.scalar == nil:
			t.Errorf("%s: nothing may stand there", path)
		default:
			if s.scalar(nil) == unsupported(nil) {
				t.Errorf("%s: unsupported", path)
			}
		}
	}
	for id, s := range shapes() {
		visit(id.Kind, s)
	}
	if len(seen) < 250 {
		t.Errorf("only %d types seen", len(seen))
	}
}

// Whatever the API's own types write is accepted: every field of every kind, filled.
func TestShapesAcceptWhatTheAPIWrites(t *testing.T) {
	t.Parallel()
	for _, object := range []any{
		&corev1.ServiceAccount{}, &corev1.Secret{}, &corev1.ConfigMap{}, &corev1.PersistentVolumeClaim{},
		&corev1.Service{}, &appsv1.Deployment{}, &batchv1.Job{},
	} {
		v := reflect.ValueOf(object).Elem()
		kind := v.Type().Name()
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			fill(v, 0)
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			docs := decodeText(t, string(text))
			id := manifest.ID{APIVersion: allowedVersion(kind), Kind: kind}
			for _, f := range faults(id, value{raw: docs[0]}, nil) {
				if f.of != invalid { // one text for everything is no valid value for much
					t.Errorf("%s (%s)", f.what, f.path)
				}
			}
			if n := strings.Count(string(text), ":"); n < 20 {
				t.Errorf("only %d fields were tried", n)
			}
		})
	}
}

// fill sets every field to something.
func fill(v reflect.Value, depth int) {
	if depth > 30 {
		return
	}
	switch at := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*at = resource.MustParse("1500m")
		return
	case *intstr.IntOrString:
		*at = intstr.FromString("http")
		return
	case *metav1.Time:
		*at = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		return
	case *metav1.FieldsV1:
		if err := at.UnmarshalJSON([]byte(`{"f:a":{}}`)); err != nil {
			panic(err)
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64, reflect.Uint8:
		if v.CanInt() {
			v.SetInt(7)
		} else {
			v.SetUint(7)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		e := reflect.New(v.Type().Elem()).Elem()
		fill(e, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k").Convert(v.Type().Key()), e)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth+1)
			}
		}
	}
}
