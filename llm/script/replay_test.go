package script_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/stonetest"
)

const key = "sk-very-secret-key"

func ask(text string) *llm.Request {
	return &llm.Request{Messages: []llm.Message{llm.User(text)}}
}

// record asks a scripted server over both protocols and returns the file.
func record(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "session.jsonl")
	rec, err := script.Record(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(script.New(script.Text("one ä"), script.Text("two"), script.Text("three"), script.Status(400, "wrong key: "+key)))
	defer server.Close()
	chat := openai.New(openai.Config{Model: "m", URL: server.URL + "?api-key=" + key, Key: key, HTTPClient: rec.Client()})
	messages := anthropic.New(anthropic.Config{Model: "m", URL: server.URL, Key: key, HTTPClient: rec.Client()})
	for _, m := range []llm.Model{chat, chat, messages} {
		if _, err := llm.Collect(t.Context(), m, ask("hi")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := llm.Collect(t.Context(), messages, ask("something wrong")); err == nil {
		t.Fatal("no error to record")
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestReplay(t *testing.T) {
	file := record(t)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), key) {
		t.Errorf("the key was recorded:\n%s", raw)
	}
	player, err := script.Replay(file)
	if err != nil {
		t.Fatal(err)
	}
	chat := openai.New(openai.Config{Model: "m", URL: "http://elsewhere.invalid", Key: "other", HTTPClient: player.Client()})
	messages := anthropic.New(anthropic.Config{Model: "m", URL: "http://elsewhere.invalid", Key: "other", HTTPClient: player.Client()})
	if mode := chat.Info().Mode; mode != llm.Replay {
		t.Errorf("the mode is %q, want replay", mode)
	}
	for _, want := range []string{"one ä", "two", "two"} {
		if reply, err := llm.Collect(t.Context(), chat, ask("hi")); err != nil || reply.Text != want {
			t.Errorf("%q, %v; want %q", reply.Text, err, want)
		}
	}
	if reply, err := llm.Collect(t.Context(), messages, ask("hi")); err != nil || reply.Text != "three" {
		t.Errorf("%q, %v; want three", reply.Text, err)
	}
	var h *llm.HTTPError
	if _, err := llm.Collect(t.Context(), messages, ask("something wrong")); !errors.As(err, &h) || h.Status != 400 {
		t.Errorf("error %v, want status 400", err)
	}
}

func TestNotRecorded(t *testing.T) {
	player, err := script.Replay(record(t))
	if err != nil {
		t.Fatal(err)
	}
	m := openai.New(openai.Config{Model: "m", URL: "http://elsewhere.invalid", Key: "other", HTTPClient: player.Client()})
	_, err = llm.Collect(t.Context(), m, ask("ho"))
	var missing *script.NotRecordedError
	if !errors.As(err, &missing) {
		t.Fatalf("error %v, want a *NotRecordedError", err)
	}
	if !strings.Contains(missing.Nearest, `"content":"hi"`) || !strings.Contains(missing.Differs, `ho\"`) || !strings.Contains(missing.Differs, `hi\"`) {
		t.Errorf("nearest %s, differs %s; want the request that says hi", missing.Nearest, missing.Differs)
	}
}

func TestSpeed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slow.jsonl")
	line := `{"method":"POST","path":"/v1/chat/completions","body":{"messages":[{"content":"hi","role":"user"}],"model":"m","stream":true,"stream_options":{"include_usage":true}},"status":200,"pieces":[{"ms":1000,"text":"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"},{"ms":5000,"text":"data: [DONE]\n\n"}]}`
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		for speed, want := range map[float64]time.Duration{0: 0, 1: 5 * time.Second, 2: 2500 * time.Millisecond} {
			player, err := script.Replay(file)
			if err != nil {
				t.Fatal(err)
			}
			player.Speed = speed
			m := openai.New(openai.Config{Model: "m", URL: "http://elsewhere.invalid", Key: "other", HTTPClient: player.Client()})
			begin := time.Now()
			if reply, err := llm.Collect(t.Context(), m, ask("hi")); err != nil || reply.Text != "a" {
				t.Errorf("%q, %v; want a", reply.Text, err)
			}
			if took := time.Since(begin); took != want {
				t.Errorf("speed %v: took %s, want %s", speed, took, want)
			}
		}
	})
}

// TestRecordedModel checks that a model keeps the contract while it is recorded.
func TestRecordedModel(t *testing.T) {
	stonetest.TestModel(t, func(t *testing.T, answers ...script.Answer) llm.Model {
		rec, err := script.Record(filepath.Join(t.TempDir(), "x.jsonl"), nil)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(script.New(answers...))
		t.Cleanup(server.Close)
		return openai.New(openai.Config{Model: "m", URL: server.URL, Key: "test-key", HTTPClient: rec.Client()})
	})
}
