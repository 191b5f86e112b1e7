package batch

import (
	"encoding/json"
	"testing"
)

// OpenAI bounds the texts of a batch of embeddings, and the requests of other batches.
func TestInputs(t *testing.T) {
	for body, want := range map[string]int{`{"input":["a","b","c"]}`: 3, `{"input":"a"}`: 1, `{"input":[]}`: 1} {
		if n := (openAI{"/embeddings"}).inputs(json.RawMessage(body)); n != want {
			t.Errorf("%s: %d, want %d", body, n, want)
		}
	}
	if n := (openAI{"/responses"}).inputs(json.RawMessage(`{"input":[{},{}]}`)); n != 1 {
		t.Errorf("a response counts as %d", n)
	}
	s := &session{asked: map[string]*request{}, batches: map[string]*made{}}
	texts, _ := json.Marshal(map[string]any{"model": "m", "input": make([]string, 20_000)})
	for _, key := range []string{"a", "b", "c"} {
		s.asked[key] = &request{key: key, line: texts, to: endpoint{provider: openAI{"/embeddings"}, url: "u"}}
	}
	if groups := s.groups(); len(groups) != 2 || len(groups[0]) != 2 {
		t.Errorf("%d groups, want two requests in the first and one in the second", len(groups))
	}
}
