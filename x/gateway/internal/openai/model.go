package openai

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/talk"
)

// prefix is the prefix of model ids.
const prefix = talk.Prefix

// Model is a pipeline or an intent that clients can use as a model.
type Model struct {
	talk.Model
	Live bool // text is streamed before a gate has accepted it
}

// Talking returns the models that can be used for a chat.
func Talking(b Backend) []Model {
	return slices.DeleteFunc(b.Models(), func(m Model) bool { return !m.Talks() })
}

// Find returns the model with the id, or an error if there is none.
func Find(b Backend, id string) (Model, error) {
	name, ours := strings.CutPrefix(id, prefix)
	for _, m := range b.Models() {
		if ours && m.Name == name {
			return m, nil
		}
	}
	return Model{}, &Error{Status: http.StatusNotFound, Message: "there is no model " + quote(id) + ": GET /v1/models lists them", Type: "invalid_request_error", Code: "model_not_found", Param: "model"}
}

func quote(s string) string {
	text, _ := json.Marshal(bounds.Cut(s, 100))
	return string(text)
}
