package agent_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// keeper is a server that refuses what the documentation of its protocol, or an error text quoted in a public
// report, says that it refuses.
type keeper struct {
	url    string
	check  func(*keeper, map[string]any) error
	answer func(k *keeper, calls bool) string
	served func()                      // notes that it answered
	wants  func(map[string]any) string // the text that the last message of a user has, "" after results

	mu      sync.Mutex
	down    func(n int) bool
	n       int
	given   map[string]bool // signatures, and ids of calls with thinking, that it gave
	refused []string
	missing []string // requests without the question that they answer
	asks    string
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	var body map[string]any
	err := json.Unmarshal(data, &body)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.n++
	if err == nil {
		err = k.check(k, body)
	}
	if !strings.Contains(string(data), k.asks) {
		k.missing = append(k.missing, k.asks)
	}
	if err != nil {
		k.refused = append(k.refused, err.Error()+"\n"+string(data))
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%q}}`, err.Error())
		return
	}
	if k.down(k.n) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	k.served()
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, k.answer(k, strings.Contains(k.wants(body), "question")))
}

func list(v any) []any { l, _ := v.([]any); return l }

func object(v any) map[string]any { o, _ := v.(map[string]any); return o }

func text(v any) string { s, _ := v.(string); return s }

var (
	plainName  = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	geminiName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)
)

// picture checks a picture in base64.
func picture(mediaType, data string) error {
	raw, err := base64.StdEncoding.DecodeString(data)
	if kind := (&llm.Media{Data: raw}).Kind(); err != nil || kind != mediaType {
		return fmt.Errorf("a picture of type %s is %s", mediaType, kind)
	}
	return nil
}

func checkChat(k *keeper, body map[string]any) error {
	if n, _ := body["max_tokens"].(float64); n > 8192 {
		return errors.New("max_tokens is too large")
	}
	for _, t := range list(body["tools"]) {
		if name := text(object(object(t)["function"])["name"]); !plainName.MatchString(name) {
			return fmt.Errorf("the name %q does not match", name)
		}
	}
	before, open := "", []string(nil)
	for _, m := range list(body["messages"]) {
		m := object(m)
		role := text(m["role"])
		switch {
		case role != "tool" && len(open) > 0:
			return fmt.Errorf("no results of %v", open)
		case role == before && role != "tool":
			return errors.New("Conversation roles must alternate user/assistant/user/assistant/...")
		case role == "tool":
			i := slices.Index(open, text(m["tool_call_id"]))
			if i < 0 {
				return fmt.Errorf("a result of %q, which nothing calls", m["tool_call_id"])
			}
			open = slices.Delete(open, i, i+1)
		}
		for _, c := range list(m["tool_calls"]) {
			id := text(object(c)["id"])
			if slices.Contains(open, id) || len(id) > 40 || id == "" {
				return fmt.Errorf("the id %q", id)
			}
			if !json.Valid([]byte(text(object(object(c)["function"])["arguments"]))) {
				return errors.New("arguments are no JSON")
			}
			if open = append(open, id); k.given[id] && text(m["reasoning_content"]) == "" {
				return errors.New("The `reasoning_content` in the thinking mode must be passed back to the API.")
			}
		}
		if reasoning := text(m["reasoning_content"]); reasoning != "" && !k.given[reasoning] {
			return fmt.Errorf("foreign reasoning %q", reasoning)
		}
		for _, p := range list(m["content"]) {
			if url := text(object(object(p)["image_url"])["url"]); url != "" {
				kind, data, _ := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
				if err := picture(kind, data); err != nil {
					return err
				}
			}
		}
		before = role
	}
	if len(open) > 0 || before == "assistant" {
		return errors.New("the last message is the assistant's")
	}
	return nil
}

func answerChat(k *keeper, calls bool) string {
	var b strings.Builder
	send := func(delta string) {
		fmt.Fprintf(&b, "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
	}
	thought := fmt.Sprintf("chat thinks %d", k.n)
	k.given[thought] = true
	send(fmt.Sprintf(`{"reasoning_content":%q}`, thought))
	if !calls {
		send(`{"content":"done"}`)
		b.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		return b.String()
	}
	k.given["functions.1c_read:0"] = true
	send(`{"tool_calls":[{"index":0,"id":"functions.1c_read:0","function":{"name":"1c_read","arguments":"{\"text\":\"a\"}"}}]}`)
	send(`{"tool_calls":[{"index":0,"id":"functions.shot:1","function":{"name":"shot","arguments":"{\"text\":\"b\"}"}}]}`)
	send(`{"tool_calls":[{"index":0,"id":"functions.shot:2","function":{"name":"shot","arguments":"{\"text\":7}"}}]}`)
	b.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n")
	return b.String()
}

// lastOf returns what the last message of a user says, without results of tools.
func lastOf(messages, parts string) func(map[string]any) string {
	return func(body map[string]any) string {
		all := list(body[messages])
		last := object(all[len(all)-1])
		if last["role"] != "user" {
			return ""
		}
		content, _ := json.Marshal(last[parts])
		if bytes.Contains(content, []byte(`"functionResponse"`)) || bytes.Contains(content, []byte(`"tool_result"`)) || bytes.Contains(content, []byte("Attachment ")) {
			return ""
		}
		return string(content)
	}
}

// TestPublishedRules holds ten conversations of ten turns, with calls of which some are refused, pictures, a
// compaction, fallbacks between each two of four protocols in the middle of a turn and a kill, with servers that refuse what providers
// refuse. They refuse nothing.
func TestPublishedRules(t *testing.T) {
	jpeg := &llm.Media{Type: "image/png", Data: []byte("\xff\xd8\xff\xe0\x00\x10JFIF")} // what an MCP server says
	asked, compacted, follows := 0, 0, map[string]int{}
	for number := range 10 {
		servers := map[string]*keeper{
			"chat":      {check: checkChat, answer: answerChat, wants: lastOf("messages", "content")},
			"messages":  {check: checkMessages, answer: answerMessages, wants: lastOf("messages", "content")},
			"gemini":    {check: checkGemini, answer: answerGemini, wants: lastOf("contents", "parts")},
			"responses": {check: checkResponses, answer: answerResponses, wants: lastOf("input", "content")},
		}
		last := ""
		for name, k := range servers {
			server := httptest.NewServer(k)
			defer server.Close()
			k.url, k.given = server.URL, map[string]bool{}
			every := 2 + (number+len(name))%3
			k.down = func(n int) bool { return n%every == 0 }
			k.served = func() {
				follows[last+" "+name]++ // requests come one after the other
				last = name
			}
		}
		retry := llm.Retry{Max: -1}
		models := []llm.Model{
			openai.New(openai.Config{Model: "chat", URL: servers["chat"].url, Key: llm.NoKey, Retry: retry}),
			anthropic.New(anthropic.Config{Model: "claude", URL: servers["messages"].url, Key: llm.NoKey, Retry: retry, Extra: map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 1024}}}),
			gemini.New(gemini.Config{Model: "gemini-3", URL: servers["gemini"].url, Key: llm.NoKey, Retry: retry}),
			openai.New(openai.Config{Model: "gpt-5", Protocol: openai.Responses, URL: servers["responses"].url, Key: llm.NoKey, Retry: retry}),
		}
		if number%2 == 1 {
			slices.Reverse(models)
		}
		models = slices.Concat(models[number/2%4:], models[:number/2%4])
		order := slices.Concat(models, models) // twice: one of eight is up
		ran := 0
		read := tool("1c_read", func(string) (agent.Result, error) {
			ran++
			return agent.Result{Text: strings.Repeat("data ", 300)}, nil
		})
		shot := tool("shot", func(string) (agent.Result, error) { return agent.Result{Media: []*llm.Media{jpeg}}, nil })
		talk := chatter(llm.Fallback(order...), agent.Use(read), agent.Use(shot), agent.Compact(agent.CompactConfig{MaxTokens: 1500}))
		var d dag.DAG
		for turn := range 10 {
			words := fmt.Sprintf("question %d of %d", turn, number)
			for _, k := range servers {
				k.asks = words
			}
			cfg := stone.Config{Input: next(t, d, words), Recorder: dies(t, -1), RunID: "r"}
			if turn == 5 { // it is killed after its calls, and resumed
				cfg.Recorder.(*memory).left = 3
				if _, err := run(t, talk, cfg); !errors.Is(err, errDied) {
					t.Fatalf("conversation %d: %v", number, err)
				}
				cfg.Recorder.(*memory).left = -1
			}
			res, err := run(t, talk, cfg)
			if err != nil {
				t.Fatalf("conversation %d, turn %d: %v", number, turn, err)
			}
			if strings.Contains(transcript(conversation(t, res)), "are left out here") {
				compacted++
			}
			d = res.DAG
		}
		for name, k := range servers {
			asked += k.n
			for _, why := range k.refused {
				t.Errorf("conversation %d: %s refuses: %.3000s", number, name, why)
			}
			if k.missing != nil {
				t.Errorf("conversation %d: requests to %s lack %q", number, name, k.missing)
			}
		}
	}
	for a := range strings.FieldsSeq("chat messages gemini responses") {
		for b := range strings.FieldsSeq("chat messages gemini responses") {
			if a != b && follows[a+" "+b] == 0 {
				t.Errorf("%s never goes on after %s", b, a)
			}
		}
	}
	if asked < 250 || compacted < 20 {
		t.Errorf("%d requests, %d turns in a compacted conversation", asked, compacted)
	}
}

// TestCutCall runs no call whose arguments did not arrive, whatever the reason.
func TestCutCall(t *testing.T) {
	for _, reason := range []string{"length", "content_filter", "model_length", "max_tokens", "model_context_window_exceeded", "refusal", "some_new_limit"} {
		ran := false
		wipe := agent.Tool{Tool: llm.Tool{Name: "wipe", Schema: json.RawMessage(`{"type":"object"}`)}, Run: func(context.Context, json.RawMessage) (agent.Result, error) {
			ran = true
			return agent.Result{}, nil
		}}
		cut := but(calls("wipe", ""), func(r *llm.Reply) { r.ToolCalls[0].Input, r.StopReason = nil, reason })
		res, err := run(t, agent.New("talk", note, model(cut, says("done")), agent.Config{User: agent.Say("begin"), Use: []agent.Middleware{agent.Use(wipe)}}), stone.Config{})
		want := `{"text":"done"}`
		if reason == "content_filter" || reason == "refusal" {
			want = string(reasons.ModelRefused)
		}
		if reason == "model_context_window_exceeded" { // nothing is left out of so short a conversation
			want = string(reasons.Overflow)
		}
		if got := outcome(t, res, err); ran || got != want {
			t.Errorf("%s: ran %v, %s (%v)", reason, ran, got, err)
		}
	}
}

// TestCutText takes no text that something else than the model ended.
func TestCutText(t *testing.T) {
	for reason, want := range map[string]string{"length": string(reasons.Truncated), "model_length": string(reasons.Truncated), "some_new_limit": string(reasons.Truncated), "content_filter": string(reasons.ModelRefused), "stop": `{"text":"so it"}`, "": `{"text":"so it"}`} {
		half := but(says("so it"), func(r *llm.Reply) { r.StopReason = reason })
		res, err := run(t, agent.New("talk", note, model(half, half), agent.Config{User: agent.Say("begin")}), stone.Config{})
		if got := outcome(t, res, err); got != want {
			t.Errorf("%q: %s, want %s", reason, got, want)
		}
	}
}

// TestEmptyFallback asks the second model after an answer without content.
func TestEmptyFallback(t *testing.T) {
	empty := but(says(" \n"), func(r *llm.Reply) { r.StopReason, r.Reasoning = "STOP", "hm" })
	res, err := run(t, agent.New("talk", note, llm.Fallback(model(empty), model(says("yes"))), agent.Config{User: agent.Say("begin")}), stone.Config{})
	if got := outcome(t, res, err); got != `{"text":"yes"}` {
		t.Errorf("%s, %v", got, err)
	}
	refusal := but(says(""), func(r *llm.Reply) { r.StopReason = "refusal" })
	res, err = run(t, agent.New("talk", note, model(refusal), agent.Config{User: agent.Say("begin")}), stone.Config{})
	if got := outcome(t, res, err); got != string(reasons.ModelRefused) {
		t.Errorf("a refusal without words: %s", got)
	}
}
