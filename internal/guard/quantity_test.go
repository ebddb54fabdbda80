package guard

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

var quantities = []string{
	"0", "1", "-1", "+1", "1.5", "1.", ".5", "500m", "1.5Gi", "100n", "2u", "3k", "4M", "5G", "6T", "7P", "8E", "1Ki", "1Mi", "1Ti", "1Pi", "1Ei",
	"1e3", "1E3", "1e-3", "1E+03", "-1.5e2", "00012",
	"", "1K", "1mi", "1 Gi", " 1", "1 ", "1e", "1E+", "1e1.5", "1Gib", "--1", "+-1", "0x10", "1_000", "1,5", "ten", "1m2", "١", "Infinity", "NaN", "1KiB",
}

func TestQuantitiesAreReadAsTheAPIReadsThem(t *testing.T) {
	t.Parallel()
	for _, s := range quantities {
		_, err := resource.ParseQuantity(s)
		if got, want := quantity(s), err == nil; got != want {
			t.Errorf("%q: got %v, the API says %v", s, got, err)
		}
	}
}

// The API takes these for zero. Nobody means that.
func TestQuantitiesHaveDigits(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"-", "+", ".", "m", "e1", "-Gi"} {
		if quantity(s) {
			t.Errorf("%q is taken for a quantity", s)
		}
	}
}

// The parser of the API does not come back from these.
func TestQuantitiesThatTakeForEverAreNone(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"1e-2147483647", "1E-999999", "1e100", strings.Repeat("9", 1_000_000), "0." + strings.Repeat("9", 1_000_000), "1e" + strings.Repeat("0", 100) + "1"} {
		if quantity(s) {
			t.Errorf("%.20q is taken for a quantity", s)
		}
	}
}

func FuzzQuantity(f *testing.F) {
	for _, s := range quantities {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !quantity(s) {
			return
		}
		if _, err := resource.ParseQuantity(s); err != nil {
			t.Errorf("%q is taken for a quantity: %v", s, err)
		}
	})
}
