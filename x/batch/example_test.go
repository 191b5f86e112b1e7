package batch_test

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/x/batch"
)

// A run waits up to an hour for its batches. If it is started again, it continues.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	db, err := sqlite.Open("stone.db", sqlite.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	model := anthropic.New(anthropic.Config{Model: "claude-haiku-4-5"})
	pipeline := agent.New("answer", dag.NewType[agent.Text]("answer"), model, agent.Config{User: agent.Say("Why is marble cold?")})
	result, err := batch.Run(ctx, pipeline, stone.Config{
		RunID: "nightly", Recorder: journal.Keep(db, journal.Options{}),
	}, batch.Config{Journal: db})
	if waits, ok := errors.AsType[*batch.WaitingError](err); ok {
		log.Print(waits) // batch msgbatch_01 of anthropic: 312 of 1000 done, expires in 21h
		return
	}
	log.Print(result.Node.Text(), err)
}
