package dag_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/stonelayer/stone/dag"
)

type TicketDoc struct {
	Title string `json:"title"`
}

type PatchDoc struct {
	File string `json:"file"`
}

var (
	Ticket = dag.NewType[TicketDoc]("ticket")
	Patch  = dag.NewType[PatchDoc]("patch")
)

func Example() {
	start := dag.Of(Ticket.With(TicketDoc{Title: "crash on start"}))
	done, err := Patch.Append(start, PatchDoc{File: "main.go"})
	if err != nil {
		log.Fatal(err)
	}

	ticket, err := Ticket.From(done)
	fmt.Println(ticket.Title, err)
	_, err = Patch.From(start) // a DAG is a value, so start has not changed
	fmt.Println(err, errors.Is(err, dag.ErrMissing))
	// Output:
	// crash on start <nil>
	// no "patch" node before this place true
}

// The two runs differ only in the file that they changed.
func ExampleCompare() {
	work := func(file string) dag.DAG {
		d, err := Patch.Append(dag.Of(Ticket.With(TicketDoc{Title: "crash on start"})), PatchDoc{File: file})
		if err != nil {
			log.Fatal(err)
		}
		return d
	}
	monday, tuesday := dag.Compare(work("main.go"), work("start.go"))
	fmt.Println(monday[0].JSON(), tuesday[0].JSON())
	same, _ := dag.Compare(work("main.go"), work("main.go"))
	fmt.Println(len(same))
	// Output:
	// {"file":"main.go"} {"file":"start.go"}
	// 0
}

// Two lanes work on one ticket. All reads their results in lane order, whereas the nearest node is still the node before the
// fan-out.
func ExampleJoin() {
	base := dag.Of(Ticket.With(TicketDoc{Title: "crash on start"}))
	var lanes []dag.DAG
	for i, file := range []string{"main.go", "init.go"} {
		lane, err := dag.Lane(base, i)
		if err != nil {
			log.Fatal(err)
		}
		lane, err = Patch.Append(lane, PatchDoc{File: file})
		if err != nil {
			log.Fatal(err)
		}
		lanes = append(lanes, lane)
	}
	d, err := dag.Join(base, lanes)
	if err != nil {
		log.Fatal(err)
	}

	patches, err := dag.All(Patch).From(d)
	fmt.Println(patches, err)
	_, err = Patch.From(d)
	fmt.Println(err)
	ticket, err := Ticket.From(d)
	fmt.Println(ticket, err)
	// Output:
	// [{main.go} {init.go}] <nil>
	// no "patch" node before this place
	// {crash on start} <nil>
}

// Any program that can read JSON can read a written DAG. The id of its last node covers all nodes before it.
func ExampleWrite() {
	d := dag.Of(Ticket.With(TicketDoc{Title: "crash on start"}))
	var file bytes.Buffer
	if err := dag.Write(&file, d); err != nil {
		log.Fatal(err)
	}
	fmt.Print(file.String())

	forged := strings.Replace(file.String(), "crash", "typo", 1)
	_, err := dag.Read(strings.NewReader(forged))
	fmt.Println(err)
	// Output:
	// {"id":"253fcf5476a3fef7279b91b67e4551b82f71c3aecc40ebcc5b3deb35f660b2af","type":"ticket","content":{"title":"crash on start"}}
	// DAG line 1: forged or damaged node: its id is 253fcf5476a3, but its content, type and parents give de05c164e00e
}

// A lens reads a field of the latest node, whatever its type.
func ExampleLens() {
	d := dag.Of(Ticket.With(TicketDoc{Title: "crash on start"}))
	title, err := dag.Lens[string]("title").From(d)
	fmt.Println(title, err)
	// Output: crash on start <nil>
}

// Maybe marks a read that may find nothing. The validator does not require a producer of the type.
func ExampleMaybe() {
	patch := dag.Maybe(Patch)
	d := dag.Of(Ticket.With(TicketDoc{Title: "crash on start"}))
	before, err := patch.From(d)
	fmt.Println(before, err)
	d, err = Patch.Append(d, PatchDoc{File: "main.go"})
	if err != nil {
		log.Fatal(err)
	}
	after, err := patch.From(d)
	fmt.Println(after.File, err)
	// Output:
	// <nil> <nil>
	// main.go <nil>
}

// Derive2 combines what a step needs from several nodes.
func ExampleDerive2() {
	task := dag.Derive2(Ticket, Patch, func(t TicketDoc, p PatchDoc) string { return t.Title + ", in " + p.File })
	text, err := task.From(dag.Of(Ticket.With(TicketDoc{Title: "crash on start"}), Patch.With(PatchDoc{File: "main.go"})))
	fmt.Println(text, err)
	// Output: crash on start, in main.go <nil>
}

// Since reads the patches that follow the latest ticket.
func ExampleSince() {
	d := dag.Of(
		Ticket.With(TicketDoc{Title: "typo"}), Patch.With(PatchDoc{File: "README.md"}),
		Ticket.With(TicketDoc{Title: "crash on start"}), Patch.With(PatchDoc{File: "main.go"}), Patch.With(PatchDoc{File: "init.go"}),
	)
	patches, err := dag.Since(Patch, Ticket).From(d)
	fmt.Println(patches, err)
	// Output: [{main.go} {init.go}] <nil>
}
