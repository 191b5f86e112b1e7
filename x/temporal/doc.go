// Package temporal runs pipelines of Stone on a Temporal cluster. It is a module of its own, so that
// only programs that import it build the SDK of Temporal.
//
// [Start] starts a run in whatever process has a place:
//
//	err := temporal.Start(ctx, c, db, temporal.Run{ID: "nightly", Pipeline: pipeline, Pool: "models"})
//
// A worker of the pool holds it, from its first step to its last:
//
//	err := temporal.Worker{Client: c, Journal: db, Pool: "models", Pipelines: []stone.Ashlar{pipeline}}.Run(ctx)
//
// Temporal has the queues, the timers and the schedules. The journal of a run has everything
// else: no prompt, result, question or error text ever enters Temporal, only ids of runs. What a worker
// needs, the pipeline and the input, is in the journal when Start returns.
//
// The workflow of a run is [Drive]. It starts an activity that runs the pipeline, waits for
// answers, and knows nothing of Stone, so a new version of Stone or of the pipeline is
// compatible with every open workflow. When the process of a run ends, another one resumes
// the run. [Answer] answers a question and wakes the run. Cancelling the workflow cancels the run.
package temporal
