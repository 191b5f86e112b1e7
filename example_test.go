package stone_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

type TicketDoc struct {
	Text string `json:"text"`
}

type TriageDoc struct {
	Area string `json:"area" enum:"billing,bug"`
}

type ReplyDoc struct {
	Text string `json:"text"`
}

var (
	Ticket = dag.NewType[TicketDoc]("ticket")
	Triage = dag.NewType[TriageDoc]("triage")
	Reply  = dag.NewType[ReplyDoc]("reply")
)

func triage(_ context.Context, t TicketDoc) (TriageDoc, error) {
	if strings.Contains(t.Text, "invoice") {
		return TriageDoc{"billing"}, nil
	}
	return TriageDoc{"bug"}, nil
}

func answer(text string) func(context.Context, TicketDoc) (ReplyDoc, error) {
	return func(context.Context, TicketDoc) (ReplyDoc, error) { return ReplyDoc{text}, nil }
}

func support() stone.Ashlar {
	return stone.Seq("support",
		stone.Func("triage", Ticket, Triage, triage),
		stone.Match("route", stone.Lens("area"),
			stone.Case("billing", stone.Func("billing", Ticket, Reply, answer("The invoice is on its way."))),
			stone.Case("bug", stone.Func("bug", Ticket, Reply, answer("Which version is it?"))),
		),
	)
}

func Example() {
	input, err := Ticket.Append(dag.DAG{}, TicketDoc{"my invoice is missing"})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := stone.Run(context.Background(), support(), stone.Config{Input: input})
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := Reply.From(res.DAG)
	fmt.Println(reply.Text, err)
	// Output: The invoice is on its way. <nil>
}
