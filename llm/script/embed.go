package script

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
)

// An Embedder computes the vector of a text from the words in it, so texts that share words have similar vectors. The same text
// always has the same vector. Each word counts as a token. An Embedder answers in process, and over HTTP in OpenAI's and Gemini's
// protocols. The zero value is ready to use. An Embedder is safe for concurrent use.
type Embedder struct {
	Dimensions int // length of the vectors; 0 means 256
	// Fail, if not nil, is called for the n-th request, counted from 0. If it returns an error, the request fails with this error.
	// Over HTTP, an *llm.HTTPError is sent as is, and any other error is sent with status 500.
	Fail func(n int, req *llm.EmbedRequest) error

	mu       sync.Mutex
	requests []*llm.EmbedRequest
}

// Requests returns all requests that the Embedder has received so far, in order.
func (e *Embedder) Requests() []*llm.EmbedRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests)
}

// Info returns the Info of the Embedder.
func (e *Embedder) Info() llm.Info {
	return llm.Info{Provider: "script", Model: "script", Mode: llm.Mock}
}

// Embed implements llm.Embedder.
func (e *Embedder) Embed(ctx context.Context, req *llm.EmbedRequest) (*llm.Embedding, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	got, err := e.answer(req)
	if err != nil {
		return nil, err
	}
	if price := llm.SpecOfEmbedder(ctx, e).Price; price != nil {
		got.Usage.USD = price.Of(got.Usage)
	}
	return got, nil
}

func (e *Embedder) answer(req *llm.EmbedRequest) (*llm.Embedding, error) {
	if err := req.Check(); err != nil {
		return nil, &llm.HTTPError{Status: http.StatusBadRequest, Body: err.Error()}
	}
	e.mu.Lock()
	n := len(e.requests)
	e.requests = append(e.requests, &llm.EmbedRequest{Texts: slices.Clone(req.Texts), Query: req.Query})
	e.mu.Unlock()
	if e.Fail != nil {
		if err := e.Fail(n, req); err != nil {
			return nil, err
		}
	}
	got := &llm.Embedding{Model: "script", Usage: budget.Usage{}}
	for _, text := range req.Texts {
		v, words := e.vector(text)
		got.Vectors, got.Usage.InputTokens = append(got.Vectors, v), got.Usage.InputTokens+words
	}
	return got, nil
}

// vector returns the sum of the words' directions, scaled to length 1, and the number of words.
func (e *Embedder) vector(text string) (v []float32, words int) {
	if v = make([]float32, e.Dimensions); e.Dimensions == 0 {
		v = make([]float32, 256)
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		words++
		h := fnv.New32a()
		io.WriteString(h, word) // never fails
		v[h.Sum32()%uint32(len(v))]++
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		v[0], sum = 1, 1
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v, words
}

// ServeHTTP answers a request of Gemini's protocol if the path ends in :batchEmbedContents, otherwise one of
// OpenAI's.
func (e *Embedder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Input    []string
		Requests []struct {
			TaskType string
			Content  geminiContent
		}
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&asked); err != nil {
		http.Error(w, "script: the request is not of the protocol: "+err.Error(), http.StatusBadRequest)
		return
	}
	gemini := strings.HasSuffix(path.Base(r.URL.Path), ":batchEmbedContents")
	req := &llm.EmbedRequest{Texts: asked.Input}
	for _, q := range asked.Requests {
		req.Texts, req.Query = append(req.Texts, q.Content.text()), q.TaskType == "RETRIEVAL_QUERY"
	}
	got, err := e.answer(req)
	if err != nil {
		status, body := http.StatusInternalServerError, err.Error()
		if h, ok := err.(*llm.HTTPError); ok {
			status, body = h.Status, h.Body
		}
		http.Error(w, body, status)
		return
	}
	type object = map[string]any
	var all []object
	for i, v := range got.Vectors {
		all = append(all, object{"index": i, "embedding": v, "values": v})
	}
	w.Header().Set("Content-Type", "application/json")
	answer := object{"object": "list", "model": "script", "data": all, "usage": object{"prompt_tokens": got.Usage.InputTokens, "total_tokens": got.Usage.InputTokens}}
	if gemini {
		answer = object{"embeddings": all}
	}
	_ = json.NewEncoder(w).Encode(answer) // if this fails, the client notices that the answer is truncated
}
