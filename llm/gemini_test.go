package llm_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/gemini"
)

// geminiExchange is a recorded request of the Gemini API with its answer.
type geminiExchange struct {
	Request geminiRequest
	Reply   json.RawMessage // of a plain exchange
	name    string
	sse     []byte // the answer as a stream; a plain reply is a stream of one event
}

type geminiRequest struct {
	Contents []struct {
		Role  string
		Parts []map[string]any
	}
	System struct {
		Parts []struct{ Text string }
	} `json:"systemInstruction"`
}

// geminiExchanges reads the recorded exchanges that match a pattern, in order.
func geminiExchanges(t testing.TB, pattern string) []geminiExchange {
	t.Helper()
	var list []geminiExchange
	for _, file := range need.Recorded(t, "data/streams/gemini/"+pattern+".json") {
		data, err := os.ReadFile(file)
		x := geminiExchange{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if x.name == "EXPECTED" {
			continue
		}
		if err = cmp.Or(err, json.Unmarshal(data, &x)); err == nil && x.Reply == nil {
			x.sse, err = os.ReadFile(strings.TrimSuffix(file, ".json") + ".sse")
		} else {
			var line bytes.Buffer
			err = cmp.Or(err, json.Compact(&line, x.Reply))
			x.sse = fmt.Appendf(nil, "data: %s\n\n", line.Bytes())
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		list = append(list, x)
	}
	return list
}

// recording derives what a reader has to make of the answer from its documents.
func (x geminiExchange) recording(t testing.TB) recording {
	t.Helper()
	var want expected
	for data := range strings.SplitSeq(string(x.sse), "\n") {
		data, ok := strings.CutPrefix(strings.TrimSpace(data), "data:")
		if !ok {
			continue
		}
		var doc struct {
			Candidates []struct {
				Content struct {
					Parts []struct {
						Text    string
						Thought bool
						Call    *llm.ToolCall `json:"functionCall"`
					}
				}
				FinishReason, FinishMessage *string
			}
			Usage map[string]any `json:"usageMetadata"`
		}
		var calls struct {
			Candidates []struct {
				Content struct {
					Parts []struct {
						Call struct{ Args json.RawMessage } `json:"functionCall"`
					}
				}
			}
		}
		if err := cmp.Or(json.Unmarshal([]byte(data), &doc), json.Unmarshal([]byte(data), &calls)); err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		for i, c := range doc.Candidates {
			for j, p := range c.Content.Parts {
				switch {
				case p.Call != nil:
					p.Call.ID = cmp.Or(p.Call.ID, "made up")
					p.Call.Input = calls.Candidates[i].Content.Parts[j].Call.Args
					want.ToolCalls = append(want.ToolCalls, *p.Call)
				case p.Thought:
					want.Reasoning += p.Text
				default:
					want.Text += p.Text
				}
			}
			if c.FinishReason != nil {
				want.StopReason = c.FinishReason
			}
			switch deref(c.FinishReason) {
			case "SAFETY":
				want.Refusal = "the answer was blocked: SAFETY, HARM_CATEGORY_HATE_SPEECH"
			case "MODEL_ARMOR":
				want.Refusal = *c.FinishMessage
			}
		}
		tokens := func(name string) int {
			n, _ := doc.Usage[name].(float64)
			return int(n)
		}
		want.Usage.In = new(tokens("promptTokenCount") + tokens("toolUsePromptTokenCount"))
		want.Usage.Out = new(tokens("totalTokenCount") - *want.Usage.In)
		want.UsageExtra.Cached, want.UsageExtra.Reasoning = tokens("cachedContentTokenCount"), tokens("thoughtsTokenCount")
	}
	return recording{x.name, "gemini", x.sse, want}
}

// TestGeminiWhole reads the plain answers as the documents that they are.
func TestGeminiWhole(t *testing.T) {
	for _, x := range geminiExchanges(t, "*") {
		if x.Reply == nil {
			continue
		}
		for what, body := range map[string]string{"a document": string(x.Reply), "a list": "[" + string(x.Reply) + "]\n"} {
			client := cutter([]byte(body), 100)
			client.Transport.(*cutServer).mediaType = "application/json; charset=UTF-8"
			t.Run(x.name+"/"+what, func(t *testing.T) {
				x.recording(t).check(t, 100, gemini.New(gemini.Config{Model: "m", URL: "http://test.invalid", NoStream: true, HTTPClient: client}))
			})
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestGeminiTurns repeats recorded conversations and compares what is sent with what was sent: the
// signatures are returned where they came.
func TestGeminiTurns(t *testing.T) {
	for _, pattern := range []string{"instructions-only-with-tool-calls-?", "streaming-tool-call-thought-signature-?"} {
		list := geminiExchanges(t, pattern)
		t.Run(pattern, func(t *testing.T) {
			var sent geminiRequest
			turn := 0
			client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				sent = geminiRequest{}
				if err = cmp.Or(err, json.Unmarshal(body, &sent)); err != nil {
					return nil, err
				}
				return &http.Response{StatusCode: 200, Request: r, Body: &cutBody{list[turn].sse, 100}}, nil
			})}
			m := gemini.New(gemini.Config{Model: "m", URL: "http://test.invalid", HTTPClient: client})
			req := &llm.Request{Messages: []llm.Message{llm.User(list[0].Request.Contents[0].Parts[0]["text"].(string))}}
			for _, p := range list[0].Request.System.Parts {
				req.System += p.Text
			}
			for ; turn < len(list); turn++ {
				want := list[turn].Request
				if turn > 0 {
					req.Messages = append(req.Messages, results(t, req.Messages[len(req.Messages)-1], want)...)
				}
				reply, err := llm.Collect(t.Context(), m, req)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := plain(t, sent), plain(t, want); got != want {
					t.Errorf("turn %d: sent\n%s\nwant\n%s", turn, got, want)
				}
				req.Messages = append(req.Messages, stored(t, reply.Message()))
			}
		})
	}
}

// results returns the results of a message's calls as the last turn of a request has them.
func results(t *testing.T, m llm.Message, r geminiRequest) []llm.Message {
	t.Helper()
	var list []llm.Message
	for i, p := range r.Contents[len(r.Contents)-1].Parts {
		value := p["functionResponse"].(map[string]any)["response"].(map[string]any)["return_value"]
		list = append(list, llm.ToolResult(m.ToolCalls[i].ID, value.(string)))
	}
	return list
}

// stored returns a message as it comes out of a store.
func stored(t *testing.T, m llm.Message) llm.Message {
	t.Helper()
	var out llm.Message
	raw, err := json.Marshal(m)
	if err = cmp.Or(err, json.Unmarshal(raw, &out)); err != nil {
		t.Fatal(err)
	}
	return out
}

// plain renders the turns of a request without the choices of the client that recorded them: IDs
// that it made up, the alphabet of base64, and its name for a result.
func plain(t *testing.T, r geminiRequest) string {
	t.Helper()
	for _, c := range r.Contents {
		for _, p := range c.Parts {
			if s, ok := p["thoughtSignature"].(string); ok {
				p["thoughtSignature"] = strings.NewReplacer("-", "+", "_", "/").Replace(s)
			}
			if call, ok := p["functionCall"].(map[string]any); ok {
				delete(call, "id")
			}
			if result, ok := p["functionResponse"].(map[string]any); ok {
				delete(result, "id")
				response := result["response"].(map[string]any)
				result["response"] = cmp.Or(response["output"], response["return_value"])
			}
		}
	}
	// The last part of a streamed answer may be empty text without a signature.
	for i, c := range r.Contents[1:] {
		r.Contents[i+1].Parts = slices.DeleteFunc(c.Parts, func(p map[string]any) bool { return len(p) == 1 && p["text"] == "" })
	}
	return strings.ReplaceAll(show(t, r), "},", "},\n")
}
