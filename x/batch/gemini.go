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

// gemini creates batches of GenerateContent requests, or of EmbedContent requests for vectors. The requests are part of the
// batch. A request for the vectors of many texts becomes one batch request per text. Source: Gemini API reference, "Batch API".
type gemini struct{ vectors bool }

// embeds is the method that returns vectors for several texts.
const embeds = ":batchEmbedContents"

func (gemini) name() string       { return "gemini" }
func (gemini) bounds() (int, int) { return 50_000, 19 << 20 }

func (g gemini) inputs(line json.RawMessage) int {
	var body struct{ Requests []json.RawMessage }
	if !g.vectors || json.Unmarshal(line, &body) != nil {
		return 1
	}
	return max(1, len(body.Requests))
}

func (g gemini) speaks(_ http.Header, f fields) bool {
	return g.vectors && f["requests"] != nil || !g.vectors && f["contents"] != nil
}

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

// model returns "", because the endpoint names the model.
func (gemini) model(json.RawMessage) string { return "" }

// root returns the part of the URL that precedes the paths of models and batches, such as
// https://generativelanguage.googleapis.com/v1beta.
func (gemini) root(to endpoint) string {
	root, _, _ := strings.Cut(to.url, "/models/")
	return root
}

func (g gemini) make(ctx context.Context, to endpoint, name string, group []*request) (string, error) {
	type one struct {
		Request  json.RawMessage   `json:"request"`
		Metadata map[string]string `json:"metadata"`
	}
	var all []one
	for _, r := range group {
		if !g.vectors {
			all = append(all, one{r.line, map[string]string{"key": r.key}})
			continue
		}
		body, err := decode[struct{ Requests []json.RawMessage }](r.line)
		if err != nil {
			return "", err
		}
		for i, text := range body.Requests {
			all = append(all, one{text, map[string]string{"key": r.key, "text": fmt.Sprintf("%d/%d", i, len(body.Requests))}})
		}
	}
	body, err := json.Marshal(map[string]any{"batch": map[string]any{
		"displayName": name, "inputConfig": map[string]any{"requests": map[string]any{"requests": all}},
	}})
	if err != nil {
		return "", err
	}
	model, method := to.url[:strings.LastIndex(to.url, ":")], ":batchGenerateContent"
	if g.vectors {
		method = ":asyncBatchEmbedContent"
	}
	data, err := to.do(ctx, http.MethodPost, model+method, "application/json", body, false)
	if err != nil {
		return "", err
	}
	made, err := decode[operation](data)
	return made.Name, err
}

// An operation represents a batch. In its JSON, 64-bit numbers are strings.
type operation struct {
	Name     string
	Done     bool
	Metadata struct {
		Name, DisplayName, State string
		CreateTime               time.Time
		BatchStats               struct {
			RequestCount, SuccessfulRequestCount, FailedRequestCount string
		}
	}
	Error    *struct{ Message string }
	Response struct {
		output
		Output output
	}
}

type output struct{ InlinedResponses, InlinedEmbedContentResponses inlined }

func (o output) all() inlined {
	o.InlinedResponses.InlinedResponses = append(o.InlinedResponses.InlinedResponses, o.InlinedEmbedContentResponses.InlinedResponses...)
	return o.InlinedResponses
}

type inlined struct {
	InlinedResponses []struct {
		Metadata struct{ Key, Text string }
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
			if one.Metadata.DisplayName == b.Name {
				return cmp.Or(one.Name, one.Metadata.Name), true, nil
			}
		}
		if list.NextPageToken == "" {
			return "", true, nil
		}
		page = "&pageToken=" + url.QueryEscape(list.NextPageToken)
	}
}

func (g gemini) state(ctx context.Context, to endpoint, id string) (s Status, e end, err error) {
	b, err := get[operation](ctx, to, g.root(to)+"/"+id)
	if err != nil {
		return s, e, err
	}
	done, _ := strconv.Atoi(b.Metadata.BatchStats.SuccessfulRequestCount) // a missing number counts as 0
	failed, _ := strconv.Atoi(b.Metadata.BatchStats.FailedRequestCount)
	s.Total, _ = strconv.Atoi(b.Metadata.BatchStats.RequestCount)
	if s.Done = done + failed; !b.Metadata.CreateTime.IsZero() {
		s.Expires = b.Metadata.CreateTime.Add(48 * time.Hour)
	}
	// The state begins with BATCH_STATE or JOB_STATE.
	_, state, _ := strings.Cut(b.Metadata.State, "_STATE_")
	switch state {
	case "SUCCEEDED", "CANCELLED", "EXPIRED":
		return s, end{over: true, how: "it is " + strings.ToLower(state), canceled: state == "CANCELLED"}, nil
	case "FAILED":
		why := "it does not say why"
		if b.Error != nil {
			why = b.Error.Message
		}
		return s, end{over: true, refused: true, how: "the provider refused it: " + why}, nil
	}
	return s, end{over: b.Done, how: "it is done"}, nil
}

func (g gemini) answers(ctx context.Context, to endpoint, id string, each func(string, answer)) error {
	text, err := to.open(ctx, http.MethodGet, g.root(to)+"/"+id, "", nil, true)
	if err != nil {
		return err
	}
	defer text.Close()
	var b operation
	if err := json.NewDecoder(text).Decode(&b); err != nil {
		return fmt.Errorf("the provider's answer cannot be read: %w", err)
	}
	all := append(b.Response.all().InlinedResponses, b.Response.Output.all().InlinedResponses...)
	lists := map[string]*vectors{}
	for _, one := range all {
		key := one.Metadata.Key
		switch {
		case one.Error != nil:
			if before := lists[key]; before == nil || before.all != nil {
				each(key, refusal(cmp.Or(statusOf[one.Error.Code], http.StatusInternalServerError), one.Error.Status, one.Error.Message))
			}
			lists[key] = &vectors{} // the vectors of the request's other texts are useless
		case one.Response != nil && !g.vectors:
			each(key, answer{http.StatusOK, one.Response})
		case one.Response != nil:
			if lists[key] == nil {
				lists[key] = &vectors{all: map[int]json.RawMessage{}, counted: true}
			}
			if err := lists[key].add(one.Metadata.Text, one.Response); err != nil {
				return err
			}
		}
	}
	for key, list := range lists {
		if body := list.body(); body != nil {
			each(key, answer{http.StatusOK, body})
		}
	}
	return nil
}

// vectors are the answers to the texts of one request.
type vectors struct {
	all     map[int]json.RawMessage
	most    int
	tokens  int
	counted bool // whether the provider has counted all tokens
}

// add adds the answer for a text. The name of the text, such as "0/64", contains its index and the number of texts.
func (v *vectors) add(text string, data json.RawMessage) error {
	var at int
	if _, err := fmt.Sscanf(text, "%d/%d", &at, &v.most); err != nil {
		return fmt.Errorf("the provider answered a text %q that was not sent", text)
	}
	one, err := decode[struct {
		Embedding  json.RawMessage
		TokenCount json.Number // a string, like all 64-bit numbers
	}](data)
	if err == nil && v.all != nil {
		n, _ := one.TokenCount.Int64() // a missing number counts as 0
		v.all[at], v.tokens, v.counted = one.Embedding, v.tokens+int(n), v.counted && n > 0
	}
	return err
}

// body returns the answer in the form of a direct answer, or nil as long as the answer to a text is missing.
func (v *vectors) body() json.RawMessage {
	if v.most == 0 || len(v.all) != v.most {
		return nil
	}
	out := map[string]any{}
	list := make([]json.RawMessage, 0, v.most)
	for i := range v.most {
		list = append(list, v.all[i])
	}
	if out["embeddings"] = list; v.counted {
		out["usageMetadata"] = map[string]int{"promptTokenCount": v.tokens}
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	return body
}

// statusOf maps those values of google.rpc.Code that mean an invalid request to HTTP statuses.
var statusOf = map[int]int{3: http.StatusBadRequest, 5: http.StatusNotFound, 7: http.StatusForbidden, 8: http.StatusTooManyRequests, 9: http.StatusBadRequest}

func (g gemini) cancel(ctx context.Context, to endpoint, id string) error {
	_, err := to.do(ctx, http.MethodPost, g.root(to)+"/"+id+":cancel", "application/json", []byte("{}"), true)
	return err
}
