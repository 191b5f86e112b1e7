package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/serve"
)

// ordinary is a caller whose runs go before no others.
type ordinary struct{}

func (ordinary) Principal(*http.Request) (serve.Principal, error) {
	return serve.Principal{Name: "ci"}, nil
}

// A run for a person goes first, if its caller may say that one waits.
func TestPriority(t *testing.T) {
	t.Run("granted", func(t *testing.T) { testPriority(t, nil, "4") })
	t.Run("claimed", func(t *testing.T) { testPriority(t, ordinary{}, "0") })
}

// testPriority starts runs for batches and then one for a person, while all have to wait.
func testPriority(t *testing.T, access serve.Access, want string) {
	l := limit.New(limit.Limits{Concurrency: 1})
	first, err := l.Enter(t.Context(), limit.Request{})
	if err != nil {
		t.Fatal(err)
	}
	const runs = 5
	waiting, went := make(chan string, 1000), make(chan string, runs)
	paced := stone.Func("paced", order, draft, func(ctx context.Context, o servetest.Doc) (string, error) {
		told := false
		place, err := l.Enter(ctx, limit.Request{Every: time.Millisecond, Waiting: func(limit.Wait) {
			if !told {
				told = true
				waiting <- o.Text
			}
		}})
		went <- o.Text
		place.Leave(0)
		return o.Text, err
	})
	server := serveAll(t, serve.Config{Access: access, Pipelines: []serve.Pipeline{{Name: "paced", Ashlar: paced}}})
	for i := range runs {
		who := fmt.Sprintf(`{"pipeline":"paced","input":{"text":"%d"},"interactive":%v}`, i, i == runs-1)
		resp, err := http.Post(server.URL+"/v1/runs", "application/json", strings.NewReader(who))
		if err != nil || resp.StatusCode != 201 {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
		<-waiting
	}
	first.Leave(0)
	if got := <-went; got != want {
		t.Errorf("run %s went first, want %s", got, want)
	}
	for range runs - 1 {
		<-went
	}
}
