package puzzle

import (
	"context"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
)

// tell reports the calls from their records.
func tell(_ context.Context, d dag.DAG) (Text, error) {
	t := teller{dag: d}
	t.call("A sudoku, asked for in Go: one after the other", EasySolved)
	t.grid(EasySolved)
	t.call("A harder one: a race, in which the second starts 20 ms later", HardSolved)
	t.grid(HardSolved)
	t.call("Colours for a map, asked for in a plan: one after the other", Coloured)
	t.colours(Coloured)
	t.call("The same again: a model that may repair its answer", Repaired)
	t.colours(Repaired)
	t.call("A caption: a tournament, and a judge", Caption)
	caption, err := Caption.From(d)
	t.keep(err)
	t.line("\n    “%s”", caption.Text)
	return Text{strings.TrimSpace(t.text.String())}, t.err
}

// A teller writes a story and keeps the first error.
type teller struct {
	dag  dag.DAG
	text strings.Builder
	err  error
}

func (t *teller) keep(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *teller) line(format string, args ...any) { fmt.Fprintf(&t.text, format+"\n", args...) }

// call reports the candidates that were asked and the verdicts of the gate.
func (t *teller) call(title string, produces dag.AnyType) {
	t.line("\n%s\n", title)
	n, err := t.dag.Nearest(produces.Name())
	if err != nil {
		t.keep(err)
		return
	}
	rec := call.RecordOf(n)
	if rec == nil {
		t.keep(fmt.Errorf("the node of type %s has no record of its call", produces.Name()))
		return
	}
	for _, a := range rec.Tried {
		mark, what := describe(a, rec.Cap)
		t.line("  %s %-20s %s", mark, a.Cap, what)
	}
}

// describe describes one attempt of a call, which another candidate may have won.
func describe(a call.Attempt, winner string) (mark, what string) {
	again := ""
	if a.Repair {
		again = "repairs it, and "
	}
	switch {
	case a.Cancelled:
		return "–", "was slower, and is stopped"
	case a.Failure != "":
		mark, what = "✗", again+"is refused: "+a.Error
	case a.Cap != winner:
		mark, what = "–", again+"is good, but not the best"
	default:
		mark, what = "✓", again+"is accepted"
	}
	if a.Judge != nil {
		what += fmt.Sprintf(" (the judge gives %.1f)", *a.Judge)
	}
	return mark, what
}

func (t *teller) grid(of dag.Type[Grid]) {
	g, err := of.From(t.dag)
	t.keep(err)
	t.line("")
	for r, row := range g.Rows {
		if r == 3 || r == 6 {
			t.line("    ──────┼───────┼──────")
		}
		spaced := strings.Join(strings.Split(row, ""), " ")
		t.line("    %s │ %s │ %s", spaced[:5], spaced[6:11], spaced[12:])
	}
}

// colours lists the states by their colour.
func (t *teller) colours(of dag.Type[Colouring]) {
	c, err := of.From(t.dag)
	t.keep(err)
	country, err := Map.From(t.dag)
	t.keep(err)
	t.line("")
	for _, colour := range country.Palette {
		var states []string
		for _, state := range country.States {
			if c.Colours[state] == colour {
				states = append(states, state)
			}
		}
		t.line("    %-6s %s", colour, strings.Join(states, ", "))
	}
}
