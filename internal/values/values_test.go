package values

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
)

func TestDecode(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want map[string]any
	}{
		"nothing":            {"", map[string]any{}},
		"only a comment":     {"# none\n", map[string]any{}},
		"null":               {"null\n", map[string]any{}},
		"large integers":     {"a: 10737418240\n", map[string]any{"a": int64(10737418240)}},
		"JSON":               {`{"a": [1, 2.5, "x", null]}`, map[string]any{"a": []any{int64(1), 2.5, "x", nil}}},
		"keys stay strings":  {"on: 1\n1: x\n", map[string]any{"on": int64(1), "1": "x"}},
		"a document's start": {"---\na: 1\n", map[string]any{"a": int64(1)}},
	} {
		got, err := Decode([]byte(tc.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for name, text := range map[string]string{
		"a list":         "- c4n4ry\n",
		"a string":       "c4n4ry\n",
		"two documents":  "a: c4n4ry\n---\nb: c4n4ry\n",
		"bad YAML":       "a: {c4n4ry\n",
		"duplicate keys": "c4n4ry: 1\nc4n4ry: 2\n",
	} {
		_, err := Decode([]byte(text))
		if fault.CodeOf(err) != fault.Malformed {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("%s: quotes the text: %v", name, err)
		}
	}
}

func TestNormalize(t *testing.T) {
	in := map[string]any{
		"i": json.Number("10737418240"), "e": json.Number("1e3"), "f": json.Number("1.50"), "huge": json.Number("12345678901234567890"),
		"big": json.Number("9223372036854775807"), "f64": float64(3), "half": 0.5, "beyond": 1e18, "int": 7, "u": uint64(math.MaxUint64),
		"s": "1", "b": true, "n": nil, "l": []any{json.Number("2")},
	}
	want := map[string]any{
		"i": int64(10737418240), "e": int64(1000), "f": 1.5, "huge": 12345678901234567890.0,
		"big": int64(math.MaxInt64), "f64": int64(3), "half": 0.5, "beyond": 1e18, "int": int64(7), "u": float64(math.MaxUint64),
		"s": "1", "b": true, "n": nil, "l": []any{int64(2)},
	}
	got, err := Normalize(in)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if again, err := Normalize(got); err != nil || cmp.Diff(got, again) != "" {
		t.Error("normalizing again changes something")
	}
	deep := map[string]any{}
	for range 1000 {
		deep = map[string]any{"x": deep}
	}
	for name, v := range map[string]any{
		"a Go struct":            map[string]any{"a": map[string]any{"b": struct{ S string }{"c4n4ry"}}},
		"a typed list":           map[string]any{"a": map[string]any{"b": []string{"c4n4ry"}}},
		"a number out of bounds": map[string]any{"a": map[string]any{"b": json.Number("1e999")}},
		"NaN":                    map[string]any{"a": map[string]any{"b": math.NaN()}},
		"too deep":               deep,
	} {
		_, err := Normalize(v)
		switch {
		case fault.CodeOf(err) != fault.Invalid:
			t.Errorf("%s: %v", name, err)
		case strings.Contains(err.Error(), "c4n4ry"):
			t.Errorf("%s: quotes a value: %v", name, err)
		case name != "too deep" && !strings.Contains(err.Error(), "a.b"):
			t.Errorf("%s: does not say where: %v", name, err)
		}
	}
}

func TestChecksumIsOfWhatTheTreeMeans(t *testing.T) {
	a := Checksum(map[string]any{"a": int64(1), "b": map[string]any{"c": "<x>", "d": nil}})
	for name, tc := range map[string]struct {
		tree map[string]any
		same bool
	}{
		"another order":  {map[string]any{"b": map[string]any{"d": nil, "c": "<x>"}, "a": int64(1)}, true},
		"a float of it":  {map[string]any{"a": float64(1), "b": map[string]any{"c": "<x>", "d": nil}}, true},
		"another value":  {map[string]any{"a": int64(2), "b": map[string]any{"c": "<x>", "d": nil}}, false},
		"another type":   {map[string]any{"a": "1", "b": map[string]any{"c": "<x>", "d": nil}}, false},
		"null left out":  {map[string]any{"a": int64(1), "b": map[string]any{"c": "<x>"}}, false},
		"nothing at all": {map[string]any{}, false},
	} {
		if got := Checksum(tc.tree); (got == a) != tc.same || len(got) != 64 {
			t.Errorf("%s: %s", name, got)
		}
	}
	if Checksum(map[string]any{"a": math.NaN()}) != "" {
		t.Error("a tree that is no JSON has a checksum")
	}
}

func TestGenerate(t *testing.T) {
	raw := bytes.Repeat([]byte{0xfb, 0xff}, 16)
	for kind, want := range map[string]string{
		"random-base64-32": base64.StdEncoding.EncodeToString(raw),
		"random-hex-32":    hex.EncodeToString(raw),
	} {
		got, err := Generate(kind, io.MultiReader(bytes.NewReader(raw[:7]), bytes.NewReader(raw[7:])))
		if err != nil || got != want {
			t.Errorf("%s: %s, %v", kind, got, err)
		}
	}
	if _, err := Generate("random-uuid", bytes.NewReader(raw)); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
	if _, err := Generate("random-hex-32", bytes.NewReader(raw[:31])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("too little randomness makes a value: %v", err)
	}
}

func TestPlatform(t *testing.T) {
	full := func() *v1alpha1.Zaentrum {
		z := DefaultPlatform()
		z.Namespace = "media"
		z.Spec = v1alpha1.ZaentrumSpec{
			Hostname: "media.example.org", PartOf: "house", ImagePullSecrets: []string{"b", "a"},
			Identity:       v1alpha1.ZaentrumIdentity{Mode: "external", Issuer: "https://id.example.org/realms/x", IssuerScheme: "https"},
			Network:        v1alpha1.ZaentrumNetwork{IssuerHostAliasIP: "10.0.0.1"},
			EventStreaming: v1alpha1.ZaentrumEventStreaming{Mode: "external", Bootstrap: "k:9093", TopicPrefix: "t.", CertSecret: "kafka-tls"},
		}
		return z
	}
	bundled := full()
	bundled.Spec.PartOf = ""
	bundled.Spec.Identity = v1alpha1.ZaentrumIdentity{IssuerScheme: "https"}
	bundled.Spec.EventStreaming.Mode = "bundled"
	named := full()
	named.Spec.Identity.Mode = ""
	named.Spec.EventStreaming.CertSecret = ""
	for name, tc := range map[string]struct {
		z    *v1alpha1.Zaentrum
		want string
	}{
		"every default": {DefaultPlatform(), `{namespace: zaentrum, hostname: zaentrum.localhost, issuer: "http://zaentrum.localhost/auth/realms/zaentrum", issuerHostAliasIP: "",
			imagePullSecrets: [], partOf: zaentrum-addons, events: {brokers: "kafka:9092", topicPrefix: stube., tlsSecret: ""}, media: {claimName: media}}`},
		"everything set": {full(), `{namespace: media, hostname: media.example.org, issuer: "https://id.example.org/realms/x", issuerHostAliasIP: 10.0.0.1,
			imagePullSecrets: [b, a], partOf: house-addons, events: {brokers: "k:9093", topicPrefix: t., tlsSecret: kafka-tls}, media: {claimName: media}}`},
		"bundled leaves out what is external": {bundled, `{namespace: media, hostname: media.example.org, issuer: "https://media.example.org/auth/realms/zaentrum", issuerHostAliasIP: 10.0.0.1,
			imagePullSecrets: [b, a], partOf: media-addons, events: {brokers: "kafka:9092", topicPrefix: t., tlsSecret: ""}, media: {claimName: media}}`},
		"a named issuer is it, in any mode": {named, `{namespace: media, hostname: media.example.org, issuer: "https://id.example.org/realms/x", issuerHostAliasIP: 10.0.0.1,
			imagePullSecrets: [b, a], partOf: house-addons, events: {brokers: "k:9093", topicPrefix: t., tlsSecret: ""}, media: {claimName: media}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Platform(tc.z)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tree(t, tc.want), got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAPlatformThatLeavesAFactOpenIsRefusedByField(t *testing.T) {
	for field, change := range map[string]func(z *v1alpha1.Zaentrum){
		"metadata.namespace":            func(z *v1alpha1.Zaentrum) { z.Namespace = "" },
		"spec.identity.issuer":          func(z *v1alpha1.Zaentrum) { z.Spec.Identity.Mode = "external" },
		"spec.identity.mode":            func(z *v1alpha1.Zaentrum) { z.Spec.Identity.Mode = "elsewhere" },
		"spec.eventStreaming.bootstrap": func(z *v1alpha1.Zaentrum) { z.Spec.EventStreaming.Mode = "external" },
		"spec.eventStreaming.mode":      func(z *v1alpha1.Zaentrum) { z.Spec.EventStreaming.Mode = "elsewhere" },
	} {
		z := DefaultPlatform()
		change(z)
		_, err := Platform(z)
		f := fault.From(err)
		if f == nil || f.Code != fault.Invalid || !strings.Contains(f.Message, "Zaentrum/zaentrum") ||
			!strings.Contains(f.Message, field) || !strings.Contains(f.Hint, field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := Platform(nil); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("no platform: %v", err)
	}
}
