package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/serve/api"
)

// IdempotencyKey is the header that chooses the run of a request.
const IdempotencyKey = "Idempotency-Key"

// KeyedID returns the id of the run that an Idempotency-Key chooses, after a prefix.
func KeyedID(key, prefix string) string {
	sum := sha256.Sum256([]byte(key))
	return prefix + hex.EncodeToString(sum[:16])
}

// WantType checks the type of a body. A request without one is from no browser, which is what the
// check is about: a page of another origin can send a body of few types without being asked.
func WantType(r *http.Request, types ...string) error {
	text := r.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(text); text == "" || err == nil && slices.Contains(types, kind) {
		return nil
	}
	const status = http.StatusUnsupportedMediaType
	return &api.Problem{Type: problems.Invalid, Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf("the body is of type %q: want %s", text, strings.Join(types, " or "))}
}
