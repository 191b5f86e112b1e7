// Package temporal runs leaves and runs of Stone on a Temporal cluster. It is a module of
// its own, so that only programs that import it build the SDK of Temporal.
//
// Temporal has the queues, the timers and the schedules. The journal of a run has everything
// else: no prompt, result, question or error text ever enters Temporal, only ids of runs and
// digests of steps.
//
// # Leaves
//
// A process that holds a run sends some of its leaves to the workers of a pool, as standalone
// activities:
//
//	result, err := stone.Run(ctx, pipeline, stone.Config{
//		RunID:    "nightly",
//		Recorder: journal.Keep(db, journal.Options{}),
//		Executor: remote.New(remote.Config{
//			Journal: db,
//			Carrier: temporal.Carrier(c, temporal.Options{}),
//			Routes:  []remote.Route{{Leaf: "summarise", Pool: "models"}},
//		}),
//	})
//
// A worker of the pool does them:
//
//	err := temporal.Worker{Client: c, Journal: db, Pool: "models", Pipelines: []stone.Ashlar{pipeline}}.Run(ctx)
//
// See package journal/remote for what is promised, and for what stays with the holder. Small
// leaves go out in batches, see remote.Route: an activity costs the server about 10 ms of CPU.
//
// # Runs
//
// A worker with Runs holds runs too. [Start] starts one in whatever process has a place:
//
//	err := temporal.Start(ctx, c, db, temporal.Run{ID: "nightly", Pipeline: pipeline, Pool: "models"})
//
// The workflow of a run is [Drive]. It starts an activity that runs the pipeline, waits for
// answers, and knows nothing of Stone, so a new version of Stone or of the pipeline is
// compatible with every open workflow. When the process of a run ends, another one resumes
// the run. [Answer] answers a question and wakes the run. Cancelling the workflow cancels the run.
package temporal
