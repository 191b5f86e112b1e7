package puzzle

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
)

func run(t *testing.T) dag.DAG {
	t.Helper()
	p, err := Pipeline(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range stone.Validate(p, stone.Given{}) {
		t.Errorf("finding: %s", f)
	}
	res, err := stone.Run(t.Context(), p, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return res.DAG
}

// TestRecords checks the records of the calls: the candidates that were asked, and the
// verdicts of the gate.
func TestRecords(t *testing.T) {
	d := run(t)
	for _, test := range []struct {
		of   dag.AnyType
		want string
	}{
		{EasySolved, "model/sure eval/must-failed, solver/sudoku"},
		{HardSolved, "solver/backtracking canceled, solver/sudoku"},
		{Coloured, "model/bold eval/must-failed, solver/colours"},
		{Repaired, "model/diligent eval/must-failed, model/diligent repair"},
		{Caption, "model/vain eval/low-score, model/plain"},
	} {
		n, err := d.Nearest(test.of.Name())
		if err != nil {
			t.Fatal(err)
		}
		var tried []string
		for _, a := range call.RecordOf(n).Tried {
			how := a.Cap
			if a.Repair {
				how += " repair"
			}
			tried = append(tried, strings.TrimSpace(how+" "+a.Failure))
		}
		if got := strings.Join(tried, ", "); got != test.want {
			t.Errorf("%s: %s, want %s", test.of.Name(), got, test.want)
		}
	}
}

// TestPlanOfCapability finds the nodes of the plan that solver/colours returned.
func TestPlanOfCapability(t *testing.T) {
	d := run(t)
	for slot, field := range map[string]string{"formula": "exactly-one", "verdict": "satisfiable", "colouring": "colours"} {
		all, err := d.All(slot)
		if err != nil || len(all) != 1 {
			t.Errorf("%d nodes of type %s, %v: want one", len(all), slot, err)
		} else if all[0].Get(field, nil) == nil {
			t.Errorf("%s has no %s: %s", slot, field, all[0].JSON())
		}
	}
}

func TestArguments(t *testing.T) {
	if _, err := Pipeline([]string{"--hard"}); err == nil || err.Error() != `unexpected argument "--hard": the puzzles take none` {
		t.Error(err)
	}
}

func TestLegalSudoku(t *testing.T) {
	solved, err := backtrack(t.Context(), easy)
	if err != nil {
		t.Fatal(err)
	}
	row := func(n int, text string) Grid {
		g := Grid{slices.Clone(solved.Rows)}
		g.Rows[n-1] = text
		return g
	}
	for _, test := range []struct {
		solution Grid
		want     string // in the error; "" is none
	}{
		{solved, ""},
		{easy, "row 1, column 3 is empty"},
		{row(1, "534678921"), "column 8 has 2 twice, column 9 has 1 twice"},
		{row(1, "634578912"), "the 5 given in row 1, column 1 is gone"},
		{row(1, "554678912"), "row 1 has 5 twice"},
		{row(2, "6721953"), `row 2 is "6721953": want nine digits or dots`},
		{row(2, "67x195348"), `row 2 is "67x195348": want nine digits or dots`},
		{row(2, "67\xff195348"), "want nine digits or dots"},
		{Grid{solved.Rows[:8]}, "it has 8 rows, want 9"},
		{Grid{}, "it has 0 rows"},
	} {
		err := legalSudoku(easy, test.solution)
		if got := text(err); test.want == "" && err != nil || !strings.Contains(got, test.want) {
			t.Errorf("%v: %q, want %q", test.solution, got, test.want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestLegalColouring(t *testing.T) {
	country := Country{States: []string{"a", "b", "c"}, Borders: [][]string{{"a", "b"}}, Palette: []string{"red", "green"}}
	for _, test := range []struct{ colours, want string }{
		{`{"a":"red","b":"green","c":"green"}`, ""},
		{`{"a":"red","b":"red","c":"green"}`, "a and b are both red"},
		{`{"a":"red","b":"green"}`, "c has no colour"},
		{`{"a":"red","b":"mauve","c":"red"}`, `b is "mauve", want one of red, green`},
		{`{}`, "a has no colour, b has no colour, c has no colour"},
	} {
		var c Colouring
		if err := json.Unmarshal([]byte(test.colours), &c.Colours); err != nil {
			t.Fatal(err)
		}
		if got := text(legalColouring(country, c)); got != test.want {
			t.Errorf("%s: %q, want %q", test.colours, got, test.want)
		}
	}
}

// answer asks one capability of the world.
func answer[A, B any](t *testing.T, capability, intent string, asked A) (said B, err error) {
	t.Helper()
	app, err := world()
	if err != nil {
		t.Fatal(err)
	}
	out := dag.NewType[B]("out")
	res, err := stone.Run(t.Context(), call.New("ask", out, call.Spec{
		Applicator: app, Intent: intent, Cap: capability,
		Input: dag.Derive(dag.Nothing, func(struct{}) any { return asked }),
	}), stone.Config{})
	if err != nil {
		return said, err
	}
	said, err = out.Of(res.Node)
	return said, err
}

// TestSudokus removes digits from a solution: each solver must fill them in within the
// rules.
func TestSudokus(t *testing.T) {
	solved, err := backtrack(t.Context(), easy)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		c, err := solved.cells()
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			c[r.IntN(9)][r.IntN(9)] = 0
		}
		for _, solver := range []string{"solver/sudoku", "solver/backtracking"} {
			said, err := answer[Grid, Grid](t, solver, "sudoku/solve", c.grid())
			if err == nil {
				err = legalSudoku(c.grid(), said)
			}
			if err != nil {
				t.Errorf("%s of %v: %v", solver, c.grid(), err)
			}
		}
	}
}

func TestImpossibleSudoku(t *testing.T) {
	g := Grid{slices.Clone(easy.Rows)}
	g.Rows[0] = "53467.89." // the 1 has no place in it
	for _, solver := range []string{"solver/sudoku", "solver/backtracking"} {
		if _, err := answer[Grid, Grid](t, solver, "sudoku/solve", g); err == nil || !strings.Contains(err.Error(), "there is no solution") {
			t.Errorf("%s: %v, want no solution", solver, err)
		}
	}
}

// TestColours colours random maps, and compares the solvers with an exhaustive search.
func TestColours(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	impossible := 0
	for range 40 {
		c := Country{Palette: []string{"red", "green", "blue"}, Borders: [][]string{}}
		for i := range 6 {
			c.States = append(c.States, strconv.Itoa(i))
			for j := range i {
				if r.IntN(3) > 0 {
					c.Borders = append(c.Borders, []string{strconv.Itoa(j), strconv.Itoa(i)})
				}
			}
		}
		said, err := answer[Country, Colouring](t, "solver/colours", "map/colour", c)
		switch {
		case !colourable(c, map[string]string{}):
			impossible++
			if err == nil || !strings.Contains(err.Error(), "there is no solution") {
				t.Errorf("%v: %v, %v, want no solution", c.Borders, said, err)
			}
		case err != nil:
			t.Errorf("%v: %v", c.Borders, err)
		default:
			if err := legalColouring(c, said); err != nil {
				t.Errorf("%v: %v", c.Borders, err)
			}
		}
	}
	if impossible == 0 || impossible == 40 {
		t.Errorf("%d of 40 maps cannot be coloured: want some of both", impossible)
	}
}

func colourable(c Country, colours map[string]string) bool {
	if len(colours) == len(c.States) {
		return legalColouring(c, Colouring{colours}) == nil
	}
	for _, colour := range c.Palette {
		next := maps.Clone(colours)
		next[c.States[len(colours)]] = colour
		if colourable(c, next) {
			return true
		}
	}
	return false
}

func TestBacktrackingIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := backtrack(ctx, hard); err != context.Canceled {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	c, err := hard.cells()
	if err != nil {
		t.Fatal(err)
	}
	s := search{ctx: ctx, cells: c}
	if s.from(0) || s.tries > 2048 {
		t.Errorf("stopped after %d tries, want at most 2048", s.tries)
	}
}
