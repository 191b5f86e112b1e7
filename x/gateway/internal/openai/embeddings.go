package openai

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
)

// Embedding is a request for vectors.
type Embedding struct {
	llm.EmbedRequest
	model, encoding string
}

// EmbeddingModel is the name of the server's embedder.
const EmbeddingModel = prefix + "embedder"

// maxTexts is the maximum number of texts in a request, as at OpenAI.
const maxTexts = 2048

// ReadEmbedding parses the body of a request for vectors.
func ReadEmbedding(r *http.Request) (e Embedding, err error) {
	body, err := Body(r)
	if err != nil {
		return e, err
	}
	var one string
	if json.Unmarshal(body["input"], &one) == nil {
		e.Texts = []string{one}
	} else if json.Unmarshal(body["input"], &e.Texts) != nil {
		return e, Wrong("input", "invalid_type", "the input is neither a text nor a list of texts: tokens are not supported")
	}
	delete(body, "input")
	delete(body, "user")
	if err := Fields(body, map[string]any{"model": &e.model, "encoding_format": &e.encoding}); err != nil {
		return e, err
	}
	for name, value := range body {
		if name != "model" && name != "encoding_format" && !Unset(value) {
			return e, Wrong(name, "unsupported_parameter", "the parameter %q is not supported: the configuration of the server sets the dimensions", name)
		}
	}
	switch {
	case e.model != EmbeddingModel:
		return e, &Error{Status: http.StatusNotFound, Message: "there is no embedder " + quote(e.model) + ": want " + EmbeddingModel, Type: "invalid_request_error", Code: "model_not_found", Param: "model"}
	case e.encoding != "" && e.encoding != "float" && e.encoding != "base64":
		return e, Wrong("encoding_format", "invalid_value", "the encoding_format is %s: want float or base64", quote(e.encoding))
	case len(e.Texts) > maxTexts:
		return e, Wrong("input", "invalid_value", "the input has %d texts: want at most %d", len(e.Texts), maxTexts)
	}
	if err := e.Check(); err != nil {
		return e, Wrong("input", "invalid_value", "%v", err)
	}
	return e, nil
}

// Reply writes the reply, which contains a vector for each text of the request.
func (e Embedding) Reply(w http.ResponseWriter, vectors [][]float32, used budget.Usage) error {
	data := make([]map[string]any, len(vectors))
	for i, v := range vectors {
		data[i] = map[string]any{"object": "embedding", "index": i, "embedding": v}
		if e.encoding == "base64" { // as little-endian floats
			raw, err := binary.Append(nil, binary.LittleEndian, v)
			if err != nil {
				return err
			}
			data[i]["embedding"] = base64.StdEncoding.EncodeToString(raw)
		}
	}
	usage := map[string]any{"prompt_tokens": used.InputTokens, "total_tokens": used.InputTokens, "cost": used.USD}
	return Reply(w, map[string]any{"object": "list", "model": e.model, "data": data, "usage": usage})
}
