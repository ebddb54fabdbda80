package lint

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// encodings are what templates may make of a secret.
func encodings(secret string) []string {
	out := []string{secret, "x" + secret + "y", strings.ToUpper(secret), strings.ToLower(secret)}
	sum := sha256.Sum256([]byte(secret))
	out = append(out, hex.EncodeToString(sum[:]))
	for _, before := range []string{"", "u", "us", "use", "user:"} {
		for _, after := range []string{"", "@", "@h", "@host/db"} {
			out = append(out, base64.StdEncoding.EncodeToString([]byte(before+secret+after)), base64.URLEncoding.EncodeToString([]byte(before+secret+after)))
		}
	}
	return append(out, base64.StdEncoding.EncodeToString([]byte(strings.ToUpper(secret))))
}
