package ask_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	number = dag.NewType[int]("number")
	reply  = dag.NewType[stone.Answer]("reply")
	whole  = dag.NewType[string]("whole")
)

// several asks n questions at once, "0" to "n-1", and joins the answers.
func several(n int, opts ...stone.AskOption) stone.Ashlar {
	return stone.Seq("s",
		stone.Map("each", dag.ReaderFunc(func(dag.DAG) ([]int, error) {
			var all []int
			for i := range n {
				all = append(all, i)
			}
			return all, nil
		}), number, stone.Ask("ask", number, reply, func(n int) string { return fmt.Sprint(n) }, opts...)),
		stone.Reduce(stone.Func("join", dag.All(reply), whole, func(_ context.Context, all []stone.Answer) (string, error) {
			var parts []string
			for _, a := range all {
				parts = append(parts, a.Response)
			}
			return strings.Join(parts, ","), nil
		})))
}

func TestChannel(t *testing.T) {
	questions := make(ask.Channel)
	go func() {
		var open []ask.Asked
		for range 5 {
			open = append(open, <-questions)
		}
		for i := range open { // backwards
			q := open[len(open)-1-i]
			if q.Text == "3" {
				q.Cancel()
			}
			q.Answer("to "+q.Text, "ada")
			q.Answer("too late", "")
		}
	}()
	res, err := stone.Run(t.Context(), several(5), stone.Config{Frontend: questions})
	if err != nil || res.Node.Text() != "to 0,to 1,to 2,,to 4" {
		t.Errorf("%q, %v", res.Node.Text(), err)
	}
}

func TestChannelIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		questions := make(ask.Channel, 1)
		go func() {
			synctest.Wait()
			cancel()
		}()
		_, err := stone.Run(ctx, several(3), stone.Config{Frontend: questions})
		var failure *stone.Failure
		if !errors.As(err, &failure) || failure.Kind != kind.Canceled {
			t.Errorf("error %v, want kind canceled", err)
		}
		asked := <-questions
		<-asked.Done()
		asked.Answer("to nobody", "")
	})
}
