package serve_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stonelayer/stone/serve"
	pages "github.com/stonelayer/stone/serve/internal/page"
)

// named lets a caller say who it is.
type named struct{}

func (named) Principal(r *http.Request) (serve.Principal, error) {
	name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return serve.Principal{}, errors.New("who are you?")
	}
	return serve.Principal{Name: name, By: "token " + name}, nil
}

// An answer stands with who gave it, in the API, on pages and in the file of a run.
func TestWhoAnswered(t *testing.T) {
	h := newHouse(t, named{})
	as := func(method, path, body string, want int) string {
		t.Helper()
		status, text := h.do(method, path, body, "Authorization", "Bearer boss", "Accept", "text/html")
		if status != want {
			t.Fatalf("%s %s: %d %s, want %d", method, path, status, text, want)
		}
		return text
	}
	// The question is named by its path, its name, its number or the end of its path.
	for run, word := range map[string]string{"a": "page/approve", "b": "approve", "c": "1"} {
		as("PUT", "/v1/runs/"+run, `{"pipeline":"page","input":{"text":"marble"}}`, 201)
		as("GET", "/v1/runs/"+run+"/result?wait=30s", "", 202)
		as("POST", "/v1/runs/"+run+"/answers", `{"question":"2","response":"yes"}`, 404)
		as("POST", "/v1/runs/"+run+"/answers", `{"question":"prove","response":"yes"}`, 404)
		as("POST", "/v1/runs/"+run+"/answers", `{"question":"`+word+`","response":"perhaps"}`, 422)
		as("POST", "/v1/runs/"+run+"/answers", `{"question":"`+word+`","response":"yes"}`, 200)
		as("POST", "/v1/runs/"+run+"/answers", `{"question":"`+word+`","response":"no"}`, 409)
		as("GET", "/v1/runs/"+run+"/result?wait=30s", "", 200)
		if text := as("GET", "/v1/runs/"+run+"/questions", "", 200); !strings.Contains(text, `"response":"yes","by":"token boss"`) {
			t.Errorf("questions of %s: %s", run, text)
		}
	}
	var file bytes.Buffer
	if err := pages.Write(t.Context(), &file, h.journal, "a"); err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{
		"page of the run":  as("GET", "/runs/a", "", 200),
		"page of the step": as("GET", "/runs/a/step?path="+url.QueryEscape("page/approve"), "", 200),
		"file of the run":  file.String(),
	} {
		if !strings.Contains(text, "<b>yes</b> by token boss, <time") {
			t.Errorf("the %s does not say who answered: %s", where, text)
		}
	}
	// Without an Access nobody is known, and that is said.
	h = newHouse(t, nil)
	as("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"marble"}}`, 201)
	as("GET", "/v1/runs/a/result?wait=30s", "", 202)
	as("POST", "/v1/runs/a/answers", `{"question":"approve","response":"yes"}`, 200)
	as("GET", "/v1/runs/a/result?wait=30s", "", 200)
	if text := as("GET", "/runs/a", "", 200); !strings.Contains(text, "<b>yes</b> by unknown") {
		t.Errorf("the page does not say that it is unknown who answered: %s", text)
	}
}
