// Package temporal runs pipelines of Stone on a Temporal cluster. It is a separate module, so that only programs that import it
// build Temporal's SDK.
//
// [Start] starts a run in any process that has a free slot:
//
//	err := temporal.Start(ctx, c, db, temporal.Run{ID: "nightly", Pipeline: pipeline, Pool: "models"})
//
// A worker of the pool holds the run from its first to its last step:
//
//	err := temporal.Worker{Client: c, Journal: db, Pool: "models", Pipelines: []stone.Ashlar{pipeline}}.Run(ctx)
//
// Temporal provides queues, timers and schedules. Everything else is in the run's journal: Temporal receives only run ids, never
// a prompt, a result, a question or the text of an error. When Start returns, the journal contains what a worker needs: the
// pipeline's name and the input.
//
// The workflow of a run is [Drive]. It starts an activity that runs the pipeline, and waits for answers. Because it contains
// nothing specific to Stone, a new version of Stone or the pipeline is compatible with every open workflow. When the process
// of a run ends, another process resumes the run. [Answer] answers a question and wakes the run. Cancelling the workflow cancels
// the run.
package temporal
