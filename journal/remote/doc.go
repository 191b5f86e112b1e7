// Package remote lets other processes do leaves of a run. The process that holds the run
// interprets the pipeline with an [Executor]; a [Worker] in another process does leaves. The
// journal that they share carries the orders and the results, so whatever tells the workers
// of an order, a [Carrier], never sees a content:
//
//	result, err := stone.Run(ctx, pipeline, stone.Config{RunID: "nightly",
//		Recorder: journal.Keep(db, journal.Options{}),
//		Executor: remote.New(remote.Config{Journal: db, Carrier: carrier})})
//
// and in each worker, for each [Work] that the carrier delivers:
//
//	worker := &remote.Worker{Journal: db, Pipelines: []stone.Ashlar{pipeline}}
//	err := worker.Do(ctx, work)
//
// Package x/temporal, a module of its own, is a carrier over Temporal.
//
// # What is promised
//
// A leaf whose result is on the board of the run (see [journal.Board]) never runs again: a
// worker looks there before it works, and writes there before it reports. The first result
// wins. A step within the leaf is on the board as soon as it has ended, so the next worker
// continues where a dead one stopped. When the holder dies, the leaves that are out continue, and
// the next holder finds their results.
//
// A leaf and its steps are found by their places, as in the journal: a worker with a changed program does
// no recorded step again. If it gives a step another input, it does not do the leaf, and the holder decides
// what the change means: it refuses the run, or keeps the record with journal.Options.Force.
//
// A result names the leaf and the slice of its order, and a step its leaf. A row that is of another one is
// refused.
//
// The nodes of a run do not depend on where its leaves ran.
//
// # What stays with the holder
//
// Decisions, flows, scoped bodies and plans that are made during the run. A leaf comes back
// to the holder, with the steps that it has done, if it awaits, keeps nodes, runs a plan or
// asks a question, if no worker has its version, and if the budget of the run cannot pay for it. A leaf
// stays with the holder if the holder has recorded steps of it before, if the leaf was sent for other
// work, and if it, or a step within it, is done anew (journal.Options.Again).
//
// # Budgets
//
// When an order gets its place in the window, the executor reserves a slice of the run's account,
// and the worker opens an account of that size. A step that the slice cannot pay for stops the leaf. Its
// result names what the step needs, and nothing else of it counts. The executor then reserves that, or
// waits until others have returned what they did not spend, and the leaf continues after its last
// step. So a budget that suffices in one process suffices with workers. The reservation is settled with
// the cost that the result names. The next holder of the run continues with what a leaf was granted.
//
// A leaf that was cancelled, or was left to the holder, starts no further step that costs money,
// even if its worker cannot be stopped. Its reservation is settled with the known or possible cost
// of such steps. Holders are numbered: when a process takes the run over, the slices of the former
// holder pay for no further step, even if that one still lives and grants more. Then it charges the
// run with the cost of the steps that its leaves have done meanwhile. The cost of a leaf outside its
// steps is known only from its result.
//
// # Secrets
//
// A worker removes its own secrets from every record before it writes it, as a run does: see
// package journal. The holder removes its secrets once more. Orders hold nodes, which have
// none.
package remote
