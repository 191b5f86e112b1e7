package agent_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/script"
)

// promptCache counts the input of requests by the rules of the page "Prompt caching" of
// Anthropic's documentation. A prefix of tools, system and messages ends with a block. Each
// marked block, at most 4, writes the prefix up to it, if that has 1,024 tokens. From each mark
// the server looks for a written prefix at most 20 blocks back; the longest is read. A token is
// 4 bytes here. Nothing expires, since the test is shorter than 5 minutes.
type promptCache map[[32]byte]bool

// block is the end of a prefix.
type block struct {
	sum    [32]byte
	tokens int // of the prefix
	marked bool
}

func (c promptCache) count(t *testing.T, body []byte) (u llm.Usage) {
	var req struct {
		Tools    []json.RawMessage `json:"tools"`
		System   json.RawMessage   `json:"system"`
		Messages []struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		t.Error(err)
	}
	var blocks []block
	prefix, size, marks := sha256.New(), 0, 0
	add := func(where string, raw json.RawMessage) {
		plain := bytes.Replace(raw, []byte(`"cache_control":{"type":"ephemeral"},`), nil, 1)
		b := block{marked: len(plain) < len(raw)}
		if bytes.Contains(plain, []byte("cache_control")) {
			t.Errorf("a mark that the mock does not read: %.200s", raw)
		}
		if b.marked {
			marks++
		}
		fmt.Fprintf(prefix, "%s %s\n", where, plain)
		size += len(plain)
		prefix.Sum(b.sum[:0])
		b.tokens = size / 4
		blocks = append(blocks, b)
	}
	for _, tool := range req.Tools {
		add("tool", tool)
	}
	var system []json.RawMessage
	if json.Unmarshal(req.System, &system) != nil && req.System != nil {
		var text string
		if err := json.Unmarshal(req.System, &text); err != nil {
			t.Error(err)
		}
		raw, _ := json.Marshal(map[string]string{"type": "text", "text": text})
		system = []json.RawMessage{raw}
	}
	for _, s := range system {
		add("system", s)
	}
	for _, m := range req.Messages {
		for _, b := range m.Content {
			add(m.Role, b)
		}
	}
	if marks > 4 {
		t.Errorf("%d marks: the server takes 4", marks)
	}
	var write []block
	read, end := 0, 0
	for i, b := range blocks {
		if !b.marked || b.tokens < 1024 {
			continue
		}
		end, write = b.tokens, append(write, b)
		for k := i; k >= max(i-20, 0); k-- {
			if c[blocks[k].sum] {
				read = max(read, blocks[k].tokens)
				break
			}
		}
	}
	for _, b := range write {
		c[b.sum] = true
	}
	u.InputTokens, u.OutputTokens = new(size/4), new(100)
	u.CachedInputTokens, u.CacheWriteTokens = read, max(end-read, 0)
	return u
}

// TestPromptCaching is the input cost of an agent of 12 turns with 20 kB of context, with and
// without marks, at 3 USD per million tokens of input. Turn 8 makes 30 calls: more blocks than
// the server looks back.
func TestPromptCaching(t *testing.T) {
	price := budget.Price{In: 3, Out: 15, CacheRead: 0.30, CacheWrite: 3.75}
	found := dag.NewType[agent.Text]("found")
	cost := func(t *testing.T, noCache bool) (used budget.Usage) {
		cache, usage := promptCache{}, llm.Usage{}
		answers := script.Func(func(n int, _ *llm.Request) (a script.Answer) {
			calls := 1
			if n == 7 {
				calls = 30
			}
			for i := range calls {
				a.Reply.ToolCalls = append(a.Reply.ToolCalls, llm.ToolCall{ID: fmt.Sprint(n, "-", i), Name: "read", Input: json.RawMessage(`{}`)})
			}
			if n == 11 {
				a = script.Text("Found.")
			}
			a.Reply.Usage = usage
			return a
		})
		url := fakeserver.Serve(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
			usage = cache.count(t, body)
			answers.ServeHTTP(w, r)
		})
		read := agent.Tool{Tool: llm.Tool{Name: "read"}, Run: func(context.Context, json.RawMessage) (agent.Result, error) {
			return agent.Result{Text: strings.Repeat("found nothing ", 36)}, nil
		}}
		model := llm.Priced(anthropic.New(anthropic.Config{URL: url, Model: "m"}), price)
		p := agent.New("find", found, model, agent.Config{
			System: agent.Say(strings.Repeat("All of the context. ", 1000)), User: agent.Say("Find it."),
			Use: []agent.Middleware{agent.Use(read)}, NoCache: noCache,
		})
		account := budget.New(budget.Limits{Roundtrips: new(100)})
		if _, err := stone.Run(budget.With(t.Context(), account), p, stone.Config{}); err != nil {
			t.Fatal(err)
		}
		if used := account.Spent(); used.Roundtrips != 12 {
			t.Fatalf("%d turns, want 12", used.Roundtrips)
		}
		return account.Used()
	}
	without, with := cost(t, true), cost(t, false)
	input := func(u budget.Usage) float64 { u.OutputTokens = 0; return price.Of(u) }
	t.Logf("input: %d tokens; without marks %.4f USD, with marks %.4f USD (%d read, %d written), %.0f %%",
		with.InputTokens, input(without), input(with), with.CacheReadTokens, with.CacheWriteTokens, 100*input(with)/input(without))
	switch {
	case without.CacheReadTokens != 0 || without.CacheWriteTokens != 0 || without.InputTokens != with.InputTokens:
		t.Errorf("without marks %+v, with marks %+v: want the same input, and nothing cached without", without, with)
	case input(with) > input(without)/4:
		t.Errorf("with marks %.4f USD, want at most a quarter of %.4f USD", input(with), input(without))
	}
}
