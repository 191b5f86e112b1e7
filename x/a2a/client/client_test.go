package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/a2aproject/a2a-go/v2/a2asrv/taskstore"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/rest"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/eventtest"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/stonetest"
	"github.com/stonelayer/stone/x/a2a/client"
)

// remote is an agent of the SDK.
type remote struct {
	mu       sync.Mutex
	started  []string // what new tasks were asked for
	answers  []string
	canceled int
	headers  []http.Header
	down     bool          // messages are refused for now
	gate     chan struct{} // "wait" waits until it is closed
	url      string
}

func (r *remote) Execute(ctx context.Context, e *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		text := e.Message.Parts[0].Text()
		status := func(s sdk.TaskState, text string) bool {
			var m *sdk.Message
			if text != "" {
				m = sdk.NewMessageForTask(sdk.MessageRoleAgent, e, sdk.NewTextPart(text))
			}
			return yield(sdk.NewStatusUpdateEvent(e, s, m), nil)
		}
		r.mu.Lock()
		if e.StoredTask == nil {
			r.started = append(r.started, text)
		} else {
			r.answers = append(r.answers, text)
		}
		r.mu.Unlock()
		if text == "hello" { // without a task
			yield(sdk.NewMessage(sdk.MessageRoleAgent, sdk.NewTextPart("hello yourself")), nil)
			return
		}
		if e.StoredTask == nil {
			if !yield(sdk.NewSubmittedTask(e, e.Message), nil) {
				return
			}
		} else {
			yield(sdk.NewArtifactEvent(e, sdk.NewTextPart("answered "+text)), nil)
			status(sdk.TaskStateCompleted, "")
			return
		}
		if !status(sdk.TaskStateWorking, "") {
			return
		}
		switch text {
		case "wait":
			select {
			case <-r.gate:
			case <-ctx.Done():
				return
			}
		case "fail":
			status(sdk.TaskStateFailed, "no such place")
			return
		case "ask":
			status(sdk.TaskStateInputRequired, "Which one?")
			return
		case "data":
			yield(sdk.NewArtifactEvent(e, sdk.NewDataPart(map[string]any{"price": 7})), nil)
		case "echo":
			yield(sdk.NewArtifactEvent(e, e.Message.Parts[1:]...), nil)
		case "stream":
			first := sdk.NewArtifactEvent(e, sdk.NewTextPart("one, "))
			yield(first, nil)
			for _, piece := range []string{"two, ", "three"} {
				time.Sleep(20 * time.Millisecond)
				yield(sdk.NewArtifactUpdateEvent(e, first.Artifact.ID, sdk.NewTextPart(piece)), nil)
			}
		default:
			yield(sdk.NewArtifactEvent(e, sdk.NewTextPart("about "+text)), nil)
		}
		if text == "wait" {
			yield(sdk.NewArtifactEvent(e, sdk.NewTextPart("waited")), nil)
		}
		status(sdk.TaskStateCompleted, "")
	}
}

func (r *remote) Cancel(_ context.Context, e *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		r.mu.Lock()
		r.canceled++
		r.mu.Unlock()
		yield(sdk.NewStatusUpdateEvent(e, sdk.TaskStateCanceled, nil), nil)
	}
}

func (r *remote) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.started)
}

// options of a remote.
type options struct {
	Lists, Streams bool
	Rest, Old      bool // its protocol; old is version 0.3
}

func newRemote(t testing.TB, o options) *remote {
	r := &remote{gate: make(chan struct{})}
	card := &sdk.AgentCard{Name: "remote", Version: "1", Capabilities: sdk.AgentCapabilities{Streaming: o.Streams}, Skills: []sdk.AgentSkill{}}
	store := taskstore.NewInMemory(&taskstore.InMemoryStoreConfig{Authenticator: func(context.Context) (string, error) {
		if o.Lists {
			return "somebody", nil
		}
		return "", nil // as the SDK has it by default
	}})
	handler := a2asrv.NewHandler(r, a2asrv.WithTaskStore(store))
	mux := http.NewServeMux()
	mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(handler))
	mux.Handle("/rest/", http.StripPrefix("/rest", a2asrv.NewRESTHandler(handler)))
	mux.Handle("/old", a2av0.NewJSONRPCHandler(handler))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.headers = append(r.headers, req.Header.Clone())
		down := r.down && req.Method == http.MethodPost
		r.mu.Unlock()
		if down {
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, req)
	}))
	url := "http://" + s.Listener.Addr().String()
	at := sdk.NewAgentInterface(url+"/rpc", sdk.TransportProtocolJSONRPC)
	if o.Rest {
		at = sdk.NewAgentInterface(url+"/rest", sdk.TransportProtocolHTTPJSON)
	}
	if o.Old {
		at = &sdk.AgentInterface{URL: url + "/old", ProtocolBinding: sdk.TransportProtocolJSONRPC, ProtocolVersion: "0.3"}
	}
	card.SupportedInterfaces = []*sdk.AgentInterface{at}
	var producer a2asrv.AgentCardProducer = a2asrv.AgentCardProducerFn(func(context.Context) (*sdk.AgentCard, error) { return card, nil })
	if o.Old {
		producer = a2av0.NewStaticAgentCardProducer(card)
	}
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewAgentCardHandler(producer))
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	r.url = url
	return r
}

// elsewhere starts a remote in another process: the server of the SDK leaves goroutines behind for a while.
func elsewhere(t *testing.T, o options) *remote {
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	url, _ := peer.Self(t, remoteVar+"="+string(text))
	return &remote{url: url}
}

func input(text string) *call.Request {
	return &call.Request{Intent: "trip/plan", Input: call.JSON(fmt.Sprintf(`{"text":%q}`, text))}
}

func agentOf(r *remote) call.Capability {
	return client.New(call.Metadata{ID: "agent"}, client.Config{URL: r.url, Poll: 10 * time.Millisecond})
}

func TestCapability(t *testing.T) {
	for name, o := range map[string]options{"JSON-RPC": {Streams: true}, "REST": {Streams: true, Rest: true}, "0.3": {Streams: true, Old: true}, "no streams": {}} {
		t.Run(name, func(t *testing.T) {
			r := elsewhere(t, o)
			stonetest.TestCapability(t, stonetest.Capability{
				Make: func(t *testing.T) call.Capability {
					transport := new(http.Transport)
					t.Cleanup(transport.CloseIdleConnections)
					return client.New(call.Metadata{ID: "agent"}, client.Config{URL: r.url, Client: &http.Client{Transport: transport}, Poll: 10 * time.Millisecond})
				},
				OK: input("slate"), Slow: input("wait"), Stream: input("stream"),
			})
		})
	}
}

func TestAnswers(t *testing.T) {
	for name, o := range map[string]options{"JSON-RPC": {Streams: true}, "REST": {Streams: true, Rest: true}, "0.3": {Streams: true, Old: true}, "no streams": {Lists: true}} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, o)
			for text, want := range map[string]string{
				"slate": `{"text":"about slate"}`, "hello": `{"text":"hello yourself"}`, "data": `{"price":7}`, "stream": `{"text":"one, two, three"}`,
			} {
				reply, err := agentOf(r).Invoke(t.Context(), input(text))
				if err != nil || string(reply.Out) != want {
					t.Errorf("%s: %v, %v, want %s", text, reply, err, want)
				}
			}
			files := `"media":[{"type":"image/png","data":"iVBORw0KGgo=","name":"a.png"},{"type":"application/pdf","url":"https://test.invalid/b.pdf"}]`
			echo := &call.Request{Intent: "trip/plan", Input: call.JSON(`{"text":"echo",` + files + `}`)}
			if reply, err := agentOf(r).Invoke(t.Context(), echo); err != nil || string(reply.Out) != `{"text":"",`+files+`}` {
				t.Errorf("files: %v, %v", reply, err)
			}
			if _, err := agentOf(r).Invoke(t.Context(), input("fail")); err == nil || err.Error() != "runtime/invoke-failed: the task of the agent is failed: no such place" {
				t.Errorf("%v", err)
			}
			if _, err := agentOf(r).Invoke(t.Context(), input("ask")); err == nil || !strings.Contains(err.Error(), `the agent asks "Which one?", which nobody answers`) {
				t.Errorf("%v", err)
			}
		})
	}
}

// halfOpen is a transport whose streams say nothing.
type halfOpen struct{ streams atomic.Int32 }

func (h *halfOpen) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		h.streams.Add(1)
		resp.Body = silent{resp.Body, r.Context()}
	}
	return resp, err
}

type silent struct {
	io.ReadCloser
	ctx context.Context
}

func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// A stream whose connection is dead does not hide that the task has ended.
func TestSilence(t *testing.T) {
	defer client.SetSilence(50 * time.Millisecond)()
	r, door := newRemote(t, options{Streams: true}), &halfOpen{}
	go func() {
		for door.streams.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		close(r.gate)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	agent := client.New(call.Metadata{ID: "agent"}, client.Config{URL: r.url, Poll: 10 * time.Millisecond, Client: &http.Client{Transport: door}})
	reply, err := agent.Invoke(ctx, input("wait"))
	if err != nil || string(reply.Out) != `{"text":"waited"}` || door.streams.Load() == 0 {
		t.Errorf("%v, %v after %d streams", reply, err, door.streams.Load())
	}
}

func TestCancel(t *testing.T) {
	r := newRemote(t, options{Streams: true})
	ctx, cancel := context.WithCancel(t.Context())
	door := &halfOpen{} // whose streams begin when the task is known
	go func() {
		for door.streams.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	agent := client.New(call.Metadata{ID: "agent"}, client.Config{URL: r.url, Client: &http.Client{Transport: door}})
	if _, err := agent.Invoke(ctx, input("wait")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.canceled != 1 || len(r.started) != 1 {
		t.Errorf("%d tasks, %d cancelled", len(r.started), r.canceled)
	}
}

// A secret is sent to the server of the URL alone, and no error shows it.
func TestSecret(t *testing.T) {
	t.Setenv("AGENT_TOKEN", "Bearer s3cretive-token")
	r := newRemote(t, options{Streams: true})
	cfg := client.Config{URL: r.url, Header: map[string]rest.Value{"Authorization": {Env: "AGENT_TOKEN"}}}
	if _, err := client.New(call.Metadata{}, cfg).Invoke(t.Context(), input("slate")); err != nil {
		t.Fatal(err)
	}
	for _, h := range r.headers {
		if h.Get("Authorization") != "Bearer s3cretive-token" {
			t.Errorf("a request has the headers %v", h)
		}
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") == "" {
			t.Error("the server of the URL got no secret")
		}
		http.Error(w, "no "+req.Header.Get("Authorization"), http.StatusInternalServerError)
	}))
	defer other.Close()
	cfg.URL = other.URL
	if _, err := client.New(call.Metadata{}, cfg).Invoke(t.Context(), input("slate")); err == nil || strings.Contains(err.Error(), "s3cretive") {
		t.Error(err)
	}
	card, err := json.Marshal(&sdk.AgentCard{SupportedInterfaces: []*sdk.AgentInterface{sdk.NewAgentInterface(r.url+"/rpc", sdk.TransportProtocolJSONRPC)}, Skills: []sdk.AgentSkill{}})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(card) }))
	defer elsewhere.Close()
	cfg.URL = elsewhere.URL
	if _, err := client.New(call.Metadata{}, cfg).Invoke(t.Context(), input("slate")); err == nil || !strings.Contains(err.Error(), "name both in scope.net") {
		t.Error(err)
	}
	cfg.Scope = call.Scope{Net: call.Net{elsewhere.URL, r.url}}
	r.headers = nil
	if _, err := client.New(call.Metadata{}, cfg).Invoke(t.Context(), input("slate")); err != nil {
		t.Error(err)
	}
	for _, h := range r.headers {
		if h.Get("Authorization") != "" {
			t.Error("another server got the secret")
		}
	}
}

func TestMaxBody(t *testing.T) {
	r := newRemote(t, options{})
	c := client.New(call.Metadata{}, client.Config{URL: r.url, MaxBody: 600, Poll: time.Millisecond})
	if _, err := c.Invoke(t.Context(), input(strings.Repeat("x", 600))); err == nil || !strings.Contains(err.Error(), "more than 600 bytes") {
		t.Error(err)
	}
}

var (
	topic = dag.NewType[string]("topic")
	found = dag.NewType[map[string]any]("found")
)

func pipeline(url string) stone.Ashlar {
	c := client.New(call.Metadata{ID: "agent", Intents: []string{"trip/plan"}}, client.Config{URL: url, Poll: 10 * time.Millisecond})
	app := &call.Applicator{Registry: call.NewRegistry(c)}
	return call.New("plan", found, call.Spec{Applicator: app, Intent: "trip/plan", Input: call.From(topic)})
}

// A question of the agent becomes a question of the run. Another process answers it, and the task continues.
func TestAsk(t *testing.T) {
	r := newRemote(t, options{Streams: true})
	db := memdb.New(t)
	run := func(resume bool) (stone.Result, error) {
		cfg := stone.Config{RunID: "trip", Recorder: journal.Keep(db, journal.Options{Resume: resume})}
		if !resume {
			cfg.Input = dag.Of(topic.With("ask"))
		}
		return stone.Run(t.Context(), pipeline(r.url), cfg)
	}
	if _, err := run(false); !errors.Is(err, kind.Waiting) {
		t.Fatal(err)
	}
	asked, err := db.Questions(t.Context(), "trip")
	if err != nil || len(asked) != 1 || asked[0].Text != "Which one?" {
		t.Fatalf("%v, %v", asked, err)
	}
	if err := journal.Answer(t.Context(), db, "trip", "1", ask.Answer{Response: "the red one"}); err != nil {
		t.Fatal(err)
	}
	result, err := run(true)
	if err != nil || !strings.Contains(result.Node.Text(), "answered the red one") || r.count() != 1 || len(r.answers) != 1 {
		t.Errorf("%v, %v: %d tasks, answers %q", result.Node, err, r.count(), r.answers)
	}
}

// A failed task is replaced when the run is resumed.
func TestResumeFailed(t *testing.T) {
	r := newRemote(t, options{Streams: true})
	db := memdb.New(t)
	for try := 1; try <= 2; try++ {
		cfg := stone.Config{RunID: "trip", Recorder: journal.Keep(db, journal.Options{Resume: try > 1})}
		if try == 1 {
			cfg.Input = dag.Of(topic.With("fail"))
		}
		if _, err := stone.Run(t.Context(), pipeline(r.url), cfg); err == nil || r.count() != try {
			t.Errorf("try %d: %v, %d tasks", try, err, r.count())
		}
	}
}

// A run that is drained leaves the task to the next process.
func TestDrain(t *testing.T) {
	r := newRemote(t, options{Streams: true})
	db, drain := memdb.New(t), make(chan struct{})
	go func() { // when the task is recorded
		for sent := false; !sent; time.Sleep(time.Millisecond) {
			steps, _ := db.Steps(context.Background(), "trip")
			sent = slices.ContainsFunc(steps, func(s journal.Step) bool { return strings.HasSuffix(s.Path, "/send") })
		}
		close(drain)
	}()
	_, err := stone.Run(t.Context(), pipeline(r.url), stone.Config{RunID: "trip", Input: dag.Of(topic.With("wait")), Recorder: journal.Keep(db, journal.Options{Drain: drain, Grace: 50 * time.Millisecond})})
	if !errors.Is(err, journal.ErrDrained) || r.canceled != 0 {
		t.Fatalf("%v, %d cancelled", err, r.canceled)
	}
	close(r.gate)
	result, err := stone.Run(t.Context(), pipeline(r.url), stone.Config{RunID: "trip", Recorder: journal.Keep(db, journal.Options{Resume: true})})
	if err != nil || r.count() != 1 || !strings.Contains(result.Node.Text(), "waited") {
		t.Errorf("%v, %d tasks", err, r.count())
	}
}

// A message that could not be sent is sent when the run is resumed.
func TestResumeUnsent(t *testing.T) {
	r := newRemote(t, options{Streams: true})
	db := memdb.New(t)
	r.down = true
	if _, err := stone.Run(t.Context(), pipeline(r.url), stone.Config{RunID: "trip", Input: dag.Of(topic.With("slate")), Recorder: journal.Keep(db, journal.Options{})}); err == nil || r.count() != 0 {
		t.Fatalf("%v, %d tasks", err, r.count())
	}
	r.mu.Lock()
	r.down = false
	r.mu.Unlock()
	result, err := stone.Run(t.Context(), pipeline(r.url), stone.Config{RunID: "trip", Recorder: journal.Keep(db, journal.Options{Resume: true})})
	if err != nil || r.count() != 1 || !strings.Contains(result.Node.Text(), "about slate") {
		t.Errorf("%v, %d tasks", err, r.count())
	}
}

// The text of the agent is streamed to those who watch the run.
func TestWatch(t *testing.T) {
	r := newRemote(t, options{Streams: true})
	var heard eventtest.Recorder
	if _, err := stone.Run(t.Context(), pipeline(r.url), stone.Config{Input: dag.Of(topic.With("stream")), Watch: &heard}); err != nil {
		t.Fatal(err)
	}
	if lines := fmt.Sprint(heard.Events()); !strings.Contains(lines, "two, ") {
		t.Error(lines)
	}
}

// A child is a process that runs the pipeline with a journal in a folder.
const childVar = "STONE_TEST_A2A_CHILD"

// remoteVar makes the test binary a remote with the options in JSON. It prints its address and ends with its input.
const remoteVar = "STONE_TEST_A2A_REMOTE"

func TestMain(m *testing.M) {
	if text := os.Getenv(remoteVar); text != "" {
		var o options
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			panic(err)
		}
		fmt.Println(newRemote(new(testing.T), o).url)
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	where, url, ok := strings.Cut(os.Getenv(childVar), " ")
	if !ok {
		os.Exit(m.Run())
	}
	db, err := sqlite.Open(filepath.Join(where, "stone.db"), sqlite.Options{})
	if err == nil {
		_, none := db.Find(context.Background(), "trip")
		_, err = stone.Run(context.Background(), pipeline(url), stone.Config{RunID: "trip", Input: dag.Of(topic.With("wait")), Recorder: journal.Keep(db, journal.Options{Resume: none == nil})})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A process that is killed while the agent works, at any point, starts no second task.
func TestKill(t *testing.T) {
	for _, o := range []options{{Streams: true, Lists: true}, {Lists: true, Rest: true}} {
		for round := range 3 {
			r, dir := newRemote(t, o), t.TempDir()
			start := func() *exec.Cmd {
				cmd := exec.CommandContext(t.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), childVar+"="+dir+" "+r.url)
				cmd.Stderr, cmd.Stdout = os.Stderr, os.Stdout
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				return cmd
			}
			for range 2 {
				cmd := start()
				if round%2 == 0 { // right after the task has started
					for r.count() == 0 {
						time.Sleep(time.Millisecond)
					}
					time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
				} else {
					time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
				}
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
			last := start()
			for r.count() == 0 {
				time.Sleep(time.Millisecond)
			}
			close(r.gate)
			if err := last.Wait(); err != nil || r.count() != 1 {
				t.Errorf("round %d: %v, %d tasks", round, err, r.count())
			}
		}
	}
}
