// Package eval evaluates pipelines on data sets, and shows whether the difference between two pipelines is significant or only
// noise.
//
// An evaluation is itself a pipeline, built around the pipeline that is evaluated. It is run, resumed, limited and shown like any
// other pipeline:
//
//	report, err := eval.Run(ctx, eval.Config{
//		Pipeline: answer,
//		Data:     eval.Data{File: "questions.jsonl"},
//		Scorers:  scorers, // eval.Read(nil, "exact", "number:0.01")
//	}, stone.Config{RunID: "monday", Recorder: journal.Keep(db, journal.Options{})})
//
// The corresponding command is stone eval PIPELINE --data questions.jsonl --score exact.
//
// # Data
//
// Rows are given as JSON Lines or CSV. Each row is bound, by schema, to the types that the pipeline reads but does not produce.
// The value of a type comes from the column named after the type, or else from the columns named after its fields, or else from
// the column "input". All rows are checked before anything is run, and errors state row and column. The column "expected"
// contains the expected output. A case is identified by the digest of its input and its expected output, so rows can be moved and
// added.
//
// # Scores
//
// A [Scorer] is a leaf that reads the answer to a case, and possibly other nodes that the pipeline has created, and produces a
// [Score]. A score consists of a number, a verdict and a reason. The verdict is "right", "wrong", "no answer" or "error". If the
// pipeline itself fails, for example because no check accepts an answer, the verdict is "no answer", which counts as 0. If a
// provider is unreachable or times out, the case is retried. If the retries fail too, the verdict is "error", and the case is
// reported but excluded from the mean.
//
// The answer to each case is a reusable leaf. With journal.Options.Reuse, a run with a different scorer reuses the answers of an
// earlier run without calling a model. The code of functions is not part of the reuse key, so reuse answers of a Go pipeline only
// as long as its code is unchanged.
//
// # Reports
//
// The [Report] is the last node of the evaluation. For every scorer, it contains the mean of the scores with a confidence
// interval that accounts for the differences between questions and, if Trials is more than 1, pass@k and pass^k. A [Baseline] is
// compared case by case, and a [Gate] judges the report.
//
// # Tuning
//
// A [Tuning] chooses the order and the threshold of a cascade such that its cost per case does not exceed a given limit. It, too,
// runs as a pipeline.
//
// # Reading results
//
// A [Report] contains a [ScoreReport] for each scorer, with the verdicts "right", "wrong", "no answer" and "error". If there is a
// [Baseline], from [ReadBaseline] or [BaselineOf], the report compares each score, each value of a column, and each case whose
// verdict [Turned]. [Whole] estimates the cost of all cases from a sample. A [Gate], from [ReadGate], returns a [Verdict]:
// [Passed], [GateFailed] or [CannotTell], with a line for each rule.
//
// A [Routing] ends with a [RoutingReport], which a gate judges by its [RoutingRules]. A Tuning ends with a [Choice] among
// [Setting] values. An [Improving] works on the rows of the split [DevSplit] and is tested on [TestSplit] (see [TestOf]). It ends
// with a [Revision], in a node of the type [Improved].
package eval
