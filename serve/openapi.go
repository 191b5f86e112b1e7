package serve

import (
	_ "embed"
	"net/http"
)

// document is the OpenAPI 3.1 document of the routes, made by internal/test/openapi:
//
//	go test ./serve -run TestOpenAPI -update
//
//go:embed openapi.json
var document []byte

func (s *Server) getOpenAPI(w http.ResponseWriter, _ *http.Request, _ Principal) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(document) // or the client has gone
	return nil
}
