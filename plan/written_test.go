package plan_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/x/cel"
)

var update = flag.Bool("update", false, "write what models are told into testdata/written")

// A desk is what a model writes plans for: five intents with their schemas.
func desk(t *testing.T, m *script.Model) *call.Applicator {
	t.Helper()
	app := &call.Applicator{Language: cel.Language, Plans: plan.Planner(plan.Options{}), Intents: map[string]call.Intent{"task/plan": {}}, Schemas: map[string]*schema.Schema{}}
	caps := []call.Capability{model.New(call.Metadata{ID: "writer", Intents: []string{"task/plan"}, CanProduce: []string{call.Plan}, Effects: []string{"net"}}, model.Config{Model: m})}
	for _, i := range []struct{ intent, does, in, out, answer string }{
		{"letter/classify", "Says what a letter is about.", `{"type":"object","required":["text"],"additionalProperties":false,"properties":{"text":{"type":"string"}}}`,
			`{"type":"object","required":["area"],"properties":{"area":{"enum":["bill","bug","other"]}}}`, `{"area":"bug"}`},
		{"letter/summarise", "Summarises a letter in a sentence.", `{"type":"object","required":["text"],"additionalProperties":false,"properties":{"text":{"type":"string"}}}`,
			`{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`, `{"text":"It is broken."}`},
		{"letter/reply", "Writes an answer to a letter.", `{"type":"object","required":["to","summary"],"additionalProperties":false,"properties":{"to":{"type":"string"},"summary":{"type":"string"},"tone":{"enum":["warm","formal"]}}}`,
			`{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`, `{"text":"Dear Ada"}`},
		{"ticket/open", "Opens a ticket.", `{"type":"object","required":["title","severity"],"additionalProperties":false,"properties":{"title":{"type":"string"},"severity":{"type":"integer","description":"from 1 to 5"}}}`,
			`{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}`, `{"id":"T1"}`},
		{"mail/send", "Sends a mail.", `{"type":"object","required":["to","body"],"additionalProperties":false,"properties":{"to":{"type":"string"},"body":{"type":"string"}}}`,
			`{"type":"object","required":["sent"],"properties":{"sent":{"type":"boolean"}}}`, `{"sent":true}`},
	} {
		for name, text := range map[string]string{i.intent + "/in": i.in, i.intent + "/out": i.out} {
			s, err := schema.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			app.Schemas[name] = s
		}
		app.Intents[i.intent] = call.Intent{Description: i.does, In: i.intent + "/in", Out: i.intent + "/out"}
		meta := call.Metadata{ID: "desk/" + strings.ReplaceAll(i.intent, "/", "-"), Kind: "go", Intents: []string{i.intent}, Needs: []string{}}
		if i.intent == "mail/send" {
			meta.Needs = []string{"net/smtp"}
		}
		caps = append(caps, call.Capability{Metadata: meta, Invoke: func(context.Context, *call.Request) (*call.Reply, error) {
			return &call.Reply{Out: call.JSON(i.answer)}, nil
		}})
	}
	desks[app] = caps
	app.Registry = call.NewRegistry(caps...)
	return app
}

// desks are the capabilities of each desk.
var desks = map[*call.Applicator][]call.Capability{}

// deskRegistry returns the registry of a desk with more capabilities.
func deskRegistry(app *call.Applicator, more ...call.Capability) *call.Registry {
	for i := range more {
		if more[i].Invoke == nil {
			more[i].Invoke = echo
		}
	}
	return call.NewRegistry(append(slices.Clip(desks[app]), more...)...)
}

// task asks a model for a plan and runs it.
const task = `{:inputs {:letters {:type "array" :items {:type "string"}} :letter {:type "string"} :limit {:type "integer"}
	:customer {:type "object" :required ["name" "vip"] :additionalProperties false :properties {:name {:type "string"} :vip {:type "boolean"}}}}
	:nodes [{:op :call :intent :task/plan :input {:task "Answer the letter."} :requires {:reply :plan} :effects {:allowed #{:net/smtp}} :as :out %s}
		{:op :emit :input :out}]}`

// write runs a task in which a model writes the plan.
func write(t *testing.T, app *call.Applicator, fields string) (stone.Result, error) {
	t.Helper()
	input, err := plan.Bind(dag.DAG{}, map[string]any{"letters": []string{"a", "b"}, "letter": "The page is blank.", "limit": 3, "customer": map[string]any{"name": "Ada", "vip": true}})
	if err != nil {
		t.Fatal(err)
	}
	p := read(t, strings.Replace(task, "%s", fields, 1))
	cfg := stone.Config{Input: input, Grant: []string{"net/smtp"}}
	if err := p.Check(app, plan.Options{}, cfg).Err(); err != nil {
		t.Fatal(err)
	}
	a, err := p.Ashlar(app, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return stone.Run(t.Context(), a, cfg)
}

// TestPlansAsModelsWriteThem reads plans as models write them. Each is accepted, or the model is told what is wrong, and what
// it then answers runs. The file says what it is told, and what of it leads to the correction.
func TestPlansAsModelsWriteThem(t *testing.T) {
	files, err := filepath.Glob("testdata/written/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	all, first, led := 0, 0, 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts := map[string]string{}
		for _, f := range archive.Files {
			parts[f.Name] = strings.TrimSuffix(string(f.Data), "\n")
		}
		var kept []txtar.File
		for _, f := range archive.Files {
			name, part, _ := strings.Cut(f.Name, "/")
			if part != "told" {
				kept = append(kept, f)
			}
			if part != "want" {
				continue
			}
			all++
			m := script.New(script.Text(parts[name+"/answer"]), script.Text(parts[name+"/corrected"]))
			_, err := write(t, desk(t, m), "")
			requests := m.Requests()
			if parts[name+"/want"] == "accepted" {
				if err != nil || len(requests) != 1 {
					t.Errorf("%s %s: asked %d times: %v", file, name, len(requests), err)
				}
				first++
				continue
			}
			if err != nil || len(requests) != 2 {
				t.Errorf("%s %s: asked %d times: %v", file, name, len(requests), err)
			}
			if len(requests) < 2 {
				continue
			}
			messages := requests[1].Messages
			told := messages[len(messages)-1].Text()
			leads := true
			for want := range strings.SplitSeq(parts[name+"/want"], "\n") {
				if !strings.Contains(told, want) {
					t.Errorf("%s %s: %q is not told:\n%s", file, name, want, told)
					leads = false
				}
			}
			if leads {
				led++
			}
			kept = append(kept, txtar.File{Name: name + "/told", Data: []byte(told + "\n")})
			if !*update && parts[name+"/told"] != told {
				t.Errorf("%s %s: told\n%s\nwant (-update writes it)\n%s", file, name, told, parts[name+"/told"])
			}
		}
		archive.Files = kept
		if data := txtar.Format(archive); *update && !bytes.Equal(data, nil) {
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if all < 60 {
		t.Errorf("the corpus has %d plans, want at least 60", all)
	}
	t.Logf("%d plans: %d accepted as they are, %d of the other %d led to the correction", all, first, led, all-first)
}
