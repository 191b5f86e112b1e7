// Package batchtest imitates the batch APIs of OpenAI, Anthropic and Gemini for tests, as described in their reference
// documentation.
package batchtest

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
)

// A Server is a server whose API key is "key". Its functions are called while it is locked.
type Server struct {
	*httptest.Server
	// Looks is the number of times that a batch is queried until it has ended.
	Looks int
	// Fate returns the fate of a request in batch number round: "", "expired" or "errored".
	Fate func(body string, round int) string
	// Answer returns the body of an answer. By default it is Echo.
	Answer func(protocol, body string) string
	// Met is called before and after the n-th request is handled. If it returns true, the request ends.
	Met func(w http.ResponseWriter, r *http.Request, n int, after bool) bool

	sync.Mutex
	Requests int
	Direct   int // number of requests for a single answer
	files    map[string][]byte
	Batches  []*Batch
}

// A Batch is a batch that was sent to the server.
type Batch struct {
	id, protocol, name string
	created            time.Time
	Keys, bodies       []string
	looks              int
	ended, Canceled    bool
}

// New starts a server whose batches have ended after they were queried looks times.
func New(t testing.TB, looks int) *Server {
	b := &Server{Looks: looks, files: map[string][]byte{}}
	b.Fate = func(string, int) string { return "" }
	b.Answer = Echo
	b.Met = func(http.ResponseWriter, *http.Request, int, bool) bool { return false }
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

// Number returns the number of the question in a body.
func Number(body string) string { return number.FindStringSubmatch(body)[1] }

var number = regexp.MustCompile(`question (\d+)`)

// Echo answers "question 7" with "answer 7", and texts to embed with vectors of two numbers.
func Echo(protocol, body string) string {
	switch protocol {
	case "embeddings":
		return embedded(body)
	case "gemini text":
		return `{"embedding":` + geminiVector(body) + `,"tokenCount":"500"}`
	case "gemini texts":
		var asked struct{ Requests []json.RawMessage }
		_ = json.Unmarshal([]byte(body), &asked)
		var all []string
		for _, one := range asked.Requests {
			all = append(all, geminiVector(string(one)))
		}
		return `{"embeddings":[` + strings.Join(all, ",") + `]}`
	}
	return Said(protocol, "answer "+Number(body))
}

func geminiVector(body string) string {
	return fmt.Sprintf(`{"values":[%d,1]}`, len(body))
}

func embedded(body string) string {
	var asked struct{ Input []string }
	_ = json.Unmarshal([]byte(body), &asked)
	var all []string
	for i, text := range asked.Input {
		all = append(all, fmt.Sprintf(`{"index":%d,"embedding":[%d,1]}`, i, len(text)))
	}
	return fmt.Sprintf(`{"model":"m","data":[%s],"usage":{"prompt_tokens":1000}}`, strings.Join(all, ","))
}

// Said returns the body of an answer with the given text, with a usage of 1,000 input tokens and 100 output tokens.
func Said(protocol, text string) string {
	quoted, _ := json.Marshal(text)
	return map[string]string{
		"chat":      fmt.Sprintf(`{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}`, quoted),
		"responses": fmt.Sprintf(`{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}],"usage":{"input_tokens":1000,"output_tokens":100,"total_tokens":1100}}`, quoted),
		"messages":  fmt.Sprintf(`{"id":"a","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%s}],"stop_reason":"end_turn","usage":{"input_tokens":1000,"output_tokens":100}}`, quoted),
		"gemini":    fmt.Sprintf(`{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":%s}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":100,"totalTokenCount":1100},"modelVersion":"m"}`, quoted),
	}[protocol]
}

func (b *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.Lock()
	defer b.Unlock()
	b.Requests++
	if b.Met(w, r, b.Requests, false) {
		return
	}
	reply := b.work(r)
	if b.Met(w, r, b.Requests, true) {
		return
	}
	if reply == "" {
		http.Error(w, `{"error":{"message":"there is no such thing"}}`, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, reply)
}

// work handles a request and returns the body of the response.
func (b *Server) work(r *http.Request) string {
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
		d := &Batch{protocol: strings.TrimPrefix(made.Endpoint, "/v1/"), name: made.Metadata["stone"]}
		d.protocol = map[string]string{"chat/completions": "chat", "responses": "responses", "embeddings": "embeddings"}[d.protocol]
		for line := range strings.Lines(string(b.files[made.File])) {
			var one struct {
				Key, Method, URL string
				ID               string `json:"custom_id"`
				Body             json.RawMessage
			}
			if json.Unmarshal([]byte(line), &one) != nil || one.Method != "POST" || one.URL != made.Endpoint {
				return ""
			}
			d.Keys, d.bodies = append(d.Keys, one.ID), append(d.bodies, string(one.Body))
		}
		return b.openAI(b.add(d))
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
		d := &Batch{protocol: "messages"}
		for _, one := range made.Requests {
			d.Keys, d.bodies = append(d.Keys, one.ID), append(d.bodies, string(one.Params))
		}
		return b.messages(b.add(d))
	case strings.HasSuffix(path, ":batchGenerateContent"), strings.HasSuffix(path, ":asyncBatchEmbedContent"):
		var made struct {
			Batch struct {
				DisplayName string
				InputConfig struct {
					Requests struct {
						Requests []struct {
							Request  json.RawMessage
							Metadata map[string]string
						}
					}
				}
			}
		}
		if json.Unmarshal(body, &made) != nil {
			return ""
		}
		d := &Batch{protocol: "gemini", name: made.Batch.DisplayName}
		if strings.HasSuffix(path, "EmbedContent") {
			d.protocol = "gemini text"
		}
		for _, one := range made.Batch.InputConfig.Requests.Requests {
			metadata, _ := json.Marshal(one.Metadata)
			d.Keys, d.bodies = append(d.Keys, string(metadata)), append(d.bodies, string(one.Request))
		}
		return b.gemini(b.add(d))
	case path == "v1/batches" || path == "v1/messages/batches" || path == "v1beta/batches":
		var all []string
		for i := len(b.Batches) - 1; i >= 0; i-- {
			d := b.Batches[i]
			if d.looks++; d.looks > b.Looks {
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
		for _, d := range b.Batches {
			if !strings.Contains(path+"/", d.id+"/") && !strings.Contains(path, d.id+":") {
				continue
			}
			if cancel {
				d.Canceled, d.ended = true, true
			}
			if d.looks++; d.looks > b.Looks {
				d.ended = true
			}
			if results {
				return b.results(d)
			}
			return b.shown(d)
		}
	default:
		b.Direct++
		for end, protocol := range map[string]string{"/completions": "chat", "/responses": "responses", "/messages": "messages", "/embeddings": "embeddings", "Content": "gemini", ":batchEmbedContents": "gemini texts"} {
			if strings.HasSuffix(path, end) {
				return b.Answer(protocol, string(body))
			}
		}
	}
	return ""
}

func (b *Server) add(d *Batch) *Batch {
	d.id, d.created = fmt.Sprintf("batch_%d_", len(b.Batches)+1), time.Now()
	b.Batches = append(b.Batches, d)
	return d
}

func (b *Server) shown(d *Batch) string {
	switch d.protocol {
	case "messages":
		return b.messages(d)
	case "gemini", "gemini text":
		return b.gemini(d)
	}
	return b.openAI(d)
}

// each calls f with the requests of a batch and their fates, last one first.
func (b *Server) each(d *Batch, f func(key, fate, answer string)) {
	for i := len(d.Keys) - 1; i >= 0; i-- {
		fate := b.Fate(d.bodies[i], slices.Index(b.Batches, d))
		if d.Canceled {
			fate = "canceled"
		}
		f(d.Keys[i], fate, b.Answer(d.protocol, d.bodies[i]))
	}
}

func (b *Server) openAI(d *Batch) string {
	out := map[string]any{"id": d.id, "status": "in_progress", "created_at": d.created.Unix(), "expires_at": d.created.Unix() + 86400,
		"metadata": map[string]string{"stone": d.name}, "request_counts": map[string]int{"total": len(d.Keys), "completed": len(d.Keys) / 2}}
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

func (b *Server) messages(d *Batch) string {
	status, counts := "in_progress", `{"processing":%d,"succeeded":0,"errored":0,"canceled":0,"expired":0}`
	if d.ended {
		status, counts = "ended", `{"processing":0,"succeeded":%d,"errored":0,"canceled":0,"expired":0}`
	}
	return fmt.Sprintf(`{"id":%q,"type":"message_batch","processing_status":%q,"request_counts":%s,"created_at":%q,"expires_at":%q}`, d.id, status,
		fmt.Sprintf(counts, len(d.Keys)), d.created.Format(time.RFC3339), d.created.Add(24*time.Hour).Format(time.RFC3339))
}

func (b *Server) results(d *Batch) string {
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

func (b *Server) gemini(d *Batch) string {
	state, response, list := "BATCH_STATE_RUNNING", "{}", "inlinedResponses"
	if d.protocol == "gemini text" {
		list = "inlinedEmbedContentResponses"
	}
	if d.ended {
		var all []string
		b.each(d, func(key, fate, answer string) {
			switch fate {
			case "":
				all = append(all, fmt.Sprintf(`{"metadata":%s,"response":%s}`, key, answer))
			case "errored":
				all = append(all, fmt.Sprintf(`{"metadata":%s,"error":{"code":3,"message":"too bad","status":"INVALID_ARGUMENT"}}`, key))
			}
		})
		state, response = "BATCH_STATE_SUCCEEDED", `{"`+list+`":{"inlinedResponses":[`+strings.Join(all, ",")+`]}}`
	}
	return fmt.Sprintf(`{"name":"batches/%s","done":%t,"metadata":{"displayName":%q,"state":%q,"createTime":%q,"batchStats":{"requestCount":"%d","successfulRequestCount":"0"}},"response":%s}`,
		d.id, d.ended, d.name, state, d.created.Format(time.RFC3339), len(d.Keys), response)
}
