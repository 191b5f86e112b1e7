// Package planner lets a model write a plan for a task. The plan is checked and shown to a person, and is executed only if the
// person agrees.
//
//	go run ./cmd/stone run ./examples/planner --bind 'task="Tell the writers of open tickets what happens next."'
//
// The model can use five intents, which are Go functions here. It can write a plan that nobody has foreseen, but only with these
// intents and with the effects that the plan below allows. For example, it cannot send mail without the effect net/smtp.
package planner

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/x/cel"
)

//go:embed review.edn
var review []byte

// A Ticket is a request that a customer has written.
type Ticket struct {
	ID   string `json:"id"`
	From string `json:"from"`
	Text string `json:"text"`
}

type (
	Query   struct{}
	Tickets struct {
		Tickets []Ticket `json:"tickets"`
	}
	Letter struct {
		Text string `json:"text"`
	}
	Area struct {
		Area string `json:"area" enum:"bill,bug,other"`
	}
	Answer struct{ To, Area string }
	Mail   struct{ To, Body string }
	Sent   struct {
		Sent bool `json:"sent"`
	}
	Severity struct {
		Severity int `json:"severity" jsonschema:"from 1 to 5"`
	}
)

var open = []Ticket{{"T1", "ada@example.com", "My invoice is wrong."}, {"T2", "bob@example.com", "The page is blank."}}

// Pipeline needs OPENAI_API_KEY.
func Pipeline() (stone.Ashlar, error) {
	return With(openai.New(openai.Config{Model: "gpt-5-mini", Key: llm.Secret(os.Getenv("OPENAI_API_KEY"))}))
}

// With returns the pipeline with a given model.
func With(m llm.Model) (stone.Ashlar, error) {
	p, err := plan.Read(review)
	if err != nil {
		return stone.Ashlar{}, err
	}
	app, err := desk(m)
	if err != nil {
		return stone.Ashlar{}, err
	}
	return p.Ashlar(app, plan.Options{})
}

// desk returns an applicator with the capabilities that answer the calls: the model that writes plans, and the five intents.
func desk(m llm.Model) (*call.Applicator, error) {
	d := &maker{app: &call.Applicator{Language: cel.Language, Plans: plan.Planner(plan.Options{}), Schemas: map[string]*schema.Schema{}, Intents: map[string]call.Intent{"desk/plan": {}}}}
	d.caps = []call.Capability{model.New(call.Metadata{ID: "planner", Intents: []string{"desk/plan"}}, model.Config{Model: m, Prompt: "You plan the work of a help desk."})}
	add(d, "ticket/list", "Lists the open tickets.", nil, func(Query) Tickets { return Tickets{open} })
	add(d, "letter/classify", "Says what a text is about.", nil, func(l Letter) Area {
		if strings.Contains(l.Text, "invoice") {
			return Area{"bill"}
		}
		return Area{"bug"}
	})
	add(d, "letter/rate", "Says how severe a text is.", nil, func(l Letter) Severity { return Severity{1 + strings.Count(l.Text, "!")} })
	add(d, "letter/answer", "Writes the answer to a ticket of an area.", nil, func(a Answer) Letter {
		return Letter{fmt.Sprintf("Dear %s, a person for %s will write today.", a.To, a.Area)}
	})
	add(d, "mail/send", "Sends a mail.", []string{"net/smtp"}, func(m Mail) Sent { return Sent{m.To != "" && m.Body != ""} })
	d.app.Registry = call.NewRegistry(d.caps...)
	return d.app, d.err
}

type maker struct {
	app  *call.Applicator
	caps []call.Capability
	err  error
}

// add adds a function as an intent. The model is shown the schemas of the function's types.
func add[I, O any](d *maker, intent, does string, needs []string, fn func(I) O) {
	for name, of := range map[string]func() (*schema.Schema, error){intent + "/in": schema.For[I], intent + "/out": schema.For[O]} {
		s, err := of()
		if err != nil {
			d.err = err
			return
		}
		d.app.Schemas[name] = s
	}
	d.app.Intents[intent] = call.Intent{Description: does, In: intent + "/in", Out: intent + "/out"}
	m := call.Metadata{ID: "desk/" + strings.ReplaceAll(intent, "/", "-"), Intents: []string{intent}, Needs: append([]string{}, needs...)}
	d.caps = append(d.caps, call.Func(m, func(_ context.Context, input json.RawMessage) (any, error) {
		var in I
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, err
		}
		return fn(in), nil
	}))
}
