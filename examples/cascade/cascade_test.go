package cascade

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// recording is the file with the recording of the two models; it is optional.
const recording = "../../../shared/data/gsm8k/responses.jsonl"

func readRecording(t *testing.T) *exam {
	t.Helper()
	e, err := readExam(recording)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("no recorded answers: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func run(t *testing.T, p stone.Ashlar) (stone.Result, Report) {
	t.Helper()
	for _, f := range stone.Validate(p, stone.Given{}) {
		t.Errorf("finding: %s", f)
	}
	res, err := stone.Run(t.Context(), p, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Result.Of(res.Node)
	if err != nil {
		t.Fatal(err)
	}
	return res, r
}

// TestThesis checks the claim of the example, on all questions and on parts of them.
func TestThesis(t *testing.T) {
	all := readRecording(t).questions
	var odd, even []Question
	for i, q := range all {
		if i%2 == 0 {
			even = append(even, q)
		} else {
			odd = append(odd, q)
		}
	}
	half := len(all) / 2
	for name, questions := range map[string][]Question{
		"all": all, "first half": all[:half], "second half": all[half:], "odd": odd, "even": even,
	} {
		e := readRecording(t)
		e.questions = questions
		out := t.TempDir()
		_, r := run(t, e.pipeline(out))
		t.Logf("%s: accuracy %.3f, large share %.3f, gap recovered %.3f", name, r.Accuracy, r.LargeShare, r.GapRecovered)
		if r.Questions != len(questions) || r.LargeShare > 0.30 || r.GapRecovered < 0.60 {
			t.Errorf("%s: %d questions, large share %.3f, gap recovered %.3f: want %d, at most 0.30, at least 0.60",
				name, r.Questions, r.LargeShare, r.GapRecovered, len(questions))
		}
		if b := r.Baselines; r.CostUSD <= b.SmallOnly.CostUSD || r.CostUSD >= b.LargeOnly.CostUSD {
			t.Errorf("%s: it costs %f: want something between %f and %f", name, r.CostUSD, b.SmallOnly.CostUSD, b.LargeOnly.CostUSD)
		}
		written(t, out, r)
	}
}

// written checks the files of a report.
func written(t *testing.T, dir string, r Report) {
	t.Helper()
	text := map[string]string{}
	for _, name := range []string{"cascade.txt", "cascade.csv", "cascade.svg"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		text[name] = string(data)
	}
	if !strings.HasPrefix(r.Text, text["cascade.txt"]) {
		t.Errorf("the table that is written is not the one that is printed:\n%s", text["cascade.txt"])
	}
	if n := strings.Count(text["cascade.csv"], "\n"); n != 17 {
		t.Errorf("%d lines of numbers, want a head, 5 ways and 11 shares", n)
	}
	d := xml.NewDecoder(strings.NewReader(text["cascade.svg"]))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the plot is no XML: %v", err)
		}
	}
}

// Three questions with answers that are easy to follow: the small model is right;
// wrong, as its sum shows; wrong, and the large one gives no final answer.
const three = `{"id": "a", "question": "2 and 3?", "responses": {
"mixtral-8x7b-instruct-v0.1": {"text": "<<2+3=5>>\n#### 5", "correct": true}, "gpt-4-1106-preview": {"text": "#### 5", "correct": true}}}

{"id": "b", "question": "4 and 4? ", "responses": {
"mixtral-8x7b-instruct-v0.1": {"text": "4 + 4 = 9\n#### 9", "correct": false}, "gpt-4-1106-preview": {"text": "4 + 4 = 8\n#### 8", "correct": true}}}
{"id": "c", "question": "7 less 9?", "responses": {
"mixtral-8x7b-instruct-v0.1": {"text": "9 - 7 = 2\n#### -2", "correct": false}, "gpt-4-1106-preview": {"text": "That is below zero.", "correct": false}}}
`

// lines puts every question of the text above into a line of its own.
func lines(text string) string { return strings.ReplaceAll(text, "{\n", "{") }

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "responses.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestChoices(t *testing.T) {
	p, err := Pipeline([]string{"--data", write(t, lines(three)), "--out", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	res, r := run(t, p)
	choices, err := dag.All(Chosen).From(res.DAG)
	if err != nil {
		t.Fatal(err)
	}
	for i := range choices {
		if choices[i].CostUSD <= 0 {
			t.Errorf("%s cost nothing", choices[i].Question)
		}
		choices[i].CostUSD = 0
	}
	got, err := json.Marshal(choices)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"question":"a","model":"mixtral-8x7b-instruct-v0.1","asked_large":false,"unsure":false,"cost_usd":0},` +
		`{"question":"b","model":"gpt-4-1106-preview","asked_large":true,"refused":["calculations-come-out"],"unsure":false,"cost_usd":0},` +
		`{"question":"c","model":"gpt-4-1106-preview","asked_large":true,"refused":["answer-follows","sensible-number"],"unsure":true,"cost_usd":0}]`
	if string(got) != want {
		t.Errorf("choices\n%s\nwant\n%s", got, want)
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(res.Node.JSON()), &fields); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"questions", "accuracy", "large_share", "gap_recovered", "cost_usd", "baselines"} {
		if fields[key] == nil {
			t.Errorf("the result has no %s", key)
		}
	}
	if r.Accuracy != 2.0/3 || r.LargeShare != 2.0/3 || r.GapRecovered != 1 || r.Unsure != 1 {
		t.Errorf("%+v", r.Point)
	}
}

// TestSilence has a model return an empty answer: the gate refuses that of the small one,
// and that of the large one is final.
func TestSilence(t *testing.T) {
	first := strings.SplitAfter(lines(three), "\n")[0]
	for _, test := range []struct {
		said, was string  // by the model that answered otherwise
		large     float64 // share
	}{
		{`""`, `"<<2+3=5>>\n#### 5"`, 1},
		{`" \n"`, `"<<2+3=5>>\n#### 5"`, 1},
		{`" "`, `"#### 5"`, 0}, // the small one has answered
	} {
		p, err := Pipeline([]string{"--data", write(t, strings.Replace(first, test.was, test.said, 1)), "--out", t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if _, r := run(t, p); r.Accuracy != 1 || r.LargeShare != test.large {
			t.Errorf("%s in place of %s: %+v", test.said, test.was, r)
		}
	}
	both := strings.NewReplacer(`"<<2+3=5>>\n#### 5"`, `""`, `"#### 5"`, `""`).Replace(first)
	p, err := Pipeline([]string{"--data", write(t, both), "--out", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if _, r := run(t, p); r.LargeShare != 1 || r.Unsure != 1 {
		t.Errorf("neither model answers: %+v", r)
	}
}

func TestFirstQuestions(t *testing.T) {
	p, err := Pipeline([]string{"--data", write(t, lines(three)), "--n", "1", "--out", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if _, r := run(t, p); r.Questions != 1 || r.Accuracy != 1 || r.GapRecovered != 0 {
		t.Errorf("%+v", r)
	}
}

func TestBadData(t *testing.T) {
	good := strings.SplitAfter(lines(three), "\n")[0]
	for _, test := range []struct{ text, want string }{
		{"", "responses.jsonl has no questions: want one JSON object a line"},
		{"\n\n", "responses.jsonl has no questions"},
		{good + good, "responses.jsonl:2: question a is there twice"},
		{good + good[:60], "responses.jsonl:2: want a JSON object with id, question and responses: unexpected end"},
		{"[1]", "responses.jsonl:1: want a JSON object with id, question and responses: "},
		{`{"question": "?"}`, "responses.jsonl:1: the question has no id or no text"},
		{`{"id": "a", "question": " "}`, "responses.jsonl:1: the question has no id or no text"},
		{`{"id": "a", "question": "?"}`, "responses.jsonl:1: question a has no answer: want text and correct in responses.mixtral-8x7b-instruct-v0.1"},
	} {
		_, err := Pipeline([]string{"--data", write(t, test.text)})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.70q: %v, want one line with %q", test.text, err, test.want)
		}
	}
}

func TestBadArguments(t *testing.T) {
	file := write(t, lines(three))
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "no questions: give --data FILE after --"},
		{[]string{"--data", "nowhere.jsonl"}, "nowhere.jsonl"},
		{[]string{"--dat", file}, "-dat"},
		{[]string{"--data", file, "--n", "4"}, "has 3 questions"},
		{[]string{"--data", file, "--n", "-1"}, "-n int"},
		{[]string{"--data", file, "more"}, "-out string"},
	} {
		if _, err := Pipeline(test.args); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.args, err, test.want)
		}
	}
}

// TestUnknownQuestion shows that the models are asked over HTTP: a question without a
// recorded answer fails.
func TestUnknownQuestion(t *testing.T) {
	e, err := readExam(write(t, lines(three)))
	if err != nil {
		t.Fatal(err)
	}
	clear(e.byText)
	_, err = stone.Run(context.Background(), e.pipeline(t.TempDir()), stone.Config{})
	if err == nil || !strings.Contains(err.Error(), "no model answered: runtime/invoke-failed") || !strings.Contains(err.Error(), "no answer is recorded for this question") {
		t.Errorf("%v", err)
	}
}
