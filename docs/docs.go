// Package docs is the documentation that is built into the program.
package docs

import _ "embed" // for the document

// OpenAPI is the OpenAPI 3.1 document of the HTTP API, in YAML. It is made of the routes and types of the server; a test holds
// it current.
//
//go:embed openapi.yaml
var OpenAPI []byte
