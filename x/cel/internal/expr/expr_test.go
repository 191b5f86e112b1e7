package expr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/cputime"
)

func vars(texts ...string) (names []string, values map[string]json.RawMessage) {
	values = map[string]json.RawMessage{}
	for i := 0; i < len(texts); i += 2 {
		names = append(names, texts[i])
		values[texts[i]] = json.RawMessage(texts[i+1])
	}
	return names, values
}

var world1 = []string{
	"dough", `{"text":"heavy dough","weight":2,"parts":[1,2.5,"a",null,true],"kind":"rye","a-b":1}`,
	"n", `3`, "big", `9007199254740993`, "huge", `18446744073709551616`, "f", `2.5`, "nothing", `null`,
	"list", `["z","a"]`, "string", `"s"`, "oven/heat", `1`, "in", `1`, "size", `7`, "math", `{"x":1}`,
}

func TestEval(t *testing.T) {
	names, values := vars(world1...)
	for _, test := range []struct{ text, uses, want string }{
		{`size(dough.text) > 3 && dough.text.startsWith('heavy')`, "dough", `true`},
		{`n < f`, "f n", `false`},
		{`n > 2.5 && dough.weight == 2.0`, "dough n", `true`},
		{`dough.parts[1]`, "dough", `2.5`},
		{`dough`, "dough", `{"a-b":1,"kind":"rye","parts":[1,2.5,"a",null,true],"text":"heavy dough","weight":2}`},
		{`dough["a-b"] + 1`, "dough", `2`},
		{`big`, "big", `9007199254740993`},
		{`big + 1`, "big", `9007199254740994`},
		{`huge`, "huge", `18446744073709552000`},
		{`nothing == null`, "nothing", `true`},
		{`has(dough.text) && !has(dough.crust)`, "dough", `true`},
		{`list.map(list, list + "!")`, "list", `["z!","a!"]`},
		{`list.sort()`, "list", `["a","z"]`},
		{`string + "x"`, "string", `"sx"`},
		{`size + 1`, "size", `8`},
		{`math.greatest(n, 2)`, "n", `3`},
		{`math.x`, "math", `1`},
		{`sets.contains([1, 2], [2])`, "", `true`},
		{`[1, 2].all(dough, dough > 0)`, "", `true`},
		{`[1, 3].exists(x, x == n)`, "n", `true`},
		{`[dough].map(dough, dough.kind)`, "dough", `["rye"]`},
		{`{"b": 1, "a": [n, 1u, null]}`, "n", `{"a":[3,1,null],"b":1}`},
		{`{1: "x", true: "y"}`, "", `{"1":"x","true":"y"}`},
		{`type(n) == int`, "n", `true`},
		{`"%d of %s".format([n, dough.kind])`, "dough n", `"3 of rye"`},
		{`"a,b".split(",").join("-").replace("a", "c").upperAscii()`, "", `"C-B"`},
		{`lists.range(3)`, "", `[0,1,2]`},
		{`0.1 + 0.2`, "", `0.30000000000000004`},
		{`1e21 * 1.0`, "", `1e+21`},
		{`dough.kind in ["rye", "oat"]`, "dough", `true`},
		{`'é\u2028"'`, "", "\"é\u2028\\\"\""},
		{`dough.text.matches('^heavy .*h$') ? "yes" : "no"`, "dough", `"yes"`},
	} {
		p, err := Compile(test.text, names, Any)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if uses := strings.Join(p.Variables(), " "); uses != test.uses {
			t.Errorf("%s reads %q, want %q", test.text, uses, test.uses)
		}
		got, err := p.Eval(t.Context(), values)
		if err != nil || string(got) != test.want {
			t.Errorf("%s = %s, %v, want %s", test.text, got, err, test.want)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	names, _ := vars(world1...)
	for _, test := range []struct{ text, want string }{
		{`size(dough.text >`, "1:18: "},
		{`duogh.text`, "1:1: unknown name duogh, did you mean dough?"},
		{"n > 1 &&\n  wood > 2", "2:3: unknown name wood"},
		{`oven/heat > 1`, "1:1: unknown name oven"},
		{`heat(n)`, "1:5: unknown function heat"},
		{`"a" + 1 == n`, "1:5: found no matching overload for '_+_' applied to '(string, int)'"},
		{`size(n`, "1:7: "},
		{``, "1:1: "},
		{`n in`, "1:5: "},
		{`'abc'`, "1:1: must be true or false, is string"},
		{`n + 1`, "1:1: must be true or false, is int"},
		{`x.map(x, x)`, "1:1: unknown name x"},
		{`[1].all(x, x > 0) && x`, "1:22: unknown name x"},
		{`n.matches("(")`, ""},
		{strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200), ""},
		{strings.Repeat("n + ", 3000) + "n", ""},
		{"true" + strings.Repeat(" && n", 1600), ""},
		{"'" + strings.Repeat("x", 100_000) + "' == n", ""},
		{"\x00\xff", ""},
	} {
		_, err := Compile(test.text, names, Bool)
		var fault *Error
		if !errors.As(err, &fault) || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
			t.Errorf("%.60q: %v, want %s", test.text, err, test.want)
		}
	}
}

func TestEvalErrors(t *testing.T) {
	names, values := vars(append(world1, "bad", `{"a":`)...)
	delete(values, "list")
	for _, test := range []struct{ text, want string }{
		{`dough.crust == "x"`, "1:6: no such key: crust"},
		{`dough.weight / 0 == 1`, "division by zero"},
		{`dough.text`, "must be true or false, is string"},
		{`big * 99999 > 0`, "overflow"},
		{`bad.a == 1`, "variable bad is not JSON"},
		{`list == []`, "variable list has no value"},
		{`dough.text + 1 == 2`, "no such overload"},
		{`dough.parts[9] == 1`, "index out of bounds"},
		{`dough.text.matches(dough.parts[2] + "(")`, "regexp"},
	} {
		p, err := Compile(test.text, names, Bool)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		_, err = p.Bool(t.Context(), values)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", test.text, err, test.want)
		}
		if _, err = p.Eval(t.Context(), values); err == nil {
			t.Errorf("%s: Eval succeeds where Bool does not", test.text)
		}
	}
	for _, text := range []string{`0.0 / 0.0`, `b"x"`, `type(1)`, `[1.0 / 0.0]`, `{1.5: 1}`} {
		p, err := Compile(text, nil, Any)
		if err == nil {
			_, err = p.Eval(t.Context(), nil)
		}
		if err == nil {
			t.Errorf("%s has no JSON", text)
		}
	}
}

// TestCompileIsQuick rejects expressions that took the type checker up to eight minutes.
func TestCompileIsQuick(t *testing.T) {
	chain := func(step string, n int) string { return "[1]" + strings.Repeat(".map(a, "+step+")", n) }
	nest := func(open, inside, shut string, n int) string {
		return strings.Repeat(open, n) + inside + strings.Repeat(shut, n)
	}
	for _, test := range []struct {
		text string
		ok   bool
	}{
		{chain("[a, a]", 10), true},
		{chain("[a, a]", 13), false},
		{chain("["+strings.Repeat("a, ", 50)+"a]", 10), true},
		{chain(nest("[", "a", "]", 25), 12), false},
		{chain(nest("{1: ", "a", "}", 25), 8), false},
		{chain(nest("[", "a", "]", 4), 4), true},
		{chain("{a: a}", 4), true},
		{chain("{a: a}", 11), false},
		{chain("{{a: a}: {a: a}}", 7), false},
		{chain("{'a': a}", 10), true},
		{nest("[", "1", "]", 24), true},
		{nest("[", "1", "]", 40), false},
		{"[" + strings.Repeat("[1, 2], ", 300) + "[3, 4]]", true},
		{"true" + strings.Repeat(" && n", 900), true},
		{nest("[1].map(a, ", "[a]", ")", 9), true},
	} {
		var err error
		took := cputime.Units(func() { _, err = Compile(test.text, []string{"n"}, Any) })
		if took > maxUnits {
			t.Errorf("%.60s takes %.1f units of work", test.text, took)
		}
		if (err == nil) != test.ok {
			t.Errorf("%.60s: %v, want ok %v", test.text, err, test.ok)
		}
	}
}

// Each of these would take hours or more memory than there is.
// maxUnits is how much work an evaluation may take, stopped or not.
const maxUnits = 100

func TestExplosionsAreStopped(t *testing.T) {
	long := strings.Repeat("ab", 300_000)
	names, values := vars("text", `"`+long+`"`, "list", "["+strings.Repeat("1,", 50_000)+"2]", "n", "1")
	nest := "true"
	for i := range 8 {
		nest = fmt.Sprintf("list.all(x%d, %s)", i, nest)
	}
	for _, text := range []string{
		nest,
		`[1]` + strings.Repeat(".map(a, [a, a])", 60),
		`[1]` + strings.Repeat(".map(a, [a, a])", 40) + " == [n]" + strings.Repeat(".map(a, [a, a])", 40),
		`[text]` + strings.Repeat(".map(a, a + a)", 60),
		`text.replace("", text)`,
		`text.replace("a", text).replace("b", text)`,
		`list.map(x, "x").join(text)`,
		`list.map(x, text).join("")`,
		`text.split("").join(text)`,
		`sets.contains(list, list.map(x, x + 1))`,
		`list.distinct()`,
		`text.indexOf(text.substring(5) + "c")`,
		`lists.range(1000000)`,
		`"%.999999999f".format([1.0])`,
		`list.map(x, list.map(y, list.map(z, x + y + z)))`,
		`text.matches("(a{1,1000}){1,1000}")`,
	} {
		var err error
		took := cputime.Units(func() {
			var p *Program
			if p, err = Compile(text, names, Any); err == nil {
				_, err = p.Eval(t.Context(), values)
			}
		})
		if err == nil || len(err.Error()) > 400 {
			t.Errorf("%.70s: %.300v, want an error", text, err)
		}
		t.Logf("%.70s: %.1f units", text, took)
		if took > maxUnits {
			t.Errorf("%.70s took %.1f units of work", text, took)
		}
	}
}

func TestLargeInputIsFine(t *testing.T) {
	names, values := vars("out", `{"text":"`+strings.Repeat("long ", 200_000)+`","list":[`+strings.Repeat(`{"a":1},`, 20_000)+`{"a":2}]}`)
	for _, text := range []string{
		`size(out.text) == 1000000`, `out.list.exists(x, x.a == 2)`, `out.text.contains("long long")`,
		`size(out.list) == 20001`, `out.text.matches("(long )+")`, `size(out.list.map(x, x.a)) == 20001`,
		`out.list.all(x, size(out.list) > 0)`, `out.list.filter(x, x.a == 2) == [{'a': 2.0}]`, `out.list.all(x, out.list[0] == x || x.a == 2)`,
	} {
		p, err := Compile(text, names, Bool)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		took := cputime.Units(func() {
			if ok, err := p.Bool(t.Context(), values); !ok || err != nil {
				t.Errorf("%s: %v %v", text, ok, err)
			}
		})
		if took > maxUnits {
			t.Errorf("%s took %.1f units of work", text, took)
		}
	}
}

func TestContext(t *testing.T) {
	names, values := vars("list", "["+strings.Repeat("1,", 1000)+"2]")
	p, err := Compile("list.all(x, list.all(y, x + y > 0))", names, Bool)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no longer wanted")
	cancel(why)
	if _, err := p.Bool(ctx, values); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
	slow, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if _, err := p.Bool(slow, values); err == nil {
		t.Error("nothing stops it")
	}
}

func TestConcurrentUse(t *testing.T) {
	names, values := vars(world1...)
	p, err := Compile("dough.weight == 2 && n == 3", names, Bool)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				if ok, err := p.Bool(context.Background(), values); !ok || err != nil {
					t.Error(ok, err)
				}
				if _, err := Compile(fmt.Sprintf("n + %d == f", i), names, Bool); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzCompile(f *testing.F) {
	names, values := vars(world1...)
	for _, seed := range []string{"n + 1", "dough.text", "[1].map(x, x)", "a.?b", "{'a': n}", "'\\x00'", "n ? 1 : 2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Compile(text, names, Any)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		if out, err := p.Eval(t.Context(), values); err == nil && !json.Valid(out) {
			t.Errorf("%s is not JSON: %s", text, out)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("slot%d", i)
	}
	names = append(names, "dough", "n")
	for _, text := range []string{"n > 2", "size(dough.text) > 3 && dough.text.startsWith('heavy')"} {
		b.Run(fmt.Sprint(len(text)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Compile(text, names, Bool); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkBool(b *testing.B) {
	names, values := vars(world1...)
	p, err := Compile("size(dough.text) > 3 && dough.text.startsWith('heavy')", names, Bool)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Bool(b.Context(), values); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSchema checks that the schema of an expression describes its types, and that every value fits it.
func TestSchema(t *testing.T) {
	names, values := vars(world1...)
	for _, test := range []struct{ text, want string }{
		{`"x" + string`, `{"type":"string"}`},
		{`string`, `{}`},
		{`n == 1`, `{"type":"boolean"}`},
		{`size(list)`, `{"type":"integer"}`},
		{`double(n)`, `{"type":"number"}`},
		{`null`, `{"const":null}`},
		{`[]`, `{"type":"array"}`},
		{`[n, "a"]`, `{"items":{"anyOf":[{},{"const":"a"}]},"type":"array"}`},
		{`"a b".split(" ")`, `{"items":{"type":"string"},"type":"array"}`},
		{`list.map(x, size(x))`, `{"items":{"type":"integer"},"type":"array"}`},
		{`{"a": size(string), "b": {"c": n}}`, `{"properties":{"a":{"type":"integer"},"b":{"properties":{"c":{}},"required":["c"],"type":"object"}},"required":["a","b"],"type":"object"}`},
		{`{string: 1}`, `{"additionalProperties":{"type":"integer"},"type":"object"}`},
		{`n > 1 ? {"a": 1} : dough`, `{"anyOf":[{"properties":{"a":{"const":1}},"required":["a"],"type":"object"},{}]}`},
	} {
		program, err := Compile(test.text, names, Any)
		if err != nil {
			t.Fatal(err)
		}
		s, err := program.Schema()
		if err != nil || string(s.JSON()) != test.want {
			t.Errorf("%s: %v, %v, want %s", test.text, s, err, test.want)
			continue
		}
		value, err := program.Eval(t.Context(), values)
		if err == nil {
			err = s.Validate(t.Context(), value)
		}
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
		}
	}
}
