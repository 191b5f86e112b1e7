package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
)

// This file contains the pipelines of a support desk, which the pictures in the documentation show.

var (
	reply   = dag.NewType[string]("reply")
	invoice = dag.NewType[int]("invoice")
	amount  = dag.NewType[int]("amount")
	letter  = dag.NewType[message]("mail")
	urgency = dag.NewType[string]("urgency")
)

type message struct {
	Letter string `json:"letter"`
}

// replying writes a reply to a customer. A reply that promises too much is rejected.
func replying(promise string) stone.Ashlar {
	write := stone.Func("write", brief, draft, func(_ context.Context, b summary) (string, error) {
		return "Dear Ms Brandt, we are sorry. " + promise + " (" + b.Source + ")", nil
	})
	check := stone.Func("check", draft, reply, func(_ context.Context, text string) (string, error) {
		if strings.Contains(text, "refund") {
			return "", stone.Fail("refused", "the reply promises a refund, which nobody has approved: change the prompt and resume")
		}
		return text, nil
	})
	approve := stone.Ask("approve", reply, approval, func(text string) string { return "Send this reply?\n\n" + text }, stone.Choices("yes", "no"))
	send := stone.Func2("send", reply, approval, article, func(_ context.Context, text string, a stone.Answer) (string, error) {
		return a.Response + ": " + text, nil
	})
	return stone.Seq("reply", summarising(call.Cascade), write, check, approve, send)
}

// invoicing reads n invoices. One in a thousand has no total.
func invoicing(n int) stone.Ashlar {
	list := dag.ReaderFunc(func(dag.DAG) ([]int, error) {
		all := make([]int, n)
		for i := range all {
			all[i] = 2_026_000_000 + i
		}
		return all, nil
	})
	read := stone.Func("read", invoice, amount, func(_ context.Context, i int) (int, error) {
		if i%1000 == 999 {
			return 0, stone.Fail("unreadable", "invoice %d has no total", i)
		}
		return 1000 + i*37%90_000, nil
	})
	sum := stone.Func("sum", dag.Lanes(amount), total, func(_ context.Context, all []int) (sum int, err error) {
		for _, m := range all {
			sum += m
		}
		return sum, nil
	})
	return stone.Seq("invoices", stone.Map("pages", list, invoice, read, stone.Lanes(64)), stone.Reduce(sum))
}

// urgent maps words to how urgent a letter is that contains them.
var urgent = map[string]string{"broken": "soon", "again": "later", "twice": "now", "Saturday": "now", "Thank": "later", "crack": "soon"}

// triaging determines how urgent a letter is. The small model is cheaper, but wrong more often.
func triaging(small bool) stone.Ashlar {
	id, usd, wrong := "model/large", 0.004, uint32(12)
	if small {
		id, usd, wrong = "model/small", 0.0003, 5
	}
	app := &call.Applicator{Registry: call.NewRegistry(call.Capability{
		Metadata: call.Metadata{ID: id, Kind: "llm", Cost: call.Cost{USD: usd}},
		Invoke: func(_ context.Context, r *call.Request) (*call.Reply, error) {
			var in message
			if err := json.Unmarshal(r.Input, &in); err != nil {
				return nil, err
			}
			is := ""
			for word, meaning := range urgent {
				if strings.Contains(in.Letter, word) {
					is = meaning
				}
			}
			if is == "" {
				return nil, &call.Error{Type: "unclear", Message: "the letter has no words"}
			}
			h := fnv.New32a()
			fmt.Fprint(h, id, in.Letter)
			if h.Sum32()%wrong == 0 {
				is = "soon"
			}
			return &call.Reply{Out: call.JSON(fmt.Sprintf("%q", is)), Usage: call.Usage{Usage: budget.Usage{InputTokens: 160, OutputTokens: 3, USD: usd}}}, nil
		},
	})}
	return call.New("triage", urgency, call.Spec{Applicator: app, Intent: "ticket/triage", Input: call.From(letter)})
}
