package planner

import (
	"context"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/plan"
)

// The first draft has the faults that models make: operations of other languages, and a misnamed field.
const (
	draft = `{"nodes":[{"op":"call","intent":"ticket/list","input":{},"as":"open"},
 {"op":"foreach","over":{"slot/id":["open","tickets"]},"as":"ticket","body":[
  {"op":"call","intent":"letter/classify","input":{"txt":{"slot/id":["ticket","text"]}},"as":"area"}]},
 {"op":"return","input":{"areas":{"slot/id":"area"}}}]}`
	good = `{"nodes":[{"op":"call","intent":"ticket/list","input":{},"as":"open"},
 {"op":"map","over":{"slot/id":["open","tickets"]},"as":"ticket","body":[
  {"op":"call","intent":"letter/classify","input":{"text":{"slot/id":["ticket","text"]}},"as":"area"},
  {"op":"call","intent":"letter/answer","input":{"To":{"slot/id":["ticket","from"]},"Area":{"slot/id":["area","area"]}},"as":"letter"},
  {"op":"call","intent":"mail/send","input":{"To":{"slot/id":["ticket","from"]},"Body":{"slot/id":["letter","text"]}},"as":"mail"}]},
 {"op":"reduce","body":[{"op":"emit","input":{"letters":{"slot/id":"letter"},"mails":{"slot/id":"mail"}}}]}]}`
)

// person answers every question, and keeps the last one.
type person struct {
	says  string
	asked string
}

func (p *person) Ask(_ context.Context, q ask.Question) (ask.Answer, error) {
	p.asked = q.Text
	return ask.Answer{Response: p.says}, nil
}

func TestPlanner(t *testing.T) {
	for says, want := range map[string]string{
		"yes": `{"letters":[{"text":"Dear ada@example.com, a person for bill will write today."},{"text":"Dear bob@example.com, a person for bug will write today."}],"mails":[{"sent":true},{"sent":true}]}`,
		"no":  `"nothing was done"`,
	} {
		m, who := script.New(script.Text(draft), script.Text("```json\n"+good+"\n```")), &person{says: says}
		p, err := With(m)
		if err != nil {
			t.Fatal(err)
		}
		input, err := plan.Bind(dag.DAG{}, map[string]any{"task": "Tell the writers of open tickets what happens next."})
		if err != nil {
			t.Fatal(err)
		}
		result, err := stone.Run(t.Context(), p, stone.Config{Input: input, Frontend: who, Grant: []string{"net/smtp"}})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := plan.Emission.From(result.DAG); err != nil || string(out) != want {
			t.Errorf("%s: emitted %s, %v", says, out, err)
		}
		if len(m.Requests()) != 2 {
			t.Fatalf("the model was asked %d times, want 2", len(m.Requests()))
		}
		messages := m.Requests()[1].Messages
		for _, fault := range []string{`did you mean "map"?`, `did you mean "emit"?`} {
			if told := messages[len(messages)-1].Text(); !strings.Contains(told, fault) {
				t.Errorf("%q is not told: %s", fault, told)
			}
		}
		if want := "May this run?\n" + good; who.asked != want {
			t.Errorf("the person was asked %q", who.asked)
		}
		n, err := result.DAG.Nearest("program")
		if err != nil || len(call.RecordOf(n).Tried[0].Findings) == 0 {
			t.Errorf("the findings about the draft are not in the record: %v", err)
		}
	}
}
