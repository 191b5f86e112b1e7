package client_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/a2aproject/a2a-go/v2/a2asrv/taskstore"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/x/a2a/client"
)

// twice is an agent that asks two questions, one after the other.
type twice struct {
	mu        sync.Mutex
	questions []string
	answers   []string
}

func (r *twice) Execute(_ context.Context, e *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		r.mu.Lock()
		if e.StoredTask == nil {
			if !yield(sdk.NewSubmittedTask(e, e.Message), nil) {
				r.mu.Unlock()
				return
			}
		} else {
			r.answers = append(r.answers, e.Message.Parts[0].Text())
		}
		n := len(r.answers)
		r.mu.Unlock()
		if n < len(r.questions) {
			m := sdk.NewMessageForTask(sdk.MessageRoleAgent, e, sdk.NewTextPart(r.questions[n]))
			yield(sdk.NewStatusUpdateEvent(e, sdk.TaskStateInputRequired, m), nil)
			return
		}
		yield(sdk.NewArtifactEvent(e, sdk.NewTextPart("done")), nil)
		yield(sdk.NewStatusUpdateEvent(e, sdk.TaskStateCompleted, nil), nil)
	}
}

func (r *twice) Cancel(_ context.Context, e *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		yield(sdk.NewStatusUpdateEvent(e, sdk.TaskStateCanceled, nil), nil)
	}
}

func TestTwoQuestions(t *testing.T) {
	for name, c := range map[string]struct {
		questions []string
		timeout   time.Duration
	}{
		"different questions, no timeout":            {[]string{"Which one?", "How many?"}, 0},
		"different questions, capability with limit": {[]string{"Which one?", "How many?"}, time.Hour},
		"the same question twice, with limit":        {[]string{"Approve the payment?", "Approve the payment?"}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			r := &twice{questions: c.questions}
			card := &sdk.AgentCard{Name: "remote", Version: "1", Skills: []sdk.AgentSkill{}}
			mux := http.NewServeMux()
			mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(r, a2asrv.WithTaskStore(taskstore.NewInMemory(nil)))))
			s := httptest.NewServer(mux)
			t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
			card.SupportedInterfaces = []*sdk.AgentInterface{sdk.NewAgentInterface(s.URL+"/rpc", sdk.TransportProtocolJSONRPC)}
			mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewAgentCardHandler(a2asrv.AgentCardProducerFn(func(context.Context) (*sdk.AgentCard, error) { return card, nil })))

			topic, found := dag.NewType[string]("topic"), dag.NewType[map[string]any]("found")
			capable := client.New(call.Metadata{ID: "agent", Intents: []string{"trip/plan"}, Limits: call.Limits{Timeout: c.timeout}}, client.Config{URL: s.URL, Poll: 10 * time.Millisecond})
			p := call.New("plan", found, call.Spec{Applicator: &call.Applicator{Registry: call.NewRegistry(capable)}, Intent: "trip/plan", Input: call.From(topic)})
			db := memdb.New(t)
			run := func(resume bool) (stone.Result, error) {
				cfg := stone.Config{RunID: "trip", Recorder: journal.Keep(db, journal.Options{Resume: resume})}
				if !resume {
					cfg.Input = dag.Of(topic.With("begin"))
				}
				return stone.Run(t.Context(), p, cfg)
			}
			answer := func(text string) {
				t.Helper()
				all, err := db.Questions(t.Context(), "trip")
				if err != nil {
					t.Fatal(err)
				}
				for _, q := range all {
					if q.Open() {
						if err := journal.Answer(t.Context(), db, "trip", q.Path, ask.Answer{Response: text}); err != nil {
							t.Fatal(err)
						}
						return
					}
				}
				t.Fatalf("no question is open: %+v", all)
			}
			if _, err := run(false); !errors.Is(err, kind.Waiting) {
				t.Fatal(err)
			}
			answer("first answer")
			if _, err := run(true); !errors.Is(err, kind.Waiting) {
				t.Fatalf("after the first answer: %v", err)
			}
			answer("second answer")
			result, err := run(true)
			if err != nil {
				t.Errorf("after the second answer the run does not go on: %v", err)
				all, _ := db.Questions(t.Context(), "trip")
				for _, q := range all {
					t.Logf("question %s %q: answer %q, problem %q, open %t", q.Path, q.Text, q.Response, q.Problem, q.Open())
				}
			} else {
				t.Logf("result %s", result.Node.JSON())
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.answers) != 2 || r.answers[1] != "second answer" {
				t.Errorf("the agent got the answers %q, want first and second", r.answers)
			}
		})
	}
}
