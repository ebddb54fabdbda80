package values

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"

	"zaentrum.io/zae/internal/fault"
)

// The kinds of generated value (contract §1); package inputs exports them.
const (
	generateBase64 = "random-base64-32"
	generateHex    = "random-hex-32"
)

// generatedBytes is how many random bytes a generated value holds.
const generatedBytes = 32

// Generate makes a value of the kind from random, which must be fit for keys: 32 bytes as standard base64
// with padding or as lower-case hex.
func Generate(kind string, random io.Reader) (string, error) {
	if kind != generateBase64 && kind != generateHex {
		return "", fault.New(fault.Invalid, "%q generates nothing", kind).
			WithHint("use %s or %s", generateBase64, generateHex)
	}
	raw := make([]byte, generatedBytes)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", fmt.Errorf("read randomness for a generated value: %w", err)
	}
	if kind == generateHex {
		return hex.EncodeToString(raw), nil
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}
