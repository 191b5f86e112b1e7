package stone_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
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

// A pipeline is checked before it runs. Here the input is missing, and a lens
// looks for a field that is not there.
func ExampleValidate() {
	p := stone.Seq("support",
		stone.Func("triage", Ticket, Triage, triage),
		stone.Match("route", stone.Lens("aera"),
			stone.Case("bug", stone.Func("bug", Ticket, Reply, answer("Which version is it?")))),
	)
	for _, finding := range stone.Validate(p, stone.Given{}) {
		fmt.Println(finding.Type, "at", finding.Path)
	}
	// Output:
	// missing-producer at support/triage
	// invalid-lens at support/route
	// missing-producer at support/route["bug"]/bug
}

// Fan out over a list, lose a lane, and bring the others together.
func ExampleMap() {
	type words struct {
		List []string `json:"list"`
	}
	list := dag.NewType[words]("words")
	word := dag.NewType[string]("word")
	length := dag.NewType[int]("length")
	total := dag.NewType[int]("total")

	p := stone.Seq("lengths",
		stone.Func0("read", list, func(context.Context) (words, error) {
			return words{[]string{"ashlar", "", "lintel"}}, nil
		}),
		stone.Map("each-word", dag.Derive(list, func(w words) []string { return w.List }), word,
			stone.Func("measure", word, length, func(_ context.Context, w string) (int, error) {
				if w == "" {
					return 0, errors.New("empty word")
				}
				return len(w), nil
			})),
		stone.Reduce(stone.Func("add", dag.Lanes(length), total, func(_ context.Context, all []int) (int, error) {
			sum := 0
			for _, n := range all {
				sum += n
			}
			return sum, nil
		})),
	)
	res, err := stone.Run(context.Background(), p, stone.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	lost, err := dag.Lost(res.DAG)
	fmt.Println(res.Node.Text(), len(lost), err)
	// Output: 12 1 <nil>
}

// The error of a run unwraps to what happened, and says where.
func ExampleFail() {
	p := stone.Loop("until-green",
		stone.Func0("try", Reply, func(context.Context) (ReplyDoc, error) {
			return ReplyDoc{}, stone.Fail("no-compiler", "cannot find go in the path")
		}),
		stone.Until(Reply, func(ReplyDoc) bool { return true }), 3)
	_, err := stone.Run(context.Background(), p, stone.Config{})

	var failure *stone.Failure
	if errors.As(err, &failure) && failure.Kind != kind.LoopExhausted {
		fmt.Println(failure.Kind, failure.Path)
	}
	// Output: no-compiler until-green[0]/try
}

// What two steps do not read from each other they do at the same time; the DAG is
// that of a Seq.
func ExampleFlow() {
	page := dag.NewType[string]("page")
	words := dag.NewType[int]("words")
	title := dag.NewType[string]("title")
	line := dag.NewType[string]("line")
	p := stone.Flow("summary",
		stone.Func0("read", page, func(context.Context) (string, error) { return "stone: a wall", nil }),
		stone.Func("count", page, words, func(_ context.Context, s string) (int, error) { return len(strings.Fields(s)), nil }),
		stone.Func("title", page, title, func(_ context.Context, s string) (string, error) {
			before, _, _ := strings.Cut(s, ":")
			return before, nil
		}),
		stone.Func2("line", title, words, line, func(_ context.Context, title string, n int) (string, error) {
			return fmt.Sprintf("%s, %d words", title, n), nil
		}),
	)
	result, err := stone.Run(context.Background(), p, stone.Config{})
	fmt.Println(result.Node.Text(), err)
	// Output: stone, 3 words <nil>
}

// A plan that is made during the run: validated then, run within its grant, and
// kept beside the node of the leaf that ran it.
func ExampleBody_RunDynamic() {
	note := dag.NewType[string]("note")
	outcome := dag.NewType[int]("outcome")
	worker := stone.New("worker", outcome, func(ctx context.Context, d dag.DAG) (int, error) {
		d, err := dag.Origin(d)
		if err != nil {
			return 0, err
		}
		plan := stone.Seq("plan", stone.Func0("note", note, func(context.Context) (string, error) { return "done", nil }))
		lane := stone.In(ctx).RunDynamic(plan, d, []string{})
		if lane.Failed() {
			return 0, lane.Cause()
		}
		_, err = stone.In(ctx).Keep(d, lane)
		return lane.Len() - d.Len(), err
	})
	result, err := stone.Run(context.Background(), worker, stone.Config{})
	notes, _ := dag.All(note).From(result.DAG)
	fmt.Println(result.Node.Text(), notes, err)
	// Output: 1 [done] <nil>
}
