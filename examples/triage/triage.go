// Package triage answers support tickets. It reads the tickets from a file of JSON Lines. A model classifies each ticket, and an
// agent looks up orders and pays refunds, each of which a person must approve. The result is a report in CSV.
//
//	go run ./cmd/stone run ./examples/triage     # a sample, and a scripted model
//	OPENAI_API_KEY=… STONE_MODEL=gpt-5-mini go run ./cmd/stone run ./examples/triage -- tickets.jsonl
package triage

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/tool"
)

type Ticket struct {
	ID   int    `json:"id"`
	Text string `json:"text"`
}

type Class struct {
	Area string `json:"area" enum:"order,other" jsonschema:"order: about an order of the customer"`
}

type Outcome struct {
	Reply string `json:"reply" jsonschema:"the answer to the customer, in one sentence"`
}

var (
	Tickets    = dag.NewType[[]Ticket]("tickets")
	OneTicket  = dag.NewType[Ticket]("ticket")
	Classified = dag.NewType[Class]("class")
	Outcomes   = dag.NewType[Outcome]("outcome")
	Report     = dag.NewType[string]("report")
)

// Pipeline returns the pipeline for the tickets in a file, or for the sample.
func Pipeline(args []string) (stone.Ashlar, error) {
	if len(args) > 1 {
		return stone.Ashlar{}, fmt.Errorf("found %q: want at most one file of tickets", args)
	}
	m := chooseModel()
	return stone.Seq("triage",
		stone.Func0("read", Tickets, func(context.Context) ([]Ticket, error) { return read(args...) }),
		stone.Map("each-ticket", Tickets, OneTicket, handle(m), stone.AllLanes()),
		stone.Reduce(stone.Func("report", dag.Lanes3(OneTicket, Classified, Outcomes), Report, report)),
	), nil
}

// handle answers one ticket.
func handle(m llm.Model) stone.Ashlar {
	return stone.Seq("handle",
		classify(m),
		stone.Match("area", stone.Lens("area"),
			stone.Case("order", settle(m)),
			stone.Case("other", stone.Func("forward", OneTicket, Outcomes, forward)),
		),
	)
}

// classify is a call: the model is told which type the answer must have.
func classify(m llm.Model) stone.Ashlar {
	classifier := model.New(call.Metadata{ID: "model/classifier"}, model.Config{Model: m, Prompt: "You classify support tickets."})
	return call.New("classify", Classified, call.Spec{
		Applicator: &call.Applicator{Registry: call.NewRegistry(classifier)},
		Intent:     "ticket/classify",
		Input:      call.From(OneTicket),
	})
}

// settle is an agent. A person must approve each refund.
func settle(m llm.Model) stone.Ashlar {
	return agent.New("settle", Outcomes, m, agent.Config{
		System: agent.Say("You answer tickets about orders. Look the order up, never guess. Refund what was charged too much."),
		User:   agent.Prompt(OneTicket, func(t Ticket) string { return t.Text }),
		Use:    []agent.Middleware{lookUp, tool.Confirm(refund, tool.Ask)},
	})
}

type order struct {
	Item    string  `json:"item"`
	Price   float64 `json:"price"`
	Charged float64 `json:"charged"`
	State   string  `json:"state"`
}

var orders = map[int]order{
	7: {"a kettle", 39, 78, "delivered"},
	9: {"a lamp", 25, 25, "on its way, expected on Friday"},
}

type orderInput struct {
	Order int `json:"order" jsonschema:"number of the order"`
}

var lookUp = tool.Func("look_up", "Returns an order.", func(_ context.Context, in orderInput) (order, error) {
	o, ok := orders[in.Order]
	if !ok {
		return order{}, fmt.Errorf("there is no order %d: ask the customer for the number", in.Order)
	}
	return o, nil
}, tool.Parallel())

type refundInput struct {
	Order  int     `json:"order" jsonschema:"number of the order"`
	Amount float64 `json:"amount" jsonschema:"at most what was charged too much"`
}

// The function itself checks the limit, whatever the model requests and whoever approves it.
var refund = tool.Func("refund", "Pays money back.", func(_ context.Context, in refundInput) (string, error) {
	if o := orders[in.Order]; in.Amount <= 0 || in.Amount > o.Charged-o.Price {
		return "", fmt.Errorf("order %d was charged %.2f too much: refund that at most", in.Order, o.Charged-o.Price)
	}
	return fmt.Sprintf("paid %.2f back", in.Amount), nil
})

func forward(context.Context, Ticket) (Outcome, error) {
	return Outcome{"A colleague will answer you."}, nil
}

//go:embed tickets.jsonl
var sample []byte

func read(file ...string) (tickets []Ticket, err error) {
	data := sample
	if len(file) == 1 {
		if data, err = os.ReadFile(file[0]); err != nil {
			return nil, err
		}
	}
	for line := range bytes.Lines(data) {
		var t Ticket
		if err := json.Unmarshal(line, &t); err != nil {
			return nil, fmt.Errorf("line %d of the tickets: %w", len(tickets)+1, err)
		}
		tickets = append(tickets, t)
	}
	return tickets, nil
}

func report(_ context.Context, lanes []dag.Row3[Ticket, Class, Outcome]) (string, error) {
	var b bytes.Buffer
	rows := [][]string{{"ticket", "area", "reply"}}
	for _, l := range lanes {
		rows = append(rows, []string{strconv.Itoa(l.A.ID), l.B.Area, l.C.Reply})
	}
	err := csv.NewWriter(&b).WriteAll(rows)
	return b.String(), err
}
