package batch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// openAI creates batches of Chat Completions, Responses or Embeddings: a file of requests is uploaded, and the batch produces a
// file of answers. Source: OpenAI, API reference, "Batch" and "Files".
type openAI struct{ path string }

func (openAI) name() string       { return "openai" }
func (openAI) bounds() (int, int) { return 50_000, 190 << 20 }

// inputs returns the number of texts in a request for vectors. The limit on the number of requests in a batch applies to texts
// there.
func (o openAI) inputs(line json.RawMessage) int {
	var body struct{ Input []json.RawMessage }
	if o.path != "/embeddings" || json.Unmarshal(line, &body) != nil {
		return 1 // a single text
	}
	return max(1, len(body.Input))
}

func (o openAI) speaks(_ http.Header, f fields) bool {
	return f["model"] != nil && (f["messages"] != nil || f["input"] != nil)
}

func (openAI) line(f fields) (line, same json.RawMessage, err error) {
	if line, err = f.without("stream", "stream_options"); err == nil {
		same, err = f.without("stream", "stream_options", "max_tokens", "max_completion_tokens", "max_output_tokens")
	}
	return line, same, err
}

func (openAI) model(line json.RawMessage) string { return modelOf(line) }

// modelOf returns the model named in a body.
func modelOf(line json.RawMessage) string {
	var body struct{ Model string }
	_ = json.Unmarshal(line, &body) // it has been decoded before
	return body.Model
}

func (o openAI) make(ctx context.Context, to endpoint, name string, group []*request) (string, error) {
	file, err := o.upload(ctx, to, name, group)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]any{
		"input_file_id": file, "endpoint": "/v1" + o.path, "completion_window": "24h", "metadata": map[string]string{"stone": name},
	})
	if err != nil {
		return "", err
	}
	data, err := to.do(ctx, http.MethodPost, to.base(o.path)+"/batches", "application/json", body, false)
	if err != nil {
		return "", err
	}
	made, err := decode[openAIBatch](data)
	return made.ID, err
}

// upload uploads the requests. A file that no batch uses costs nothing.
func (o openAI) upload(ctx context.Context, to endpoint, name string, group []*request) (string, error) {
	var text, body bytes.Buffer
	for _, r := range group {
		line, err := json.Marshal(map[string]any{"custom_id": r.key, "method": "POST", "url": "/v1" + o.path, "body": r.line})
		if err != nil {
			return "", err
		}
		text.Write(append(line, '\n'))
	}
	form := multipart.NewWriter(&body)
	_ = form.WriteField("purpose", "batch") // cannot fail, because it is written to memory
	part, err := form.CreateFormFile("file", name+".jsonl")
	if err == nil {
		_, err = io.Copy(part, &text)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		return "", err
	}
	data, err := to.do(ctx, http.MethodPost, to.base(o.path)+"/files", form.FormDataContentType(), body.Bytes(), true)
	if err != nil {
		return "", err
	}
	file, err := decode[struct{ ID string }](data)
	return file.ID, err
}

type openAIBatch struct {
	ID       string            `json:"id"`
	Status   string            `json:"status"`
	Metadata map[string]string `json:"metadata"`
	Expires  int64             `json:"expires_at"`
	Output   string            `json:"output_file_id"`
	Faults   string            `json:"error_file_id"`
	Counts   struct {
		Completed, Failed int
	} `json:"request_counts"`
	Errors struct {
		Data []struct{ Message string }
	} `json:"errors"`
}

// find looks for a batch by its name among batches of the same age.
func (o openAI) find(ctx context.Context, to endpoint, b *made, _ map[string]bool) (string, bool, error) {
	for after := ""; ; {
		page, err := get[struct {
			Data []struct {
				openAIBatch
				Created int64 `json:"created_at"`
			}
			More bool `json:"has_more"`
		}](ctx, to, to.base(o.path)+"/batches?limit=100"+after)
		if err != nil {
			return "", false, err
		}
		for _, one := range page.Data {
			if one.Metadata["stone"] == b.Name {
				return one.ID, true, nil
			}
		}
		last := len(page.Data) - 1
		if !page.More || last < 0 || time.Unix(page.Data[last].Created, 0).Before(b.Noted.Add(-skew)) {
			return "", true, nil
		}
		after = "&after=" + url.QueryEscape(page.Data[last].ID)
	}
}

// skew is the largest assumed error of a provider's clock.
const skew = time.Hour

func (o openAI) state(ctx context.Context, to endpoint, id string) (s Status, e end, err error) {
	b, err := get[openAIBatch](ctx, to, to.base(o.path)+"/batches/"+url.PathEscape(id))
	if err != nil {
		return s, e, err
	}
	s.Done = b.Counts.Completed + b.Counts.Failed
	if b.Expires > 0 {
		s.Expires = time.Unix(b.Expires, 0)
	}
	e = end{over: true, how: "it is " + b.Status, canceled: b.Status == "cancelled"}
	switch b.Status {
	case "completed", "expired", "cancelled":
		return s, e, nil
	case "failed":
		var why []string
		for _, e := range b.Errors.Data {
			why = append(why, e.Message)
		}
		return s, end{over: true, refused: true, how: "the provider refused it: " + cmp.Or(strings.Join(why, "; "), "it does not say why")}, nil
	}
	return s, end{}, nil
}

func (o openAI) answers(ctx context.Context, to endpoint, id string, each func(string, answer)) error {
	b, err := get[openAIBatch](ctx, to, to.base(o.path)+"/batches/"+url.PathEscape(id))
	if err != nil {
		return err
	}
	for _, file := range []string{b.Output, b.Faults} {
		if file == "" {
			continue
		}
		text, err := to.open(ctx, http.MethodGet, to.base(o.path)+"/files/"+url.PathEscape(file)+"/content", "", nil, true)
		if err != nil {
			return err
		}
		err = lines(text, func(line []byte) error {
			one, err := decode[struct {
				Key      string `json:"custom_id"`
				Response *struct {
					Status int             `json:"status_code"`
					Body   json.RawMessage `json:"body"`
				}
				Error *struct{ Code, Message string }
			}](line)
			switch {
			case err != nil:
				return err
			case one.Response != nil && one.Response.Status != 0:
				each(one.Key, answer{one.Response.Status, one.Response.Body})
			case one.Error != nil && one.Error.Code != "batch_expired" && one.Error.Code != "batch_cancelled":
				status := http.StatusBadRequest
				switch one.Error.Code {
				case "server_error":
					status = http.StatusInternalServerError
				case "rate_limit_exceeded":
					status = http.StatusTooManyRequests
				}
				each(one.Key, refusal(status, one.Error.Code, one.Error.Message))
			}
			return nil
		})
		if text.Close(); err != nil {
			return err
		}
	}
	return nil
}

// refusal returns the answer for a request that failed individually.
func refusal(status int, code, message string) answer {
	body, err := json.Marshal(map[string]any{"error": map[string]string{"type": code, "code": code, "message": message}})
	if err != nil { // the body is plain text
		panic(err)
	}
	return answer{status, body}
}

func (o openAI) cancel(ctx context.Context, to endpoint, id string) error {
	_, err := to.do(ctx, http.MethodPost, to.base(o.path)+"/batches/"+url.PathEscape(id)+"/cancel", "", nil, true)
	return err
}
