package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// NewEmbedder returns a client for the method batchEmbedContents. It uses Model and the fields of Config that concern the
// connection, and rejects MaxTokens, NoStream and Repetition. Extra is merged into the request for each text:
// {"outputDimensionality": 768}. The result is also an llm.Checker. NewEmbedder does not use the network and does not fail:
// Check, and the first use, report an invalid configuration.
//
// Questions have the task type RETRIEVAL_QUERY, and documents RETRIEVAL_DOCUMENT; with {"taskType": nil} in Extra, no task type
// is sent. If the server does not report the number of tokens, it is estimated.
//
// Source: Google, Gemini API reference, "Embeddings".
func NewEmbedder(c Config) llm.Embedder {
	if c.MaxTokens != 0 || c.NoStream || c.Repetition != nil {
		return embedder(c, errors.New("an embedder does not support MaxTokens, NoStream and Repetition"))
	}
	return embedder(c, nil)
}

func embedder(c Config, fault error) llm.Embedder {
	s := c.setup()
	s.Fault, s.Reserved = fault, []string{"model", "content"}
	name := "models/" + strings.TrimPrefix(c.Model, "models/")
	return wire.NewEmbedder(s, []string{"x-goog-api-key", "Authorization"}, func(req *llm.EmbedRequest) object {
		task := "RETRIEVAL_DOCUMENT"
		if req.Query {
			task = "RETRIEVAL_QUERY"
		}
		requests := make([]object, len(req.Texts))
		for i, text := range req.Texts {
			requests[i] = object{"model": name, "taskType": task, "content": object{"parts": []object{{"text": text}}}}
			wire.Merge(requests[i], c.Extra)
		}
		return object{"requests": requests}
	}, readVectors, func(client *wire.Client) *wire.Client {
		return client.Below(url.PathEscape(strings.TrimPrefix(name, "models/"))+":batchEmbedContents", nil)
	})
}

func readVectors(data []byte) (v wire.Vectors, err error) {
	var answer struct {
		Embeddings []struct{ Values []float32 }
		Usage      struct {
			Tokens *int `json:"promptTokenCount"`
		} `json:"usageMetadata"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return v, fmt.Errorf("the answer cannot be read: %w", err)
	}
	v = wire.Vectors{Tokens: answer.Usage.Tokens, Vectors: make([][]float32, len(answer.Embeddings))}
	for i, e := range answer.Embeddings {
		v.Vectors[i] = e.Values
	}
	return v, nil
}
