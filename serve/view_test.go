package serve_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/step"
)

// recordedRun writes a run.
type recordedRun struct {
	*testing.T
	j  journal.Journal
	id string
}

// price is what the paid steps declare.
var price = budget.Amount{Roundtrips: 1, USD: 0.25}

func (r recordedRun) do(path, kind string, price budget.Amount, rec step.Record, fails error) {
	r.Helper()
	name := path[strings.LastIndexAny(path, "/")+1:]
	ctx := r.Context()
	if price != (budget.Amount{}) {
		ctx = declared.With(ctx, price)
	}
	key := step.Key{RunID: r.id, Path: path, Kind: kind, Name: name, Digest: sha256.Sum256([]byte(path))}
	if _, err := r.j.Do(ctx, key, func(context.Context) (step.Record, error) { return rec, fails }); !errors.Is(err, fails) {
		r.Fatalf("%s: %v", path, err)
	}
}

// done records a result, failed a failure, and lost an attempt whose process died.
func (r recordedRun) done(path, kind, content string) {
	r.do(path, kind, budget.Amount{}, step.Record{Type: "text", Content: json.RawMessage(content), Time: time.Now()}, nil)
}
func (r recordedRun) failed(path, reason string) {
	r.do(path, "leaf", budget.Amount{}, step.Record{Failure: &dag.FailureContent{Kind: "broken", Reason: reason}, Time: time.Now()}, nil)
}
func (r recordedRun) lost(path, kind string, price budget.Amount) {
	r.do(path, kind, price, step.Record{}, errors.New("the process died"))
}
func (r recordedRun) asks(path string) {
	r.lost(path, "leaf", budget.Amount{})
	if _, err := r.j.Ask(r.Context(), journal.Question{Run: r.id, Path: path, Name: "approve", Text: "Publish?"}); err != nil {
		r.Fatal(err)
	}
}
func (r recordedRun) end(o journal.Outcome) {
	o.Ended = time.Now()
	if err := r.j.End(r.Context(), r.id, o); err != nil {
		r.Fatal(err)
	}
}

// seenRuns are runs about which readers have disagreed. The rows are "name: mark, and what else
// everybody says of it".
var seenRuns = []struct {
	id      string
	write   func(recordedRun)
	state   string
	failure string
	ended   bool // its end is known
	rows    []string
}{
	{"ended", func(r recordedRun) {
		r.done("all/one", "leaf", `"1"`)
		r.end(journal.Outcome{State: journal.Done, Steps: 1})
	}, "done", "", true, []string{"all: ✓", "one: ✓"}},
	{"failed", func(r recordedRun) {
		r.done("all/one", "leaf", `"1"`)
		r.failed("all/two", "no luck")
		r.end(journal.Outcome{State: journal.Failed, Steps: 2, Failure: &journal.Failure{Kind: "broken", Reason: "no luck", Path: "all/two"}})
	}, "failed", "no luck", true, []string{"all: !", "one: ✓", "two: ✗ broken: no luck"}},
	{"waiting", func(r recordedRun) {
		r.done("all/one", "leaf", `"1"`)
		r.asks("all/question")
		r.end(journal.Outcome{State: journal.Waiting, Steps: 1, Failure: &journal.Failure{Kind: "waiting", Reason: "resume the run once it has one"}})
	}, "waiting", "", true, []string{"all: …", "one: ✓", "question: ?"}},
	{"answered", func(r recordedRun) { // what asked a person cost nothing
		r.asks("all/question")
		r.end(journal.Outcome{State: journal.Waiting, Failure: &journal.Failure{Kind: "waiting", Reason: "resume the run once it has one"}})
		if err := r.j.Answer(r.Context(), r.id, "all/question", ask.Answer{Response: "yes"}); err != nil {
			r.Fatal(err)
		}
	}, "answered", "", true, []string{"all: …", "question: …"}},
	{"interrupted", func(r recordedRun) { // without an end, nobody knows how long it took
		r.done("all/one", "leaf", `"1"`)
		r.lost("all/two", "leaf", budget.Amount{})
	}, "interrupted", "", false, []string{"all: …", "one: ✓", "two: … possibly paid"}},
	{"paid", func(r recordedRun) {
		r.lost("all/call", "leaf", budget.Amount{})
		r.lost("all/call/ask", "step", price)
		r.lost("all/call/ask", "step", price)
		r.end(journal.Outcome{State: journal.Canceled})
	}, "canceled", "", true, []string{"all: …", "call: …", "ask: … possibly paid 0.50"}},
	{"again", func(r recordedRun) { // an attempt was lost before one had a result
		r.lost("all/one", "leaf", price)
		r.do("all/one", "leaf", price, step.Record{Type: "text", Content: json.RawMessage(`"1"`), Time: time.Now()}, nil)
		r.end(journal.Outcome{State: journal.Done, Steps: 1})
	}, "done", "", true, []string{"all: ✓", "one: ✓ possibly paid 0.25"}},
	{"agent", func(r recordedRun) { // it went on after a tool call had failed
		r.done("all/agent/turn-1", "step", `{"text":"call"}`)
		r.done("all/agent/tool-1-1", "step", `{"text":"there is no such word","failed":true}`)
		r.done("all/agent/turn-2", "step", `{"text":"done"}`)
		r.done("all/agent", "leaf", `"done"`)
		r.end(journal.Outcome{State: journal.Done, Steps: 4})
	}, "done", "", true, []string{"all: ✓", "agent: ✓", "turn-1: ✓", "tool-1-1: ✗ failed: there is no such word", "turn-2: ✓"}},
	{"left", func(r recordedRun) { // with force, another way was taken
		r.lost("all/agent/turn-1", "step", budget.Amount{})
		r.done("all/agent/turn-2", "step", `{"text":"done"}`)
		r.done("all/agent", "leaf", `"done"`)
		r.end(journal.Outcome{State: journal.Done, Steps: 2})
	}, "done", "", true, []string{"all: ✓", "agent: ✓", "turn-1: … possibly paid", "turn-2: ✓"}},
	{"glue", func(r recordedRun) { // the decision of a match is not the result of its branch
		r.done("all/pick", "decision", `"a"`)
		r.failed("all/pick[\"a\"]/first", "no luck")
		r.done("all/pick[\"a\"]/second", "leaf", `"2"`)
		r.end(journal.Outcome{State: journal.Done, Steps: 3})
	}, "done", "", true, []string{"all: !", "first: ✗ broken: no luck", "second: ✓", `["a"]: !`}},
	{"lanes", func(r recordedRun) {
		r.done("all/each[0]/zero", "leaf", `"0"`)
		r.failed("all/each[1]/one", "no luck")
		r.end(journal.Outcome{State: journal.Done, Steps: 2, Lanes: dag.Losses{Lost: 1, Lanes: 2}})
	}, "done, 1 of 2 lanes lost", "", true, []string{"all: !", "start: ✓", "zero: ✓", "one: ✗ broken: no luck"}},
}

// The command, the pages and the API tell the same of a run.
func TestReadersAgree(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stone.db")
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, run := range seenRuns {
		if _, err := db.Acquire(t.Context(), run.id); err != nil {
			t.Fatal(err)
		}
		info := journal.RunInfo{ID: run.id, Pipeline: "all", Started: time.Now().Add(-time.Minute)}
		if err := db.Begin(t.Context(), info, dag.DAG{}); err != nil {
			t.Fatal(err)
		}
		r := recordedRun{t, db, run.id}
		r.done("all/start", "leaf", `"0"`)
		run.write(r)
		if err := db.Release(run.id); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) string {
		var out bytes.Buffer
		if code := cli.Run(t.Context(), cli.Config{Pipeline: stone.Seq("none"), Name: "stone", Args: append(args, "--db", file), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &bytes.Buffer{}}); code != 0 {
			t.Fatalf("%q ended with %d: %s", args, code, out.String())
		}
		return out.String()
	}
	h := &house{T: t, Steps: servetest.NewSteps(), Server: serveAll(t, serve.Config{Journal: db, Scan: time.Hour, Pipelines: []serve.Pipeline{{Name: "page", Ashlar: servetest.NewSteps().Publish()}}})}
	get := func(path string) string {
		_, text := h.do("GET", path, "", "Accept", "text/html")
		return text
	}
	listed, runs := get("/"), command("runs", "--all")
	for _, run := range seenRuns {
		t.Run(run.id, func(t *testing.T) {
			shown, page := command("show", run.id), get("/runs/"+run.id)
			heads := map[string]string{"runs": line(runs, "^"+run.id+" "), "show": shown[:strings.Index(shown, "\nSTEP")], "list": row(listed, "/runs/"+run.id+`"`), "page": plainly(page[:strings.Index(page, `id="steps"`)])}
			var told api.Run
			if err := json.Unmarshal([]byte(h.want("GET", "/v1/runs/"+run.id, "", 200, "")), &told); err != nil {
				t.Fatal(err)
			}
			heads["api"] = strings.TrimSpace(fmt.Sprint(told.State, ", ", told.Lanes, told.Failure, told.Ended))
			if told.Failure != nil {
				heads["api"] += told.Failure.Reason
			}
			for reader, head := range heads {
				for _, word := range strings.Split(run.state, ", ") {
					if !strings.Contains(head, word) {
						t.Errorf("%s does not say %q: %s", reader, word, head)
					}
				}
				if !strings.Contains(head, run.failure) || run.failure == "" && strings.Contains(head, "once it has one") {
					t.Errorf("%s says as failure %q: %s", reader, run.failure, head)
				}
				if lasted := regexp.MustCompile(`1m0\ds`).MatchString(head); reader != "api" && lasted != run.ended {
					t.Errorf("%s says how long the run took: %t, want %t: %s", reader, lasted, run.ended, head)
				}
			}
			for _, want := range run.rows {
				name, said, _ := strings.Cut(want, ": ")
				fromCommand := line(shown, `^ *\S (\S*[/\]])?`+regexp.QuoteMeta(name)+`( |$)`)
				if name == `["a"]` {
					fromCommand = line(shown, `pick\["a"\]`)
				}
				agree(t, "show", fromCommand, said)
				agree(t, "page", pageRow(page[strings.Index(page, `id="steps"`):], name), said)
			}
		})
	}
}

// agree compares a row of a reader with what is to be said.
func agree(t *testing.T, reader, row, want string) {
	t.Helper()
	want, usd, paid := strings.Cut(want, " possibly paid")
	mark, reason, _ := strings.Cut(want, " ")
	usd = strings.TrimSpace(usd)
	switch {
	case !strings.HasPrefix(strings.TrimSpace(row), mark) || !strings.Contains(row, reason):
		t.Errorf("%s: got %q, want %q", reader, row, want)
	case strings.Contains(row, "possibly paid") != paid, reader == "page" && usd != "" && !strings.Contains(row, usd):
		t.Errorf("%s: got %q, want paid %t %s", reader, row, paid, usd)
	}
}

// line returns the first line of a text that matches.
func line(text, pattern string) string {
	lines := strings.Split(text, "\n")
	if i := slices.IndexFunc(lines, regexp.MustCompile(pattern).MatchString); i >= 0 {
		return lines[i]
	}
	return ""
}

// plainly returns a part of a page without its marks.
func plainly(part string) string {
	return strings.TrimSpace(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(part, " ")))
}

// row returns the row of a table or a tree that contains something.
func row(page, has string) string {
	rows := strings.Split(strings.ReplaceAll(page, `<div class="row`, "<tr "), "<tr")
	if i := slices.IndexFunc(rows, func(r string) bool { return strings.Contains(r, has) }); i >= 0 {
		return plainly("<tr" + rows[i])
	}
	return ""
}

// pageRow returns the row of a step on the page of a run, whose name is a link.
func pageRow(page, name string) string {
	return row(strings.ReplaceAll(page, "</a>", "\x00"), html.EscapeString(name)+"\x00")
}
