package serve_test

import (
	"testing"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve"
)

// A turn that is asked again while it runs is canceled.
func TestRegenerateWhileRunning(t *testing.T) {
	j := &journal.Memory{}
	q := openQuarry(t, serve.Config{Journal: j})
	url := q.URL + "/v1/ui/slow"
	begun := func(r *reply) bool { return r.text() == "" }
	chat(t, "POST", url, saying("one", "m1", "hello"), begun) // stop()
	body := `{"id":"one","trigger":"regenerate-message","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hello"}]}]}`
	chat(t, "POST", url, body, begun)
	chat(t, "POST", url, body, begun)
	running := 0
	runs, err := j.Runs(t.Context(), journal.Query{})
	for _, r := range runs {
		if r.State == journal.Running {
			running++
		}
	}
	if running != 1 || err != nil {
		t.Errorf("%d turns of the conversation run at the same time, want 1", running)
	}
}
