package worker

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
)

// What stands in a secret for its form, and is the same in every secret of that form: the scheme of an address, the
// marks around a key, the names of fields.
var forms = []*regexp.Regexp{
	regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`),
	regexp.MustCompile(`-----(BEGIN|END) [A-Z0-9 ]+-----`),
}

// fieldNames are those of JSON, with what else in it is no text.
var fieldNames = regexp.MustCompile(`"(?:[^"\\]|\\.)*"\s*:|\\u[0-9a-fA-F]{4}|\\.|\b(?:true|false|null)\b`)

// lineNames are those of files with a setting on each line.
var lineNames = regexp.MustCompile(`(?m)^[ \t-]*[A-Za-z_][A-Za-z0-9_.-]*[ \t]*(?::(?:[ \t]|$)|=)`)

// likeness is how another secret of the same form is made of one: each letter and each digit becomes another of its
// kind, but for those of the form.
type likeness struct {
	secret []rune
	form   []bool // not to be changed
	other  []bool // changed so far
}

func likenessOf(secret string) *likeness {
	l := &likeness{secret: []rune(secret)}
	l.form, l.other = make([]bool, len(l.secret)), make([]bool, len(l.secret))
	patterns := forms
	switch trimmed := strings.TrimSpace(secret); {
	case (strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")) && json.Valid([]byte(secret)):
		patterns = append(patterns[:len(patterns):len(patterns)], fieldNames)
	case strings.Contains(trimmed, "\n"):
		patterns = append(patterns[:len(patterns):len(patterns)], lineNames)
	}
	index := make(map[int]int, len(l.secret)) // of runes, by that of their first byte
	n := 0
	for at := range secret {
		index[at] = n
		n++
	}
	index[len(secret)] = n
	for _, p := range patterns {
		for _, found := range p.FindAllStringIndex(secret, -1) {
			for i := index[found[0]]; i < index[found[1]]; i++ {
				l.form[i] = true
			}
		}
	}
	return l
}

// changeable are the places that can be changed.
func (l *likeness) changeable() []int {
	var out []int
	for i, r := range l.secret {
		if !l.form[i] && next(r) != r {
			out = append(out, i)
		}
	}
	return out
}

func (l *likeness) change(places []int, to bool) {
	for _, i := range places {
		l.other[i] = to
	}
}

// text is the secret as far as it is changed.
func (l *likeness) text() string {
	out := make([]rune, len(l.secret))
	for i, r := range l.secret {
		if out[i] = r; l.other[i] {
			out[i] = next(r)
		}
	}
	return string(out)
}

// minKept is the shortest part of a secret that is looked for by itself: shorter ones stand in other texts by accident.
const minKept = 4

// kept are the parts that are neither changed nor of the form.
func (l *likeness) kept() []string {
	var out []string
	from := 0
	for i := range len(l.secret) + 1 {
		if i < len(l.secret) && !l.form[i] && !l.other[i] {
			continue
		}
		if i-from >= minKept {
			out = append(out, string(l.secret[from:i]))
		}
		from = i + 1
	}
	return out
}

// circles are the letters and digits that stand in for each other. Those of a hexadecimal number stay such.
var circles = []string{"abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ", "123456789"}

// next is the letter or digit after one, of the same kind; anything else is itself.
func next(r rune) rune {
	if r == '0' {
		return '1'
	}
	for _, circle := range circles {
		if at := strings.IndexRune(circle, r); at >= 0 {
			return rune(circle[(at+1)%len(circle)])
		}
	}
	switch {
	case r <= unicode.MaxASCII || !unicode.IsLetter(r):
		return r
	case r == 'ж':
		return 'я'
	}
	return 'ж'
}
