// Package temporal runs pipelines of Stone on a Temporal cluster. It is a separate module, so that only programs that import it
// build Temporal's SDK.
//
// [Start] starts a run in any process that has room for it:
//
//	err := temporal.Start(ctx, c, db, temporal.Run{ID: "nightly", Pipeline: pipeline, Pool: "models"})
//
// A worker of the pool holds the run from its first step to its last:
//
//	err := temporal.Worker{Client: c, Journal: db, Pool: "models", Pipelines: []stone.Ashlar{pipeline}}.Run(ctx)
//
// Temporal provides the queues, timers and schedules. A run's journal contains everything else: no prompt, result, question or
// error text ever enters Temporal, only run ids. What a worker needs, the pipeline and the input, is in the journal when Start
// returns.
//
// The workflow of a run is [Drive]. It starts an activity that runs the pipeline, waits for answers, and knows nothing of Stone,
// so a new version of Stone or of the pipeline is compatible with every open workflow. When a run's process ends, another one
// resumes the run. [Answer] answers a question and wakes the run. Cancelling the workflow cancels the run.
package temporal
