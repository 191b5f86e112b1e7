// Package eval evaluates pipelines over data sets and shows whether one is better than another or whether the difference is
// noise.
//
// An evaluation is itself a pipeline, built around the evaluated one. It is run, resumed, limited and shown like any other:
//
//	report, err := eval.Run(ctx, eval.Config{
//		Pipeline: answer,
//		Data:     eval.Data{File: "questions.jsonl"},
//		Scorers:  scorers, // eval.Read(nil, "exact", "number:0.01")
//	}, stone.Config{RunID: "monday", Recorder: journal.Keep(db, journal.Options{})})
//
// The command is stone eval PIPELINE --data questions.jsonl --score exact.
//
// # Data
//
// Rows are JSON Lines or CSV. They are bound to the types that the pipeline reads but does not produce, by schema: a column named
// after the type; else columns named after its fields; else the column "input". All rows are checked before anything runs, and
// errors name row and column. The column "expected" has the expected output. A case is identified by the digest of its input and
// its expectation, so rows may be moved and added.
//
// # Scores
//
// A [Scorer] is a leaf that reads the answer to a case, and any node that the pipeline created, and produces a [Score]: a number,
// a verdict and a reason. Wrong, no answer and error are three verdicts. If the pipeline itself fails, for example because no
// check accepts an answer, there is no answer, which counts as 0. An unreachable provider or a timeout is an error: the case is
// retried, then reported and left out of the mean.
//
// The answer of each case is a reusable leaf. With journal.Options.Reuse, a run with another scorer takes the answers of an
// earlier run without calling a model. The code of functions is not part of a key: reuse answers of a Go pipeline only while its
// code is the same.
//
// # Reports
//
// The [Report] is the last node of the evaluation: for every scorer the mean with its
// interval by question, and with several trials pass@k and pass^k; see package stat. A
// [Baseline] is compared case by case, and a [Gate] judges the report.
//
// # Tuning
//
// A [Tuning] chooses the order and the threshold of a cascade within a cost per case. It is a
// pipeline, too.
//
// # Reading results
//
// A [Report] has a [ScoreReport] for each scorer, with the verdicts "right", "wrong", "no answer" and "error". Against a [Baseline],
// from [ReadBaseline] or [BaselineOf], it compares each score, each value of a column, and each case whose verdict [Turned].
// [Whole] estimates the cost of all cases from a sample. A [Gate], from [ReadGate], returns a [Verdict]: [Passed], [GateFailed] or
// [CannotTell], with a line for each rule.
//
// A [Routing] ends with a [RoutingReport], which a gate judges by its [RoutingRules]. A Tuning ends with a [Choice] among
// [Setting] values. An [Improving] works on the rows of the split [DevSplit] and tests on [TestSplit] (see [TestOf]); it ends
// with the [Revision] of type [Improved].
package eval
