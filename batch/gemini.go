package batch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// gemini makes batches of GenerateContent, with the requests inline. Source: Gemini API reference, "Batch API".
type gemini struct{}

func (gemini) name() string               { return "gemini" }
func (gemini) bounds() (int, int)         { return 50_000, 19 << 20 }
func (gemini) inputs(json.RawMessage) int { return 1 }

func (gemini) speaks(_ http.Header, f fields) bool { return f["contents"] != nil }

func (gemini) line(f fields) (line, same json.RawMessage, err error) {
	if line, err = f.without(); err != nil {
		return nil, nil, err
	}
	if f["generationConfig"] != nil {
		config, err := decode[fields](f["generationConfig"])
		if err != nil {
			return nil, nil, err
		}
		if f["generationConfig"], err = config.without("maxOutputTokens"); err != nil {
			return nil, nil, err
		}
	}
	same, err = f.without()
	return line, same, err
}

// model is none: the endpoint names it.
func (gemini) model(json.RawMessage) string { return "" }

// root is the URL below which batches are, as https://generativelanguage.googleapis.com/v1beta.
func (gemini) root(to endpoint) string {
	root, _, _ := strings.Cut(to.url, "/models/")
	return root
}

func (gemini) make(ctx context.Context, to endpoint, name string, group []*request) (string, error) {
	type one struct {
		Request  json.RawMessage   `json:"request"`
		Metadata map[string]string `json:"metadata"`
	}
	all := make([]one, len(group))
	for i, r := range group {
		all[i] = one{r.line, map[string]string{"key": r.key}}
	}
	body, err := json.Marshal(map[string]any{"batch": map[string]any{
		"displayName": name, "inputConfig": map[string]any{"requests": map[string]any{"requests": all}},
	}})
	if err != nil {
		return "", err
	}
	model, _, _ := strings.Cut(to.url, ":streamGenerateContent")
	model, _, _ = strings.Cut(model, ":generateContent")
	data, err := to.do(ctx, http.MethodPost, model+":batchGenerateContent", "application/json", body, false)
	if err != nil {
		return "", err
	}
	made, err := decode[operation](data)
	return made.Name, err
}

// An operation is a batch. Numbers of 64 bits are strings in its JSON.
type operation struct {
	Name     string
	Done     bool
	Metadata struct {
		Name, DisplayName, State string
		CreateTime               time.Time
		BatchStats               struct {
			SuccessfulRequestCount, FailedRequestCount string
		}
	}
	Error    *struct{ Message string }
	Response struct {
		InlinedResponses inlined
		Output           struct{ InlinedResponses inlined }
	}
}

type inlined struct {
	InlinedResponses []struct {
		Metadata struct{ Key string }
		Response json.RawMessage
		Error    *struct {
			Code    int
			Message string
			Status  string
		}
	}
}

func (g gemini) find(ctx context.Context, to endpoint, b *made, _ map[string]bool) (string, bool, error) {
	for page := ""; ; {
		list, err := get[struct {
			Operations    []operation
			NextPageToken string
		}](ctx, to, g.root(to)+"/batches?pageSize=100"+page)
		if err != nil {
			return "", false, err
		}
		for _, one := range list.Operations {
			if one.Metadata.DisplayName == b.name {
				return cmp.Or(one.Name, one.Metadata.Name), true, nil
			}
		}
		if list.NextPageToken == "" {
			return "", true, nil
		}
		page = "&pageToken=" + url.QueryEscape(list.NextPageToken)
	}
}

func (g gemini) state(ctx context.Context, to endpoint, id string) (s Status, ended bool, err error) {
	b, err := get[operation](ctx, to, g.root(to)+"/"+id)
	if err != nil {
		return s, false, err
	}
	done, _ := strconv.Atoi(b.Metadata.BatchStats.SuccessfulRequestCount) // missing is 0
	failed, _ := strconv.Atoi(b.Metadata.BatchStats.FailedRequestCount)
	if s.Done = done + failed; !b.Metadata.CreateTime.IsZero() {
		s.Expires = b.Metadata.CreateTime.Add(48 * time.Hour)
	}
	// The state begins with BATCH_STATE or JOB_STATE.
	_, state, _ := strings.Cut(b.Metadata.State, "_STATE_")
	switch state {
	case "SUCCEEDED", "CANCELLED", "EXPIRED":
		return s, true, nil
	case "FAILED":
		why := "it says not why"
		if b.Error != nil {
			why = b.Error.Message
		}
		return s, false, fmt.Errorf("the provider refused it: %s", why)
	}
	return s, b.Done, nil
}

func (g gemini) answers(ctx context.Context, to endpoint, id string, each func(string, answer)) error {
	text, err := to.open(ctx, http.MethodGet, g.root(to)+"/"+id, "", nil, true)
	if err != nil {
		return err
	}
	defer text.Close()
	var b operation
	if err := json.NewDecoder(text).Decode(&b); err != nil {
		return fmt.Errorf("the answer of the provider cannot be read: %w", err)
	}
	all := b.Response.InlinedResponses.InlinedResponses
	if len(all) == 0 {
		all = b.Response.Output.InlinedResponses.InlinedResponses
	}
	for _, one := range all {
		switch {
		case one.Error != nil:
			each(one.Metadata.Key, refusal(cmp.Or(statusOf[one.Error.Code], http.StatusInternalServerError), one.Error.Status, one.Error.Message))
		case one.Response != nil:
			each(one.Metadata.Key, answer{http.StatusOK, one.Response})
		}
	}
	return nil
}

// statusOf are the HTTP statuses of the codes of google.rpc.Code that say that the request is at fault.
var statusOf = map[int]int{3: http.StatusBadRequest, 5: http.StatusNotFound, 7: http.StatusForbidden, 8: http.StatusTooManyRequests, 9: http.StatusBadRequest}

func (g gemini) cancel(ctx context.Context, to endpoint, id string) error {
	_, err := to.do(ctx, http.MethodPost, g.root(to)+"/"+id+":cancel", "application/json", []byte("{}"), true)
	return err
}
