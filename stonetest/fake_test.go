package stonetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeT is a test that may fail.
type fakeT struct {
	testing.TB // of the test around it; nil in an example
	mu         sync.Mutex
	log        []string
	failed     bool
	cleanups   []func()
}

// try runs a test to its end and returns its log.
func try(t testing.TB, test func(t *fakeT)) (log string, failed bool) {
	f := &fakeT{TB: t}
	done := make(chan bool)
	go func() {
		defer close(done)
		test(f)
	}()
	<-done
	for len(f.cleanups) > 0 {
		last := len(f.cleanups) - 1
		clean := f.cleanups[last]
		f.cleanups = f.cleanups[:last]
		clean()
	}
	return strings.Join(f.log, "\n"), f.failed
}

func (f *fakeT) Helper()                  {}
func (f *fakeT) Context() context.Context { return context.Background() }
func (f *fakeT) Cleanup(fn func())        { f.cleanups = append(f.cleanups, fn) }

func (f *fakeT) say(fails bool, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log, f.failed = append(f.log, text), f.failed || fails
}

func (f *fakeT) Failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func (f *fakeT) Errorf(format string, args ...any) { f.say(true, fmt.Sprintf(format, args...)) }
func (f *fakeT) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}
func (f *fakeT) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }
func (f *fakeT) Skip(args ...any) {
	f.say(false, fmt.Sprint(args...))
	runtime.Goexit()
}

type (
	dirDoc     struct{ Path string }
	projectDoc struct {
		Language string `json:"language"`
	}
	numberDoc struct {
		N int `json:"n"`
	}
)

var (
	dir     = dag.NewType[dirDoc]("dir")
	project = dag.NewType[projectDoc]("project")
	note    = dag.NewType[agent.Text]("note")
	number  = dag.NewType[numberDoc]("number")
	total   = dag.NewType[numberDoc]("total")
)

// say makes a tool that takes {"text": string}, and fails for "bad".
func say(name string, ran *[]string) agent.Middleware {
	var mu sync.Mutex
	return agent.Use(agent.Tool{
		Tool: llm.Tool{Name: name, Description: "Says " + name + ".",
			Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)},
		Parallel: true,
		Run: func(_ context.Context, input json.RawMessage) (agent.Result, error) {
			var in struct{ Text string }
			if err := json.Unmarshal(input, &in); err != nil {
				return agent.Result{}, err
			}
			if in.Text == "bad" {
				return agent.Result{}, errors.New("no such thing")
			}
			mu.Lock()
			defer mu.Unlock()
			*ran = append(*ran, name)
			return agent.Result{Text: name + " " + in.Text}, nil
		},
	})
}

// discover is a production pipeline with its own tools.
func discover(model llm.Model) (p stone.Ashlar, ran *[]string) {
	ran = new([]string)
	return stone.Seq("all", agent.New("discover", project, model, agent.Config{
		System:  agent.Say("Find out what this project is. Ask if you must."),
		Use:     []agent.Middleware{say("ask_user", ran), say("write_file", ran)},
		Options: []stone.LeafOption{stone.Queries(dir)},
	})), ran
}

// talker is an agent with tools.
func talker(name string, model llm.Model, use ...agent.Middleware) stone.Ashlar {
	return agent.New(name, note, model, agent.Config{System: agent.Say("be brief"), Use: use})
}
