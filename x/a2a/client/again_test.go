package client_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/a2aproject/a2a-go/v2/a2asrv/taskstore"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/x/a2a/client"
)

type counting struct{ n atomic.Int32 }

func (r *counting) Execute(_ context.Context, e *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		n := r.n.Add(1)
		_ = yield(sdk.NewSubmittedTask(e, e.Message), nil) &&
			yield(sdk.NewArtifactEvent(e, sdk.NewTextPart(fmt.Sprint("answer ", n))), nil) &&
			yield(sdk.NewStatusUpdateEvent(e, sdk.TaskStateCompleted, nil), nil)
	}
}

func (r *counting) Cancel(_ context.Context, e *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		yield(sdk.NewStatusUpdateEvent(e, sdk.TaskStateCanceled, nil), nil)
	}
}

func TestAgainAsksTheAgent(t *testing.T) {
	r := &counting{}
	card := &sdk.AgentCard{Name: "remote", Version: "1", Skills: []sdk.AgentSkill{}}
	mux := http.NewServeMux()
	user := func(ctx context.Context) (string, error) { return "somebody", nil }
	mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(r, a2asrv.WithTaskStore(taskstore.NewInMemory(&taskstore.InMemoryStoreConfig{Authenticator: user})))))
	s := httptest.NewServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	card.SupportedInterfaces = []*sdk.AgentInterface{sdk.NewAgentInterface(s.URL+"/rpc", sdk.TransportProtocolJSONRPC)}
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewAgentCardHandler(a2asrv.AgentCardProducerFn(func(context.Context) (*sdk.AgentCard, error) { return card, nil })))
	topic, found := dag.NewType[string]("topic"), dag.NewType[map[string]any]("found")
	capable := client.New(call.Metadata{ID: "agent", Intents: []string{"trip/plan"}}, client.Config{URL: s.URL, Poll: 10 * time.Millisecond})
	p := call.New("plan", found, call.Spec{Applicator: &call.Applicator{Registry: call.NewRegistry(capable)}, Intent: "trip/plan", Input: call.From(topic)})
	db := memdb.New(t)
	result, err := stone.Run(t.Context(), p, stone.Config{RunID: "trip", Recorder: journal.Keep(db, journal.Options{}), Input: dag.Of(topic.With("begin"))})
	if err != nil {
		t.Fatal(err)
	}
	first := result.Node.JSON()
	steps, err := db.Steps(t.Context(), "trip")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range steps {
		t.Log(one.Kind, one.Path, one.Recorded)
	}
	result, err = stone.Run(t.Context(), p, stone.Config{RunID: "trip", Recorder: journal.Keep(db, journal.Options{Resume: true, Force: true, Again: []string{"plan"}})})
	if err != nil {
		t.Fatal(err)
	}
	if r.n.Load() != 2 {
		t.Errorf("the agent worked %d times, want 2; %s, then %s", r.n.Load(), first, result.Node.JSON())
	}
}
