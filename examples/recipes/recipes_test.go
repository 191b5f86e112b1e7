package recipes

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/stonetest"
)

func TestPipeline(t *testing.T) {
	t.Setenv("STONE_MODEL", "small")
	t.Setenv("OPENAI_API_KEY", "none")
	for name := range recipes {
		p, err := Pipeline([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		var given []dag.AnyType
		for _, q := range p.QueriesAll() {
			if typ := q.Type(); typ != nil {
				given = append(given, typ)
			}
		}
		if err := stone.Validate(p, stone.Given{Input: given}).Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Pipeline([]string{"cake"}); err == nil || !strings.Contains(err.Error(), "want one of bot, citations") {
		t.Error(err)
	}
}

// A quote that the document does not contain is refused, and the model is told which.
func TestCitations(t *testing.T) {
	h := stonetest.Mock(t,
		stonetest.JSON(Facts{[]Fact{{"Slate splits.", "slate splits into thin plates"}}}),
		stonetest.JSON(Facts{[]Fact{{"Slate splits.", "splits into plates"}}}),
	)
	res := h.Run(Citations(h.Model()), dag.Of(Document.With(Text{"Slate\nsplits into\nplates."})))
	if got := stonetest.Nearest(t, Extracted, res.DAG); got.Facts[0].Quote != "splits into plates" {
		t.Error(got)
	}
	if told := last(h.Requests()[1]); !strings.Contains(told, "thin plates") {
		t.Errorf("the model was told %q", told)
	}
}

func last(r *llm.Request) string { return r.Messages[len(r.Messages)-1].Text() }

const diff = `diff --git a/a.go b/a.go
--- a/a.go
+++ b/a.go
@@ -1,2 +1,3 @@
 package a
+var x = 1
 // end
diff --git a/b.go b/b.go
--- a/b.go
+++ b/b.go
@@ -7,0 +8 @@
+panic(1)
`

func TestReview(t *testing.T) {
	h := stonetest.MockFunc(t, func(_ int, r *llm.Request) script.Answer {
		switch text := last(r); {
		case strings.Contains(text, "panic(1)") && strings.Contains(text, "Added lines: 8"):
			return stonetest.JSON(Comments{[]Comment{{Line: 8, Severity: "bug", Text: "It panics."}}})
		case strings.Contains(text, "was not added"):
			return stonetest.JSON(Comments{[]Comment{{Line: 2, Severity: "style", Text: "Name it."}}})
		}
		return stonetest.JSON(Comments{[]Comment{{Line: 1, Severity: "style", Text: "Name it."}}})
	})
	res := h.Run(Review(h.Model()), dag.Of(PullRequest.With(diff)))
	if got, want := stonetest.Nearest(t, Reviewed, res.DAG), "b.go:8: bug: It panics.\na.go:2: style: Name it.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	stonetest.Mock(t).Fails(Review(h.Model()), dag.Of(PullRequest.With("no diff")), "no-diff")
}

func TestRetrieve(t *testing.T) {
	files := fstest.MapFS{
		"a.md":     {Data: []byte("Slate is cut by hand.\n\nMarble is cut by wire.")},
		"b/b.md":   {Data: []byte("Basalt is not cut.")},
		"c/c.text": {Data: []byte("How is marble cut by wire?")},
	}
	got, err := retrieve(files, "How is MARBLE cut by wire?", 1)
	if err != nil || len(got) != 1 || got[0] != (Passage{"a.md", "Marble is cut by wire."}) {
		t.Error(got, err)
	}
}

func TestRAG(t *testing.T) {
	h := stonetest.Mock(t,
		stonetest.JSON(Sourced{"By wire [2].", []int{2}}),
		stonetest.JSON(Sourced{"By wire [1].", []int{1}}),
	)
	res := h.Run(answer(h.Model()), dag.Of(Question.With("How is marble cut?"), Retrieved.With([]Passage{{"a.md", "Marble is cut by wire."}})))
	if got := stonetest.Nearest(t, Answered, res.DAG); got.Answer != "By wire [1]." {
		t.Error(got)
	}
}

// A search that is lost does not end the research.
func TestResearch(t *testing.T) {
	h := stonetest.Mock(t,
		stonetest.JSON(Queries{[]string{"marble", "broken", "wire"}}),
		stonetest.JSON(Sourced{"By wire [1], since 1898 [2].", []int{1, 2}}),
	)
	p := research(h.Model(), func(_ context.Context, q string) ([]Passage, error) {
		if q == "broken" {
			return nil, stone.Fail("down", "the server is down")
		}
		return []Passage{{"https://stone.example/" + q, q}}, nil
	})
	res := h.Run(p, dag.Of(Question.With("How is marble cut?")))
	if got := stonetest.Nearest(t, Answered, res.DAG); len(got.Sources) != 2 {
		t.Error(got)
	}
}

// Code parses what it can, the gate refuses a guess that is no day, and a row that nobody reads is lost.
func TestClean(t *testing.T) {
	h := stonetest.MockFunc(t, func(_ int, r *llm.Request) script.Answer {
		if strings.Contains(r.Messages[0].Text(), "whenever") {
			return stonetest.JSON(Guess{""})
		}
		return stonetest.JSON(Guess{"2026-03-05"})
	})
	res := h.Run(Clean(h.Model()), dag.Of(RawDays.With([]string{"5.3.2026", "the fifth of March 2026", "whenever"})))
	if got, want := stonetest.Nearest(t, CleanCSV, res.DAG), "2026-03-05,\"5.3.2026\"\n2026-03-05,\"the fifth of March 2026\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := len(h.Requests()); n != 3 {
		t.Errorf("%d requests, want one for a row and two for the lost one", n)
	}
}

// A number that the table does not have is refused.
func TestReport(t *testing.T) {
	h := stonetest.Mock(t, stonetest.Text("Errors doubled to 240."), stonetest.Text("There were 24 errors, 12 more."))
	res := h.Run(Report(h.Model()), dag.Of(Measured.With(Stats{map[string]float64{"errors": 24}, map[string]float64{"errors": 12}})))
	if got := stonetest.Nearest(t, Written, res.DAG); !strings.HasPrefix(got.Text, "There were 24") {
		t.Error(got)
	}
}

func TestTranslate(t *testing.T) {
	h := stonetest.Mock(t,
		stonetest.Text("The stone is soft."),
		stonetest.JSON(Verdict{3, "hart is hard"}),
		stonetest.Text("The stone is hard."),
		stonetest.JSON(Verdict{10, ""}),
	)
	res := h.Run(Translate(h.Model()), dag.Of(Original.With("Der Stein ist hart.")))
	if got := stonetest.Nearest(t, Translated, res.DAG); got.Text != "The stone is hard." {
		t.Error(got)
	}
	if told := last(h.Requests()[2]); !strings.Contains(told, "hart is hard") {
		t.Errorf("the translator was told %q", told)
	}
}

// person gives the same answer to every question.
type person string

func (p person) Ask(context.Context, ask.Question) (ask.Answer, error) {
	return ask.Answer{Response: string(p)}, nil
}

func TestIncident(t *testing.T) {
	for answer, want := range map[person]string{"yes": "Down: for an hour", "no": "not published"} {
		h := stonetest.Mock(t, stonetest.JSON(Summary{"Down", "for an hour", "unknown"}))
		h.Config.Frontend = answer
		res := h.Run(Incident(h.Model()), dag.Of(Log.With("500 500 500")))
		if got := stonetest.Nearest(t, Published, res.DAG); got != want {
			t.Errorf("%s: got %q, want %q", answer, got, want)
		}
	}
}

// The second message is read with the first, and the reminder is made only if its user agrees.
func TestBot(t *testing.T) {
	h := stonetest.Mock(t, stonetest.Text("Hello Ada."), stonetest.Call("remind", `{"text":"tea","in":"90m"}`), stonetest.Text("I will."))
	h.Config.Frontend = person("yes")
	res := h.Run(Bot(h.Model()), dag.Of(Message.With("I am Ada.")))
	d, err := Message.Append(res.DAG, "Remind me of my tea.")
	if err != nil {
		t.Fatal(err)
	}
	res = h.Run(Bot(h.Model()), d)
	if got := stonetest.Nearest(t, Reply, res.DAG); got != (agent.Text{Text: "I will."}) {
		t.Error(got)
	}
	h.Called("remind")
	if n := len(h.Requests()[1].Messages); n != 3 {
		t.Errorf("the second turn has %d messages, want 3", n)
	}
}
