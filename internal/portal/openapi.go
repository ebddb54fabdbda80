package portal

import (
	"fmt"
	"net/http"

	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/docs"
)

const mediaYAML = "application/yaml"

// documents is the OpenAPI document in each of its forms.
type documents struct{ json, yaml []byte }

func newDocuments() (documents, error) {
	raw, err := yaml.YAMLToJSON(docs.OpenAPI)
	if err != nil {
		return documents{}, fmt.Errorf("portal: the OpenAPI document: %w", err)
	}
	return documents{json: raw, yaml: docs.OpenAPI}, nil
}

// openAPI answers with a document. It needs no bearer: it says nothing of this instance.
func (s *Server) openAPI(media string, document []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		_, _ = w.Write(document) // a caller that has gone misses nothing
	}
}
