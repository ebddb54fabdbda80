package portal

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
)

func TestSuffixesOfSecretsAreRandomAndOfTheAgreedShape(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^[a-z0-9]{10}$`)
	source := rand.NewChaCha8([32]byte{1})
	seen, letters := map[string]bool{}, map[rune]int{}
	const names = 4000
	for range names {
		name, err := secretSuffix(source)
		if err != nil || !shape.MatchString(name) || seen[name] {
			t.Fatalf("%s, %v", name, err)
		}
		seen[name] = true
		for _, r := range name {
			letters[r]++
		}
	}
	for r, n := range letters {
		if even := names * 10 / 36; n < even*8/10 || n > even*12/10 {
			t.Errorf("%c came %d times, about %d are expected", r, n, even)
		}
	}
	if _, err := secretSuffix(bytes.NewReader(make([]byte, 3))); err == nil {
		t.Error("no randomness makes a name")
	}
	// Bytes that would favour some letters are passed over, not used.
	if name, err := secretSuffix(bytes.NewReader(append(bytes.Repeat([]byte{255}, 20), make([]byte, 20)...))); err != nil || name != "aaaaaaaaaa" {
		t.Errorf("%s, %v", name, err)
	}
}

func TestNoPossibleNameOfASecretIsTooLong(t *testing.T) {
	t.Parallel()
	suffix, err := secretSuffix(bytes.NewReader(make([]byte, 20)))
	name := v1alpha1.ValuesSecretPrefix(strings.Repeat("a", v1alpha1.MaxNameLength)) + suffix
	if err != nil || len(name) > 253 {
		t.Errorf("%d, %v", len(name), err)
	}
}

func TestAReferenceIsToAnObjectOfTheAddon(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"zaentrum-addon-example-values-abc": true, "zaentrum-addon-example-x": true, "zaentrum-addon-example-generated": true,
		"zaentrum-addon-example-": false, "zaentrum-addon-example": false, "zaentrum-addon-examples-x": false, "Zaentrum-addon-example-x": false,
		"zaentrum-addon-example-x/../y": false, "": false, "zaentrum-addon-example-" + strings.Repeat("x", 253): false, "zaentrum-addon-example-x\n": false,
	} {
		err := checkRef("example", "a", apitype.SecretRef{Name: name, Key: "a"})
		if (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func FuzzDecodeStrictNeverQuotesAValue(f *testing.F) {
	for _, seed := range []string{
		`{"chart":"x"}`, `{"secretValues":{"a":1}}`, `{"secretValues":{"a":"b"}} x`, `{"values":{"a":[1,2,{"b":null}]}}`, `{"a":`, `[]`, "{\"\xff\":1}", `{"values":1e999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		const secret = "c4nary-value"
		for _, raw := range [][]byte{body, append([]byte(`{"secretValues":{"a":"`+secret+`"},`), body...), append([]byte(`{"secretValues":"`+secret+`","x":`), body...)} {
			var in apitype.CreateRequest
			err := decodeStrict(raw, &in)
			if err != nil && strings.Contains(err.Error(), secret) && !bytes.Contains(body, []byte(secret)) {
				t.Fatalf("%q is quoted: %v", raw, err)
			}
			if err == nil {
				if _, err := checkValues(in.Values); err == nil {
					_, _ = newInputs("example", in.SecretValues, in.SecretRefs, nil)
				}
			}
		}
	})
}
