package openai

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// NewEmbedder returns a client for the endpoint /embeddings, which most compatible servers provide. It uses Model and the fields
// of Config that concern the connection, and rejects fields that only apply to answers. URL may also end in /embeddings, or in
// the path of another endpoint, which is replaced. To request fewer dimensions, set Extra to {"dimensions": 512}. The result is
// also an llm.Checker. NewEmbedder does not use the network and does not fail: Check, and the first use, report an invalid
// configuration.
//
// Source: OpenAI, API reference, "Create embeddings": at most 2,048 texts of 8,192 tokens each, together
// 300,000 tokens.
func NewEmbedder(c Config) llm.Embedder {
	for _, d := range dialects { // the configuration is shared with the server's models
		c.URL = strings.TrimSuffix(strings.TrimRight(c.URL, "/"), d.endpoint)
	}
	s := c.setup()
	s.Endpoint, s.Reserved = "/embeddings", []string{"model", "input"}
	if c.Protocol != "" || c.MaxTokens != 0 || c.MaxTokensField != "" || c.ThinkTags != "" || c.Stateful || c.Repetition != nil {
		s.Fault = errors.New("an embedder does not support Protocol, MaxTokens, MaxTokensField, ThinkTags, Stateful and Repetition")
	}
	s.Defaults()
	own := s.Own()
	return wire.NewEmbedder(s, []string{"Authorization"}, func(req *llm.EmbedRequest) object {
		body := object{"model": c.Model, "input": req.Texts}
		if own { // base64 is a quarter as large as a list, but not all servers support it
			body["encoding_format"] = "base64"
		}
		wire.Merge(body, c.Extra)
		return body
	}, readVectors, nil)
}

// readVectors reads an answer. Its vectors may be in any order.
func readVectors(data []byte) (v wire.Vectors, err error) {
	var answer struct {
		Model string
		Data  []struct {
			Index     *int
			Embedding vector
		}
		Usage struct {
			Tokens *int `json:"prompt_tokens"`
		}
		Error *struct{ Message string }
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return v, fmt.Errorf("the answer cannot be read: %w", err)
	}
	if answer.Error != nil {
		return v, fmt.Errorf("the server reports: %s", answer.Error.Message)
	}
	v = wire.Vectors{Model: answer.Model, Tokens: answer.Usage.Tokens, Vectors: make([][]float32, len(answer.Data))}
	for i, d := range answer.Data {
		if d.Index != nil {
			i = *d.Index
		}
		if i < 0 || i >= len(v.Vectors) || v.Vectors[i] != nil {
			return v, fmt.Errorf("the index %d of a vector is out of range or there twice", i)
		}
		v.Vectors[i] = d.Embedding
	}
	return v, nil
}

// vector is decoded from a list of numbers, or from their bytes in base64, lowest byte first.
type vector []float32

func (v *vector) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, (*[]float32)(v))
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw)%4 != 0 {
		return errors.New("a vector is not in base64")
	}
	*v = make(vector, len(raw)/4)
	for i := range *v {
		(*v)[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return nil
}
