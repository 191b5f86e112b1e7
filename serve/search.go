package serve

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/serve/api"
)

// searchKind is the kind of capability that searches documents.
const searchKind = "search"

// searches returns the ids of the capabilities that search documents, sorted.
func (s *Server) searches() (ids []string) {
	if app := s.cfg.Applicator; app != nil && app.Registry != nil {
		for _, id := range app.Registry.IDs() {
			if m, ok := app.Registry.Lookup(id); ok && m.Kind == searchKind {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (s *Server) postSearch(w http.ResponseWriter, r *http.Request, who Principal) error {
	var req api.Search
	if err := readBody(r, &req); err != nil {
		return err
	}
	found, err := s.search(r, who, req)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, found)
}

// search calls a capability as POST /v1/act does: with the caller's grant, budget and roles.
func (s *Server) search(r *http.Request, who Principal, req api.Search) (out api.Found, err error) {
	all := s.searches()
	if req.Capability == "" && len(all) == 1 {
		req.Capability = all[0]
	}
	switch {
	case len(all) == 0:
		return out, notFound("this server has no capability of kind search")
	case req.Capability == "":
		return out, invalid("capability is missing: this server has %s", strings.Join(all, ", "))
	case !slices.Contains(all, req.Capability):
		return out, notFound("no capability %q of kind search: this server has %s%s", req.Capability, strings.Join(all, ", "), suggest.Hint(req.Capability, slices.Values(all)))
	}
	data, err := envelope(s.cfg.Applicator, req)
	if err != nil {
		return out, err
	}
	resp, err := s.ask(r, who, s.cfg.Applicator, data)
	if err == nil {
		err = resp.Err
	}
	if err != nil {
		return out, searchFailed(err)
	}
	if err := json.Unmarshal(resp.Reply.Out, &out); err != nil {
		return out, err
	}
	out.Capability, out.Usage = req.Capability, resp.Reply.Usage.Usage
	return out, nil
}

// ask answers a capability request for a caller that waits for the answer.
func (s *Server) ask(r *http.Request, who Principal, app *call.Applicator, data []byte) (resp call.Response, err error) {
	id, err := s.counted(r.Context(), who, "")
	if err != nil {
		return resp, err
	}
	ctx, done, err := s.work(r.Context(), who)
	if err != nil {
		return resp, err
	}
	defer done()
	return s.answerRequest(ctx, who, id, app, data, s.actConfig(who)), nil
}

// envelope returns the request envelope that calls one capability.
func envelope(app *call.Applicator, req api.Search) ([]byte, error) {
	m, _ := app.Registry.Lookup(req.Capability)
	intent := append(slices.Clone(m.Intents), "documents/search")[0] // a capability without intents accepts any intent
	type object = map[string]any
	task := object{"intent": intent, "requires": object{"cap/kind": searchKind}, "dispatch": object{"candidates": []string{req.Capability}}}
	req.Capability = ""
	return json.Marshal(object{"proto": 1, "trace": object{"id": freshID()}, "task": task, "input": req})
}

// searchFailed returns the problem for a call that failed.
func searchFailed(err error) error {
	e := call.AsError(err)
	switch status := actStatus(err); {
	case e == nil || status == http.StatusServiceUnavailable || status == http.StatusConflict:
		return err
	case e.Type == reasons.InputInvalid || status == http.StatusUnprocessableEntity:
		return invalid("%s", e.Message)
	default:
		return problem(problems.Unanswered, http.StatusBadGateway, "%s", e.Message)
	}
}
