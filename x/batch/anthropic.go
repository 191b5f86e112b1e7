package batch

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// anthropic creates Message Batches. Source: Anthropic, API reference, "Message Batches".
type anthropic struct{}

func (anthropic) name() string               { return "anthropic" }
func (anthropic) bounds() (int, int)         { return 100_000, 240 << 20 }
func (anthropic) inputs(json.RawMessage) int { return 1 }

func (anthropic) speaks(h http.Header, f fields) bool {
	return h.Get("Anthropic-Version") != "" && f["model"] != nil && f["messages"] != nil
}

func (anthropic) line(f fields) (line, same json.RawMessage, err error) {
	if line, err = f.without("stream"); err == nil {
		same, err = f.without("stream", "max_tokens")
	}
	return line, same, err
}

// model returns "", because a batch may contain requests to several models.
func (anthropic) model(json.RawMessage) string { return "" }

func (anthropic) make(ctx context.Context, to endpoint, _ string, group []*request) (string, error) {
	type one struct {
		Key    string          `json:"custom_id"`
		Params json.RawMessage `json:"params"`
	}
	all := make([]one, len(group))
	for i, r := range group {
		all[i] = one{r.key, r.line}
	}
	body, err := json.Marshal(map[string]any{"requests": all})
	if err != nil {
		return "", err
	}
	data, err := to.do(ctx, http.MethodPost, to.url+"/batches", "application/json", body, false)
	if err != nil {
		return "", err
	}
	made, err := decode[messageBatch](data)
	return made.ID, err
}

type messageBatch struct {
	ID      string    `json:"id"`
	Status  string    `json:"processing_status"`
	Created time.Time `json:"created_at"`
	Expires time.Time `json:"expires_at"`
	Counts  struct {
		Processing, Succeeded, Errored, Canceled, Expired int
	} `json:"request_counts"`
}

func (b messageBatch) done() int {
	return b.Counts.Succeeded + b.Counts.Errored + b.Counts.Canceled + b.Counts.Expired
}

// find returns the batch if it exists. Batches have no names, so find can identify a batch only by its answers, once the batch
// has ended.
func (p anthropic) find(ctx context.Context, to endpoint, b *made, known map[string]bool) (string, bool, error) {
	sure := true
	for after := ""; ; {
		page, err := get[struct {
			Data []messageBatch
			More bool   `json:"has_more"`
			Last string `json:"last_id"`
		}](ctx, to, to.url+"/batches?limit=100"+after)
		if err != nil {
			return "", false, err
		}
		for _, one := range page.Data {
			if known[one.ID] || one.Counts.Processing+one.done() != len(b.Keys) || one.Created.Before(b.Noted.Add(-skew)) {
				continue
			}
			if one.Status != "ended" {
				sure = false
				continue
			}
			ours := false
			err := p.results(ctx, to, one.ID, func(key, _ string, _ json.RawMessage, _ fault) error {
				ours = slices.Contains(b.Keys, key)
				return errEnough
			})
			if err != nil && !errors.Is(err, errEnough) {
				return "", false, err
			}
			if ours {
				return one.ID, true, nil
			}
		}
		last := len(page.Data) - 1
		if !page.More || last < 0 || page.Data[last].Created.Before(b.Noted.Add(-skew)) {
			return "", sure, nil
		}
		after = "&after_id=" + url.QueryEscape(page.Last)
	}
}

// errEnough stops reading results.
var errEnough = errors.New("enough was read")

func (anthropic) state(ctx context.Context, to endpoint, id string) (Status, end, error) {
	b, err := get[messageBatch](ctx, to, to.url+"/batches/"+url.PathEscape(id))
	how := end{over: b.Status == "ended", how: "it has ended", canceled: b.Counts.Canceled > 0}
	return Status{Done: b.done(), Expires: b.Expires}, how, err
}

// A fault is the reason why a request failed.
type fault struct{ Type, Message string }

// results calls each for every result. The type of a result is succeeded, errored, canceled or expired.
func (anthropic) results(ctx context.Context, to endpoint, id string, each func(key, kind string, message json.RawMessage, f fault) error) error {
	text, err := to.open(ctx, http.MethodGet, to.url+"/batches/"+url.PathEscape(id)+"/results", "", nil, true)
	if err != nil {
		return err
	}
	defer text.Close()
	return lines(text, func(line []byte) error {
		one, err := decode[struct {
			Key    string `json:"custom_id"`
			Result struct {
				Type    string
				Message json.RawMessage
				Error   struct {
					fault
					Error *fault // present within the body of an error reply
				}
			}
		}](line)
		if err != nil {
			return err
		}
		f := one.Result.Error.fault
		if inner := one.Result.Error.Error; inner != nil {
			f = *inner
		}
		return each(one.Key, one.Result.Type, one.Result.Message, f)
	})
}

func (p anthropic) answers(ctx context.Context, to endpoint, id string, each func(string, answer)) error {
	return p.results(ctx, to, id, func(key, kind string, message json.RawMessage, f fault) error {
		switch kind {
		case "succeeded":
			each(key, answer{http.StatusOK, message})
		case "errored":
			status := http.StatusInternalServerError
			if f.Type == "invalid_request_error" {
				status = http.StatusBadRequest
			}
			each(key, refusal(status, f.Type, f.Message))
		}
		return nil
	})
}

func (anthropic) cancel(ctx context.Context, to endpoint, id string) error {
	_, err := to.do(ctx, http.MethodPost, to.url+"/batches/"+url.PathEscape(id)+"/cancel", "", nil, true)
	return err
}
