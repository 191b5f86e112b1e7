package evidence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
)

// written is the evidence of a run with steps, a fan-out, an answer and text that HTML would escape.
func written(t *testing.T) (text []byte, total dag.ID) {
	t.Helper()
	draft, part, final := dag.NewType[string]("draft"), dag.NewType[string]("part"), dag.NewType[string]("final")
	parts := func(dag.DAG) ([]string, error) { return []string{"a & b", "<c>", "d"}, nil }
	p := stone.Seq("all",
		stone.Map("each", dag.ReaderFunc(parts), part, stone.Func("work", part, draft, func(ctx context.Context, in string) (string, error) {
			return stone.Step(ctx, "ask", in, func(context.Context, string) (string, error) { return "<" + in + ">", nil })
		})),
		stone.Reduce(stone.Func("join", dag.All(draft), final, func(ctx context.Context, in []string) (string, error) {
			said, err := stone.In(ctx).Ask(ask.Question{Name: "accept", Text: "Accept it?"})
			return strings.Join(in, ", ") + said, err
		})))
	db := memdb.New(t)
	input, err := dag.NewType[string]("note").Append(dag.DAG{}, "<a> & b")
	if err != nil {
		t.Fatal(err)
	}
	run := func() error {
		_, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Input: input, Recorder: journal.Keep(db, journal.Options{})})
		return err
	}
	if err := run(); err == nil {
		t.Fatal("the run does not wait")
	}
	if err := journal.Answer(t.Context(), db, "r", "all/join", ask.Answer{Response: "yes", By: "ada"}); err != nil {
		t.Fatal(err)
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	info, err := db.Find(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if total, err = write(t.Context(), &b, db, info); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), total
}

func verified(t *testing.T, text []byte) report {
	t.Helper()
	r, err := verify(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVerify(t *testing.T) {
	text, total := written(t)
	r := verified(t, text)
	if r.Problems != nil || r.Sum != total || r.Run != "r" || r.Questions != 1 || r.Nodes < 5 || r.Records < 8 {
		t.Fatalf("%+v", r)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines = lines[:len(lines)-1]
	// of finds the line with a text.
	of := func(part string) int {
		return slices.IndexFunc(lines, func(l []byte) bool { return bytes.Contains(l, []byte(part)) })
	}
	node, question := of(`"content":"d"`), of(`{"question"`)
	edit := func(at int, from, to string) [][]byte {
		out := slices.Clone(lines)
		if out[at] = bytes.Replace(out[at], []byte(from), []byte(to), 1); bytes.Equal(out[at], lines[at]) {
			t.Fatalf("line %d has no %q", at, from)
		}
		return out
	}
	for name, c := range map[string]struct {
		lines [][]byte
		want  string
	}{
		"a content":          {edit(node, `"content":"`, `"content":"x`), "changed: the node"},
		"who answered":       {edit(question, `"by":"ada"`, `"by":"eve"`), "changed: the question all/join"},
		"a result":           {edit(of(`"content":"<a & b>"`), "<a & b>", "<a & c>"), "changed: the"},
		"a line is gone":     {slices.Delete(slices.Clone(lines), question, question+1), "missing: the question all/join"},
		"a line twice":       {slices.Insert(slices.Clone(lines), node, lines[node]), "added: the node"},
		"a line is new":      {slices.Insert(slices.Clone(lines), question, edit(question, `"path":"all/join"`, `"path":"all/other"`)[question]), "added: the question all/other"},
		"lines are moved":    {slices.Concat([][]byte{lines[1], lines[0]}, lines[2:]), "moved"},
		"no seal":            {lines[:len(lines)-1], "missing: the seal"},
		"a space":            {edit(len(lines)-1, `{"seal":`, `{"seal": `), "changed: the seal"},
		"cut":                {slices.Concat(lines[:len(lines)-1], [][]byte{bytes.TrimSpace(lines[len(lines)-1])}), "changed: the seal"},
		"lines after a seal": {slices.Concat(lines, lines[:1]), "added: the run"},
	} {
		t.Run(name, func(t *testing.T) {
			r := verified(t, bytes.Join(c.lines, nil))
			if !slices.ContainsFunc(r.Problems, func(p string) bool { return strings.Contains(p, c.want) }) {
				t.Errorf("it says %q, want %q", r.Problems, c.want)
			}
		})
	}
}

// Each random change of the bytes is found.
func TestEachChangeIsFound(t *testing.T) {
	text, _ := written(t)
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 46))
		changed := slices.Clone(text)
		at := r.IntN(len(text))
		switch r.IntN(4) {
		case 0:
			changed[at] ^= 1 << r.IntN(8)
		case 1:
			changed = slices.Delete(changed, at, min(at+1+r.IntN(50), len(text)))
		case 2:
			changed = slices.Insert(changed, at, text[at/2:at/2+1+r.IntN(9)]...)
		case 3:
			changed[at], changed[len(text)-1-at] = changed[len(text)-1-at], changed[at]
		}
		if bytes.Equal(changed, text) {
			changed[at]++
		}
		if verified(t, changed).Problems == nil {
			t.Errorf("seed %d: a change at %d is not found:\n%s\n%s", seed, at, text, changed)
		}
	}
}

// Who writes the seal anew is found out by the ids, unless no id covers what was changed: then by the sum.
func TestForgedSeal(t *testing.T) {
	text, total := written(t)
	forge := func(from, to string) report {
		var entries []entry
		var out bytes.Buffer
		for one := range bytes.Lines(bytes.Replace(text, []byte(from), []byte(to), 1)) {
			var l line
			if err := json.Unmarshal(one, &l); err != nil {
				t.Fatal(err)
			}
			if l.Seal != nil {
				made, err := line{Seal: &seal{entries, sum(entries)}}.text()
				if err != nil {
					t.Fatal(err)
				}
				one = made
			}
			own, err := l.text()
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, entry{l.name(), sha256.Sum256(own)})
			out.Write(one)
		}
		return verified(t, out.Bytes())
	}
	if r := forge(`"response":"yes"`, `"response":"no!"`); r.Problems != nil || r.Sum == total {
		t.Errorf("another answer: %+v, want only another sum than %s", r, total)
	}
	for one := range bytes.Lines(text) { // the sum of a step that is not that of its result
		var l line
		if err := json.Unmarshal(one, &l); err != nil || l.Record == nil || l.Record.Result == nil {
			continue
		}
		l.Record.Step.Sum[0]++
		other, err := l.text()
		if r := forge(string(one), string(other)); err != nil || !strings.Contains(fmt.Sprint(r.Problems), "does not match its checksum") {
			t.Errorf("%s: %q, %v", l.name(), r.Problems, err)
		}
	}
	for _, from := range []string{`"content":"d"`, `"content":"<d>"`} {
		if r := forge(from, strings.Replace(from, "d", "e", 1)); !strings.Contains(fmt.Sprint(r.Problems), "changed") {
			t.Errorf("%s: %q", from, r.Problems)
		}
	}
}

// A run that did a step again has both records, and the content of the newer one.
func TestStepsDoneAgain(t *testing.T) {
	n := 0
	draft := dag.NewType[int]("draft")
	p := stone.Seq("all", stone.Func("count", dag.ReaderFunc(func(dag.DAG) (int, error) { return 0, nil }), draft, func(context.Context, int) (int, error) {
		n++
		return n, nil
	}))
	db := memdb.New(t)
	for _, again := range [][]string{nil, {"all/count"}, {"all/count"}} {
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{Again: again})}); err != nil {
			t.Fatal(err)
		}
	}
	info, err := db.Find(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err = write(t.Context(), &b, db, info); err != nil {
		t.Fatal(err)
	}
	r := verified(t, b.Bytes())
	if r.Problems != nil || r.Records != 3 || n != 3 || !strings.Contains(b.String(), `"nth":2,"result":{`) {
		t.Errorf("%+v after %d executions:\n%s", r, n, b.String())
	}
}

func TestOtherFile(t *testing.T) {
	text, _ := written(t)
	if r := verified(t, append([]byte(strings.Repeat("a\n", 1000)), text...)); len(r.Problems) != maxStrange {
		t.Errorf("%d problems of 1,000 strange lines, want %d", len(r.Problems), maxStrange)
	}
	for _, text := range []string{"", "a\nb\n", "{\"a\":1}\n", strings.Repeat("\x00\n", 1e5)} {
		if r, err := verify(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "not an evidence file") {
			t.Errorf("%.9q: %v, %.200q", text, err, r.Problems)
		}
	}
}
