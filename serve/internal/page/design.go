package page

import (
	"net/http"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// design contains each component of the pages with sample contents.
type design struct {
	States   []string
	Table    runsTable
	Tree     tree
	Lines    []line
	Content  string
	Talk     *talk
	Page     runPage
	Question question
}

// design shows the components of the pages.
func (p *pages) design(w http.ResponseWriter, r *http.Request, v View) error {
	if !p.Design {
		return missing("The server shows its design if it is started with --design.")
	}
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	after := func(ms int) time.Time { return at.Add(time.Duration(ms) * time.Millisecond) }
	body := design{Content: `{"order": 4711, "paid": true, "items": ["cup", "bowl"], "note": null}`,
		Lines: difference("return sum / float64(len(v)+1)\n}", "if len(v) == 0 {\n\treturn 0\n}\nreturn sum / float64(len(v))\n}")}
	for _, s := range append(view.States, "chosen", "rejected", "answer", "partly", "open") {
		body.States = append(body.States, string(s))
	}
	info := journal.RunInfo{ID: "invoices-17", Pipeline: "invoices", Started: at}
	info.State, info.Ended, info.Steps, info.Usage = journal.Failed, after(900), 5, budget.Total{Usage: budget.Usage{InputTokens: 900, OutputTokens: 80, USD: 0.0031}}
	info.Failure = &journal.Failure{Path: "invoices/check", Kind: "refused", Reason: "the total 18.50 does not match the items"}
	body.Page = runPage{runRow: rowOf(info), Failed: true, At: info.Failure.Path, Results: 5, Cost: info.Usage,
		Glance: &view.Glance{Spent: []view.Spender{{Name: "model/large", Answers: 1, Usage: info.Usage.Usage}},
			Refused: []view.Refusal{{Path: "invoices/read/model|small 1", Cap: "model/small", State: view.Rejected, Why: "names-a-source: the field source is empty", Times: 2}}}}
	body.Table.Runs = []runRow{body.Page.runRow}
	t := &body.Tree
	*t = tree{Run: info.ID, All: 1, Costs: true}
	t.Span.add(at, after(900))
	branch := func(name string, state view.State, from, to int, why string, in ...*row) *row {
		s := &journal.Step{Path: "invoices/" + name, Name: name, Kind: "leaf", Recorded: true, Node: dag.ID{1}}
		b := journal.Branch{Path: s.Path, Step: s, Started: after(from), Ended: after(to)}
		return &row{Row: view.Row{Branch: b, State: state, Reason: why}, Name: name, Bar: t.Span.bar(b.Started, b.Ended), In: in, Of: t}
	}
	t.Rows = []*row{branch("invoices", view.Partly, 0, 900, "", branch("read", view.Done, 0, 500, "",
		branch("model/small", view.Rejected, 10, 200, "eval/must-failed"), branch("model/large", view.Chosen, 210, 490, "")),
		branch("check", view.Failed, 510, 900, info.Failure.Reason))}
	left := allowance(shownBytes)
	body.Talk = &talk{System: "You check invoices."}
	body.Talk.add([]llm.Message{llm.User("Is the total of invoice 17 right?"), {Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "read_invoice", Input: []byte(`{"number": 17}`)}}},
		llm.ToolResult("1", `{"total": "18.50"}`), llm.Assistant("It is **not**: the items add up to 20.00.")}, &left)
	t.Rows[0].Failed = 1
	body.Question = questionOf(journal.Question{Run: info.ID, Path: "invoices/pay", Name: "pay", Text: "Pay invoice 17?", Choices: []string{"yes", "no", "no: …", "always", "never"}, Standing: []string{"always", "never"}, Asked: at,
		Call: &ask.Call{Tool: "pay", Input: []byte(`{"invoice": 17, "amount": "20.00"}`), Request: "Pay what is right."}})
	body.Question.Answers = true
	return v.show(w, r, "design", frame{Title: "Design", Body: body})
}
