package inputs

import "encoding/json"

// GenerateKeyword is the schema keyword that makes an input a generated one (contract §1).
const GenerateKeyword = "x-zaentrum-generate"

// The kinds of generated input.
const (
	GenerateBase64 = "random-base64-32"
	GenerateHex    = "random-hex-32"
)

// Types of an input. TypeJSON stands for everything a single field cannot hold: arrays, maps, values of
// several types and of any type. Such an input is given as JSON.
const (
	TypeString  = "string"
	TypeInteger = "integer"
	TypeNumber  = "number"
	TypeBoolean = "boolean"
	TypeJSON    = "json"
)

// Input is one thing that an installation may or must give.
type Input struct {
	// Path is the dotted path in the values.
	Path string `json:"path"`
	// Group is the path of the group the input is in; empty at the root.
	Group string `json:"group,omitempty"`
	// Type is one of the types above.
	Type        string `json:"type"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`

	// Required tells that no installation goes without the input: its own object requires it, and so it is
	// with every object around it.
	Required bool `json:"required"`
	// RequiredInGroup tells that the object the input is in requires it: it must be given as soon as that
	// object is. The same as Required for an input at the root.
	RequiredInGroup bool `json:"requiredInGroup"`
	// RequiredWhen says in words when the input is required besides, such as "when tls.enabled is true". Empty when
	// it never is, and when the schema's condition (if, dependencies) is not a simple one: Validate tells then.
	RequiredWhen string `json:"requiredWhen,omitempty"`
	// Conditional tells that only some alternative of the schema (anyOf, oneOf, if, dependencies) has the
	// input. It is never Required; validating says when it is needed.
	Conditional bool `json:"conditional,omitempty"`

	// Default is what the schema suggests. Nothing applies it but the form; a secret has none.
	Default any `json:"default,omitempty"`
	// Enum are all allowed values, when the schema lists them. Integers are int64.
	Enum []any `json:"enum,omitempty"`

	// Secret tells that the value is never shown: writeOnly, on the input or on an object around it.
	Secret bool `json:"secret"`
	// HoldsSecrets tells that parts of a TypeJSON input are writeOnly.
	HoldsSecrets bool `json:"holdsSecrets,omitempty"`
	// Generate is how the operator makes the value when none is given; empty, GenerateBase64 or GenerateHex.
	Generate string `json:"generate,omitempty"`
	// Unaddressable tells that a key along the path is empty or has a dot in it, so that no dotted path
	// leads there: the input can only be given in a values document.
	Unaddressable bool `json:"unaddressable,omitempty"`

	// Limits, for help and for judging an answer at once; Validate is what counts.
	Format           string      `json:"format,omitempty"`
	Pattern          string      `json:"pattern,omitempty"`
	MinLength        json.Number `json:"minLength,omitempty"`
	MaxLength        json.Number `json:"maxLength,omitempty"`
	Minimum          json.Number `json:"minimum,omitempty"`
	Maximum          json.Number `json:"maximum,omitempty"`
	ExclusiveMinimum json.Number `json:"exclusiveMinimum,omitempty"`
	ExclusiveMaximum json.Number `json:"exclusiveMaximum,omitempty"`
	MultipleOf       json.Number `json:"multipleOf,omitempty"`
}

// Group is an object that inputs are in.
type Group struct {
	// Path is the dotted path in the values; Path is never empty.
	Path        string `json:"path"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Required tells that the group is required in every object around it.
	Required bool `json:"required"`
	// Open tells that the schema describes further keys, as a map, that are no inputs of their own.
	Open bool `json:"open,omitempty"`
}
