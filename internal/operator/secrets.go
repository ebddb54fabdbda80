package operator

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/values"
)

const (
	// minSecret is the shortest value that is looked for: shorter ones stand in any text by accident.
	minSecret = 4
	// minNumber is the shortest number that is: ports and sizes are no secrets.
	minNumber = 6
	// minPart is the shortest beginning of a value that is looked for where a text was cut.
	minPart = 6
	// maxForm is how much of a value is looked for. Texts of a status are shorter, so that one that holds more
	// of it was cut.
	maxForm = 4096
	// maxLines bounds the lines of one value that are looked for by themselves, maxSecrets the values of one
	// addon: more than that is no set of secrets, and cannot be kept out of texts in time.
	maxLines   = 256
	maxSecrets = 4096

	redacted = "[redacted]"
)

// secrets are the secret values that a reconcile has come across. A chart may put them where they do not
// belong, into the name of an object or of an image: none of them may leave the operator in a status or an
// event.
type secrets struct {
	values []string
	seen   map[string]bool
	// generated are the paths of the inputs for which the generated value is used, and that nothing runs with
	// yet. The values are among the others.
	generated []string
	// made are texts of the rendered objects that depend on secrets, however short, and numbers that do.
	made    []string
	numbers []int64
	// plain is what may show although it is a value: the addon's name, which every object carries.
	plain string
}

func (s *secrets) add(values ...string) {
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	for _, v := range values {
		if len(v) >= minSecret && v != s.plain && !s.seen[v] {
			s.seen[v] = true
			s.values = append(s.values, v)
		}
	}
}

// addTree adds all texts and all long numbers of a values document.
func (s *secrets) addTree(v any) {
	switch v := v.(type) {
	case string:
		s.add(v)
	case int64, float64:
		if text := fmt.Sprint(v); len(text) >= minNumber {
			s.add(text)
		}
	case []any:
		for _, item := range v {
			s.addTree(item)
		}
	case map[string]any:
		for _, item := range v {
			s.addTree(item)
		}
	}
}

// tooMany tells that there are more values than can be looked for.
func (s *secrets) tooMany() bool { return len(s.values) > maxSecrets }

// secretsOf are the values in all the addon's values Secrets, those of before included: what runs may have
// been rendered with them.
func (r *reconciler) secretsOf(ctx context.Context, a *v1alpha1.ZaentrumAddon) (*secrets, error) {
	known := &secrets{plain: a.Name}
	r.dependents.tell(client.ObjectKeyFromObject(a), known)
	list, err := valuesSecrets(ctx, r.client, client.ObjectKeyFromObject(a))
	if err != nil {
		return nil, err
	}
	for i := range list {
		u := &list[i]
		u.SetKind(string(v1alpha1.ValuesFromSecret)) // lists may leave it out of their items
		keys, _, _ := unstructured.NestedMap(u.Object, "data")
		for key := range keys {
			text, ok := data(u, key)
			if !ok {
				continue
			}
			known.add(text)
			if document, err := values.Decode([]byte(text)); err == nil {
				known.addTree(document)
			}
			if known.tooMany() { // which the plan says when they are those in use
				return known, nil
			}
		}
	}
	return known, nil
}

// redactor takes secret values out of texts.
type redactor struct {
	forms   []string // the longest first
	words   []string // to be found only as whole words
	replace *strings.Replacer
}

// redactor finds each value as it is, in upper and lower case, line by line, escaped, in hex and in base64.
func (s *secrets) redactor() *redactor {
	var forms []string
	for _, v := range s.values {
		v = v[:min(len(v), maxForm)]
		quoted := strconv.Quote(v)
		forms = append(forms, v, url.QueryEscape(v), url.PathEscape(v), quoted[1:len(quoted)-1], printable(v), hex.EncodeToString([]byte(v)))
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			forms = append(forms, encoding.EncodeToString([]byte(v)))
			for pad := 1; pad < 3 && len(v) > 8; pad++ { // inside a longer text
				text := encoding.EncodeToString([]byte(strings.Repeat("x", pad) + v))
				forms = append(forms, text[4:len(text)-4])
			}
		}
		if lines := strings.SplitN(v, "\n", maxLines+1); len(lines) > 1 {
			forms = append(forms, lines...)
		}
	}
	for _, f := range slices.Clone(forms) {
		forms = append(forms, strings.ToLower(f), strings.ToUpper(f), strings.TrimSpace(f))
	}
	var words []string
	for _, text := range s.made {
		text = text[:min(len(text), maxForm)]
		switch {
		case text == s.plain:
		case len(text) < minSecret:
			words = append(words, text)
		default:
			forms = append(forms, text, printable(text))
		}
	}
	forms = slices.DeleteFunc(forms, func(f string) bool { return len(f) < minSecret || f == s.plain })
	// The longest first, so that no part of one is left beside what was cut out of it.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	forms = slices.Compact(forms)
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f, redacted)
	}
	return &redactor{forms, words, strings.NewReplacer(pairs...)}
}

const ellipsis = "…"

// clean is the text without secret values and control characters.
func (r *redactor) clean(text string) string {
	for _, word := range r.words {
		text = withoutWord(text, word)
	}
	if len(r.forms) == 0 {
		return printable(text)
	}
	// Once more, since a value can be hidden by the characters that are dropped.
	text = r.replace.Replace(printable(r.replace.Replace(text)))
	for at := strings.Index(text, ellipsis); at >= 0; {
		before := r.uncut(text[:at])
		rest := text[at:]
		next := strings.Index(rest[len(ellipsis):], ellipsis)
		text = before + rest
		if at = -1; next >= 0 {
			at = len(before) + len(ellipsis) + next
		}
	}
	return text
}

// withoutWord takes a text out where no letter or digit goes on before or after it.
func withoutWord(text, word string) string {
	goesOn := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	var out strings.Builder
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 || word == "" {
			return out.String() + text[at:]
		}
		from, to := at+i, at+i+len(word)
		last, _ := utf8.DecodeLastRuneInString(text[:from])
		first, _ := utf8.DecodeRuneInString(text[to:])
		out.WriteString(text[at:from])
		if goesOn(last) || goesOn(first) {
			out.WriteString(word)
		} else {
			out.WriteString(redacted)
		}
		at = to
	}
}

// uncut takes the beginning of a value off the end of a text that was cut there.
func (r *redactor) uncut(text string) string {
	for _, f := range r.forms {
		if len(f) < minPart {
			break // the rest is shorter still
		}
		window := text[max(0, len(text)-len(f)):]
		for from := 0; from <= len(window)-minPart; {
			i := strings.Index(window[from:], f[:minPart])
			if i < 0 {
				break
			}
			if part := window[from+i:]; strings.HasPrefix(f, part) {
				return text[:len(text)-len(part)] + redacted
			}
			from += i + 1
		}
	}
	return text
}
