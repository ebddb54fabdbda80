package guard

import "strings"

// maxQuantity is the length a quantity may have, far above what anybody writes.
const maxQuantity = 64

// quantity tells whether s is a quantity such as 500m, 1.5Gi or 1e3.
//
// It reads the text itself. The parser of the Kubernetes API does not come back from some texts, such as
// 1e-2147483647 or a million digits: it computes them. What would make it compute long is no quantity here,
// and so it reaches neither that parser in this program nor the one in the API server.
func quantity(s string) bool {
	if len(s) > maxQuantity {
		return false
	}
	rest := strings.TrimLeft(s, "+-")
	if len(s)-len(rest) > 1 {
		return false
	}
	whole := digits(rest)
	rest = rest[whole:]
	fraction := 0
	if after, ok := strings.CutPrefix(rest, "."); ok {
		fraction = digits(after)
		rest = after[fraction:]
	}
	if whole+fraction == 0 {
		return false
	}
	switch rest {
	case "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei":
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	exponent := rest[1:]
	if exponent != "" && (exponent[0] == '+' || exponent[0] == '-') {
		exponent = exponent[1:]
	}
	return len(exponent) > 0 && len(exponent) <= 2 && digits(exponent) == len(exponent)
}

// digits is the number of digits that s starts with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
