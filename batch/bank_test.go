package batch_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/llm"
	anthropicllm "github.com/stonelayer/stone/llm/anthropic"
	geminillm "github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// A bank imitates the batches of three providers, as their references describe them.
type bank struct {
	*httptest.Server
	looks  int                                                                  // at a batch until it has ended
	fate   func(body string, round int) string                                  // "", "expired" or "errored", of a request in the round-th batch
	answer func(protocol, body string) string                                   // body of an answer
	met    func(w http.ResponseWriter, r *http.Request, n int, after bool) bool // before and after each request is worked on; true ends it

	mu       sync.Mutex
	requests int
	direct   int
	files    map[string][]byte
	batches  []*deposit
}

// A deposit is a batch.
type deposit struct {
	id, protocol, name string
	created            time.Time
	keys, bodies       []string
	looks              int
	ended, canceled    bool
}

func newBank(t testing.TB, looks int) *bank {
	b := &bank{looks: looks, files: map[string][]byte{}}
	b.fate = func(string, int) string { return "" }
	b.answer = echo
	b.met = func(http.ResponseWriter, *http.Request, int, bool) bool { return false }
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

var number = regexp.MustCompile(`question (\d+)`)

// echo answers "question 7" with "answer 7".
func echo(protocol, body string) string {
	return said(protocol, "answer "+number.FindStringSubmatch(body)[1])
}

// said is the body of an answer with a text, of 1,000 tokens in and 100 out.
func said(protocol, text string) string {
	quoted, _ := json.Marshal(text)
	return map[string]string{
		"chat":      fmt.Sprintf(`{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}`, quoted),
		"responses": fmt.Sprintf(`{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}],"usage":{"input_tokens":1000,"output_tokens":100,"total_tokens":1100}}`, quoted),
		"messages":  fmt.Sprintf(`{"id":"a","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%s}],"stop_reason":"end_turn","usage":{"input_tokens":1000,"output_tokens":100}}`, quoted),
		"gemini":    fmt.Sprintf(`{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":%s}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":100,"totalTokenCount":1100},"modelVersion":"m"}`, quoted),
	}[protocol]
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests++
	if b.met(w, r, b.requests, false) {
		return
	}
	reply := b.work(r)
	if b.met(w, r, b.requests, true) {
		return
	}
	if reply == "" {
		http.Error(w, `{"error":{"message":"there is no such thing"}}`, http.StatusNotFound)
		return
	}
	io.WriteString(w, reply)
}

// work does what a request asks for and returns the reply.
func (b *bank) work(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	path := strings.Trim(r.URL.Path, "/")
	if r.Header.Get("Authorization") != "Bearer key" && r.Header.Get("X-Api-Key") != "key" && r.Header.Get("X-Goog-Api-Key") != "key" {
		return ""
	}
	last := path[strings.LastIndex(path, "/")+1:]
	switch {
	case path == "v1/files":
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		file, _, err := r.FormFile("file")
		if err != nil || r.FormValue("purpose") != "batch" {
			return ""
		}
		text, _ := io.ReadAll(file)
		id := fmt.Sprint("file-", len(b.files))
		b.files[id] = text
		return fmt.Sprintf(`{"id":%q}`, id)
	case strings.HasPrefix(path, "v1/files/") && last == "content":
		return string(b.files[strings.Split(path, "/")[2]])
	case path == "v1/batches" && r.Method == "POST":
		var made struct {
			File     string `json:"input_file_id"`
			Endpoint string
			Window   string `json:"completion_window"`
			Metadata map[string]string
		}
		if json.Unmarshal(body, &made) != nil || made.Window != "24h" {
			return ""
		}
		d := &deposit{protocol: strings.TrimPrefix(made.Endpoint, "/v1/"), name: made.Metadata["stone"]}
		d.protocol = map[string]string{"chat/completions": "chat", "responses": "responses"}[d.protocol]
		for line := range strings.Lines(string(b.files[made.File])) {
			var one struct {
				Key, Method, URL string
				ID               string `json:"custom_id"`
				Body             json.RawMessage
			}
			if json.Unmarshal([]byte(line), &one) != nil || one.Method != "POST" || one.URL != made.Endpoint {
				return ""
			}
			d.keys, d.bodies = append(d.keys, one.ID), append(d.bodies, string(one.Body))
		}
		return b.openAI(b.deposit(d))
	case path == "v1/messages/batches" && r.Method == "POST":
		var made struct {
			Requests []struct {
				ID     string `json:"custom_id"`
				Params json.RawMessage
			}
		}
		if json.Unmarshal(body, &made) != nil {
			return ""
		}
		d := &deposit{protocol: "messages"}
		for _, one := range made.Requests {
			d.keys, d.bodies = append(d.keys, one.ID), append(d.bodies, string(one.Params))
		}
		return b.messages(b.deposit(d))
	case strings.HasSuffix(path, ":batchGenerateContent"):
		var made struct {
			Batch struct {
				DisplayName string
				InputConfig struct {
					Requests struct {
						Requests []struct {
							Request  json.RawMessage
							Metadata struct{ Key string }
						}
					}
				}
			}
		}
		if json.Unmarshal(body, &made) != nil {
			return ""
		}
		d := &deposit{protocol: "gemini", name: made.Batch.DisplayName}
		for _, one := range made.Batch.InputConfig.Requests.Requests {
			d.keys, d.bodies = append(d.keys, one.Metadata.Key), append(d.bodies, string(one.Request))
		}
		return b.gemini(b.deposit(d))
	case path == "v1/batches" || path == "v1/messages/batches" || path == "v1beta/batches":
		var all []string
		for i := len(b.batches) - 1; i >= 0; i-- {
			d := b.batches[i]
			if d.looks++; d.looks > b.looks {
				d.ended = true
			}
			all = append(all, b.shown(d))
		}
		if path == "v1beta/batches" {
			return `{"operations":[` + strings.Join(all, ",") + `]}`
		}
		return `{"data":[` + strings.Join(all, ",") + `],"has_more":false}`
	case strings.Contains(path, "batches/"):
		cancel := last == "cancel" || strings.HasSuffix(path, ":cancel")
		results := last == "results"
		for _, d := range b.batches {
			if !strings.Contains(path+"/", d.id+"/") && !strings.Contains(path, d.id+":") {
				continue
			}
			if cancel {
				d.canceled, d.ended = true, true
			}
			if d.looks++; d.looks > b.looks {
				d.ended = true
			}
			if results {
				return b.results(d)
			}
			return b.shown(d)
		}
	default:
		b.direct++
	}
	return ""
}

func (b *bank) deposit(d *deposit) *deposit {
	d.id, d.created = fmt.Sprintf("batch_%d_", len(b.batches)+1), time.Now()
	b.batches = append(b.batches, d)
	return d
}

func (b *bank) shown(d *deposit) string {
	switch d.protocol {
	case "messages":
		return b.messages(d)
	case "gemini":
		return b.gemini(d)
	}
	return b.openAI(d)
}

// each calls f with the requests of a batch and what became of them, the last first.
func (b *bank) each(d *deposit, f func(key, fate, answer string)) {
	for i := len(d.keys) - 1; i >= 0; i-- {
		fate := b.fate(d.bodies[i], slices.Index(b.batches, d))
		if d.canceled {
			fate = "canceled"
		}
		f(d.keys[i], fate, b.answer(d.protocol, d.bodies[i]))
	}
}

func (b *bank) openAI(d *deposit) string {
	out := map[string]any{"id": d.id, "status": "in_progress", "created_at": d.created.Unix(), "expires_at": d.created.Unix() + 86400,
		"metadata": map[string]string{"stone": d.name}, "request_counts": map[string]int{"total": len(d.keys), "completed": len(d.keys) / 2}}
	if d.ended {
		var good, bad strings.Builder
		b.each(d, func(key, fate, answer string) {
			switch fate {
			case "":
				fmt.Fprintf(&good, `{"id":"x","custom_id":%q,"response":{"status_code":200,"request_id":"q","body":%s},"error":null}`+"\n", key, answer)
			case "errored":
				fmt.Fprintf(&bad, `{"id":"x","custom_id":%q,"response":{"status_code":400,"request_id":"q","body":{"error":{"message":"too bad","type":"invalid_request_error"}}},"error":null}`+"\n", key)
			default:
				fmt.Fprintf(&bad, `{"id":"x","custom_id":%q,"response":null,"error":{"code":"batch_expired","message":"late"}}`+"\n", key)
			}
		})
		b.files["out-"+d.id], b.files["err-"+d.id] = []byte(good.String()), []byte(bad.String())
		out["status"], out["output_file_id"] = "completed", "out-"+d.id
		if bad.Len() > 0 {
			out["error_file_id"] = "err-" + d.id
		}
	}
	text, _ := json.Marshal(out)
	return string(text)
}

func (b *bank) messages(d *deposit) string {
	status, counts := "in_progress", `{"processing":%d,"succeeded":0,"errored":0,"canceled":0,"expired":0}`
	if d.ended {
		status, counts = "ended", `{"processing":0,"succeeded":%d,"errored":0,"canceled":0,"expired":0}`
	}
	return fmt.Sprintf(`{"id":%q,"type":"message_batch","processing_status":%q,"request_counts":%s,"created_at":%q,"expires_at":%q}`, d.id, status,
		fmt.Sprintf(counts, len(d.keys)), d.created.Format(time.RFC3339), d.created.Add(24*time.Hour).Format(time.RFC3339))
}

func (b *bank) results(d *deposit) string {
	var out strings.Builder
	b.each(d, func(key, fate, answer string) {
		result := map[string]string{"": `{"type":"succeeded","message":` + answer + `}`, "errored": `{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error","message":"too bad"}}}`}[fate]
		if result == "" {
			result = `{"type":"expired"}`
		}
		fmt.Fprintf(&out, `{"custom_id":%q,"result":%s}`+"\n", key, result)
	})
	return out.String()
}

func (b *bank) gemini(d *deposit) string {
	state, response := "BATCH_STATE_RUNNING", "{}"
	if d.ended {
		var all []string
		b.each(d, func(key, fate, answer string) {
			switch fate {
			case "":
				all = append(all, fmt.Sprintf(`{"metadata":{"key":%q},"response":%s}`, key, answer))
			case "errored":
				all = append(all, fmt.Sprintf(`{"metadata":{"key":%q},"error":{"code":3,"message":"too bad","status":"INVALID_ARGUMENT"}}`, key))
			}
		})
		state, response = "BATCH_STATE_SUCCEEDED", `{"inlinedResponses":{"inlinedResponses":[`+strings.Join(all, ",")+`]}}`
	}
	return fmt.Sprintf(`{"name":"batches/%s","done":%t,"metadata":{"displayName":%q,"state":%q,"createTime":%q,"batchStats":{"successfulRequestCount":"1"}},"response":%s}`,
		d.id, d.ended, d.name, state, d.created.Format(time.RFC3339), response)
}

// models asks a server, by the names of the protocols.
func models(url string) map[string]llm.Model {
	return map[string]llm.Model{
		"chat":      openai.New(openai.Config{URL: url, Key: "key", Model: "m"}),
		"responses": openai.New(openai.Config{URL: url, Key: "key", Model: "m", Protocol: openai.Responses}),
		"messages":  anthropicllm.New(anthropicllm.Config{URL: url, Key: "key", Model: "m", MaxTokens: 500}),
		"gemini":    geminillm.New(geminillm.Config{URL: url, Key: "key", Model: "m"}),
	}
}
