package sat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/stonetest"
)

func ask(ctx context.Context, c Config, input string) (*answer, error) {
	reply, err := New(call.Metadata{}, c).Invoke(ctx, &call.Request{Intent: "sat/solve", Input: call.JSON(input)})
	if err != nil {
		return nil, err
	}
	var a answer
	return &a, json.Unmarshal(reply.Out, &a)
}

func TestSolve(t *testing.T) {
	for _, test := range []struct {
		input string
		want  string // the model, "" if there is none
	}{
		{`{"clauses":[["a"],["-a","b"]]}`, `{"a":true,"b":true}`},
		{`{"clauses":[["a"],["-a"]]}`, ``},
		{`{"clauses":[[]]}`, ``},
		{`{"clauses":[["a"],[]]}`, ``},
		{`{"clauses":[]}`, `{}`},
		{`{"clauses":[["a","-a"]]}`, `{"a":false}`},
		{`{"clauses":[["a","a","a"]]}`, `{"a":true}`},
		{`{"clauses":[["-a","-a"],["a","b"]]}`, `{"a":false,"b":true}`},
		{`{"clauses":[[1,-2],[2]]}`, `{"1":true,"2":true}`},
		{`{"exactly-one":[["a","b"]],"clauses":[["-a"]]}`, `{"a":false,"b":true}`},
		{`{"exactly-one":[["a","b","c","d","e","f","g"]],"clauses":[["f"]]}`, `{"a":false,"b":false,"c":false,"d":false,"e":false,"f":true,"g":false}`},
		{`{"exactly-one":[["a","b","c","d","e","f","g"]],"clauses":[["f"],["b"]]}`, ``},
		{`{"exactly-one":[[]]}`, ``},
		{`{"at-most-one":[[]]}`, `{}`},
		{`{"at-most-one":[["a","b","-c"]],"at-least-one":[["a"],["c"]]}`, `{"a":true,"b":false,"c":true}`},
		{`{"exactly-one":[["a","-a"]],"clauses":[["a"]]}`, `{"a":true}`},
		{`{"at-most-one":[["a","-a","b"]],"clauses":[["b"]]}`, ``},
		{`{"dimacs":"c hello\np cnf 3 2\n1 -3\n0\n2 3 -1 0\n"}`, `any`},
		{`{"dimacs":"p cnf 2 3\n1 0 -2 0 -1 2 0"}`, ``},
		{`{"dimacs":"p cnf 0 0"}`, `{}`},
		{`{"dimacs":"p cnf 0 1\n0"}`, ``},
		{`{"dimacs":"p cnf 2 1\r\n1 2 0\r\n%\r\n0\r\n"}`, `any`},
	} {
		a, err := ask(t.Context(), Config{}, test.input)
		if err != nil {
			t.Errorf("%s: %v", test.input, err)
			continue
		}
		model, _ := json.Marshal(a.Model)
		if a.Satisfiable != (test.want != "") || a.Satisfiable && test.want != "any" && string(model) != test.want {
			t.Errorf("%s: satisfiable %v by %s, want %q", test.input, a.Satisfiable, model, test.want)
		}
	}
}

func TestInput(t *testing.T) {
	for _, test := range []struct{ input, want string }{
		{`{}`, `must have either "dimacs", or`},
		{`{"dimacs":"p cnf 1 0","clauses":[]}`, `must have either`},
		{`{"clause":[["a"]]}`, `unknown field "clause"`},
		{`{"clauses":[["a",""]]}`, `not ""`},
		{`{"clauses":[["--a"]]}`, `not "--a"`},
		{`{"clauses":[[1.5]]}`, `not 1.5`},
		{`{"clauses":[[null]]}`, `not`},
		{`{"clauses":["a"]}`, `the input is not a formula`},
		{`{"dimacs":""}`, `line 1: the line "p cnf VARIABLES CLAUSES" is missing`},
		{`{"dimacs":"c x\n1 0\n"}`, `line 2: a clause before the line`},
		{`{"dimacs":"p cnf 2 1\n3 0\n"}`, `line 2: literal 3, but the formula has 2 variables`},
		{`{"dimacs":"p cnf 2 1\n1 -9223372036854775808 0\n"}`, `line 2: literal`},
		{`{"dimacs":"p cnf 2 1\n1 x 0\n"}`, `line 2: "x" is not a literal`},
		{`{"dimacs":"p cnf 2 1\n+1 0\n"}`, `line 2: "+1" is not a literal`},
		{`{"dimacs":"p cnf 2 2\n1 0\n"}`, `line 2: the text ends after 1 of the 2 announced clauses`},
		{`{"dimacs":"p cnf 2 1\n1 0\n\n2 0\n"}`, `line 4: more than the 1 announced clauses`},
		{`{"dimacs":"p cnf 2 1\n1 2\n"}`, `line 2: the last clause does not end with 0`},
		{`{"dimacs":"p cnf -2 1\n"}`, `line 1: want p cnf`},
		{`{"dimacs":"p sat 2 1\n"}`, `line 1: want p cnf`},
		{`{"dimacs":"p cnf 2 0\np cnf 2 0"}`, `line 2: a second line`},
		{`{"dimacs":"p cnf 999999999 0"}`, `more than 100000 variables`},
	} {
		_, err := ask(t.Context(), Config{}, test.input)
		var typed *call.Error
		if !errors.As(err, &typed) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", test.input, err, test.want)
		}
	}
	_, err := ask(t.Context(), Config{Literals: 3}, `{"clauses":[["a","b"],["c","d"]]}`)
	if err == nil || !strings.Contains(err.Error(), "solver/too-large: the formula has more than 3 literals") {
		t.Error(err)
	}
	if _, err := ask(t.Context(), Config{Literals: -1}, `{"clauses":[]}`); err == nil {
		t.Error("a negative limit is no error")
	}
}

// pigeons asks to put n pigeons into n-1 holes, which takes a solver of this kind
// time that grows with n!.
func pigeons(n int) string {
	var clauses, holes []string
	for p := range n {
		var places []string
		for h := range n - 1 {
			places = append(places, fmt.Sprintf(`"p%dh%d"`, p, h))
		}
		clauses = append(clauses, "["+strings.Join(places, ",")+"]")
	}
	for h := range n - 1 {
		var in []string
		for p := range n {
			in = append(in, fmt.Sprintf(`"p%dh%d"`, p, h))
		}
		holes = append(holes, "["+strings.Join(in, ",")+"]")
	}
	return fmt.Sprintf(`{"clauses":[%s],"at-most-one":[%s]}`, strings.Join(clauses, ","), strings.Join(holes, ","))
}

func TestCapability(t *testing.T) {
	c := stonetest.Capability{
		Make: func(*testing.T) call.Capability { return New(call.Metadata{}, Config{}) },
		OK:   &call.Request{Intent: "sat/solve", Input: call.JSON(pigeons(5))},
	}
	if stops {
		c.Slow = &call.Request{Intent: "sat/solve", Input: call.JSON(pigeons(14))}
	}
	stonetest.TestCapability(t, c)
}

func random3SAT(r *rand.Rand, variables int, ratio float64) string {
	clauses := int(float64(variables) * ratio)
	var b strings.Builder
	fmt.Fprintf(&b, "p cnf %d %d\n", variables, clauses)
	for range clauses {
		for _, v := range r.Perm(variables)[:3] {
			if r.IntN(2) == 0 {
				v = -v - 2
			}
			fmt.Fprintf(&b, "%d ", v+1)
		}
		b.WriteString("0\n")
	}
	return b.String()
}

// Around 4.26 clauses for each variable half of the formulas can be made true, and
// it is the hardest to tell which.
func TestAgreesWithCadical(t *testing.T) {
	path := need.Program(t, "cadical")
	r := rand.New(rand.NewPCG(4, 26))
	satisfiable := 0
	start := time.Now()
	for i := range 200 {
		text := random3SAT(r, 60+r.IntN(60), 4.26)
		input, _ := json.Marshal(map[string]string{"dimacs": text})
		f, err := read(input, Config{}.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		a, err := ask(t.Context(), Config{}, string(input))
		if err != nil {
			t.Fatalf("formula %d: %v", i, err)
		}
		cmd := exec.Command(path, "-q", "-n")
		cmd.Stdin = strings.NewReader(text)
		out, _ := cmd.Output() // its exit code is 10 or 20
		theirs := bytes.Contains(out, []byte("s SATISFIABLE"))
		if !theirs && !bytes.Contains(out, []byte("s UNSATISFIABLE")) {
			t.Fatalf("cadical says %q", out)
		}
		if theirs != a.Satisfiable {
			t.Errorf("formula %d: satisfiable %v, cadical says %v\n%s", i, a.Satisfiable, theirs, text)
		}
		if a.Satisfiable {
			satisfiable++
			model := make([]bool, len(f.names))
			for j, name := range f.names {
				model[j] = a.Model[name]
			}
			if err := f.holds(model); err != nil {
				t.Errorf("formula %d: %v", i, err)
			}
		}
	}
	t.Logf("%d of 200 are satisfiable, in %v", satisfiable, time.Since(start))
	if satisfiable < 50 || satisfiable > 150 {
		t.Errorf("%d of 200 are satisfiable: these are not the hard ones", satisfiable)
	}
}

// Small formulas of every kind are compared with trying all assignments.
func TestAgreesWithEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(n, most int) [][]int {
		var lists [][]int
		for range r.IntN(n) {
			var list []int
			for range r.IntN(most) {
				list = append(list, (1+r.IntN(8))*(1-2*r.IntN(2)))
			}
			lists = append(lists, list)
		}
		return lists
	}
	for i := range 2000 {
		f := &formula{names: strings.Split("a b c d e f g h", " "), clauses: pick(20, 4), atMost: pick(3, 8), exactlyOne: pick(3, 8)}
		possible := false
		for bits := range 256 {
			model := make([]bool, 8)
			for v := range model {
				model[v] = bits>>v&1 == 1
			}
			possible = possible || f.holds(model) == nil
		}
		model, err := solve(t.Context(), f, 1000)
		if err != nil || (model != nil) != possible {
			t.Fatalf("formula %d %+v: model %v, %v; possible %v", i, f, model, err, possible)
		}
	}
}

func FuzzDIMACS(f *testing.F) {
	for _, seed := range []string{"p cnf 2 1\n1 2 0", "c\np cnf 0 0\n%\n", "p cnf 3 2\n1 -2\n0 3 0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		f, err := readDIMACS(text, Config{Variables: 20, Literals: 100})
		if err != nil {
			return
		}
		if _, err := solve(t.Context(), f, 10_000); err != nil {
			t.Error(err)
		}
	})
}

func Example() {
	solver := New(call.Metadata{}, Config{})
	reply, err := solver.Invoke(context.Background(), &call.Request{Input: call.JSON(
		`{"exactly-one": [["tea", "coffee"], ["milk", "lemon"]], "clauses": [["-coffee", "milk"], ["-tea", "-milk"], ["-lemon"]]}`)})
	fmt.Println(string(reply.Out), err)
	// Output:
	// {"satisfiable":true,"model":{"coffee":true,"lemon":false,"milk":true,"tea":false}} <nil>
}
