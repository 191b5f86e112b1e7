package batch

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The vectors of a request are put together in the order of its texts; a refused text refuses the request, and one without an
// answer leaves it to the next batch.
func TestVectors(t *testing.T) {
	if n := (gemini{vectors: true}).inputs([]byte(`{"requests":[{},{}]}`)); n != 2 {
		t.Errorf("two texts count as %d", n)
	}
	const good = `{"metadata":{"key":"%s","text":"%s"},"response":{"embedding":{"values":[%d]}%s}}`
	const bad = `{"metadata":{"key":"%s","text":"%s"},"error":{"code":3,"message":"too long"}}`
	list := strings.Join([]string{
		fmt.Sprintf(good, "a", "1/2", 2, `,"tokenCount":"5"`), fmt.Sprintf(good, "a", "0/2", 1, `,"tokenCount":"4"`),
		fmt.Sprintf(good, "b", "0/1", 3, ""),
		fmt.Sprintf(good, "c", "0/2", 4, ""), // the other one expired
		fmt.Sprintf(good, "d", "0/3", 5, ""), fmt.Sprintf(bad, "d", "1/3"), fmt.Sprintf(bad, "d", "2/3"),
	}, ",")
	for _, body := range []string{`{"response":{"inlinedEmbedContentResponses":{"inlinedResponses":[%s]}}}`, `{"response":{"output":{"inlinedEmbedContentResponses":{"inlinedResponses":[%s]}}}}`} {
		got := map[string]string{}
		to := endpoint{url: "https://test.invalid/v1beta/models/m:batchEmbedContents", header: http.Header{}, next: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(fmt.Sprintf(body, list)))}, nil
		})}
		err := gemini{vectors: true}.answers(t.Context(), to, "batches/1", func(key string, a answer) {
			got[key] += fmt.Sprintf("%d %s", a.status, a.body)
		})
		if err != nil || len(got) != 3 ||
			got["a"] != `200 {"embeddings":[{"values":[1]},{"values":[2]}],"usageMetadata":{"promptTokenCount":9}}` ||
			got["b"] != `200 {"embeddings":[{"values":[3]}]}` || strings.Count(got["d"], "400 ") != 1 {
			t.Errorf("%v, %v", got, err)
		}
	}
}
