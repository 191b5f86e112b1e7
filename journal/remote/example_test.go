package remote_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/remote"
)

// channel is a carrier to one worker in this process.
type channel chan remote.Work

func (c channel) Send(ctx context.Context, _ string, work remote.Work) error {
	select {
	case c <- work:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (channel) Cancel(context.Context, remote.Work) error { return nil }

func Example() {
	greeting := dag.NewType[string]("greeting")
	pipeline := stone.Seq("welcome", stone.Func0("greet", greeting, func(context.Context) (string, error) { return "hello", nil }))

	db, carrier := new(journal.Memory), make(channel)
	worker := &remote.Worker{Journal: db, Pipelines: []stone.Ashlar{pipeline}}
	go func() {
		for work := range carrier {
			if err := worker.Do(context.Background(), work); err != nil {
				log.Print(err)
			}
		}
	}()

	text, err := stone.Produce(context.Background(), pipeline, greeting, stone.Config{
		Recorder: journal.Keep(db, journal.Options{}),
		Executor: remote.New(remote.Config{Journal: db, Carrier: carrier, Routes: []remote.Route{{Leaf: "greet", Pool: "any"}}}),
	})
	fmt.Println(text, err)
	// Output: hello <nil>
}
