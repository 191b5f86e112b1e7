// Package eval evaluates pipelines on data sets. It shows whether one pipeline is better than another, or whether the difference
// is noise.
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
// A [Scorer] is a leaf that reads the answer to a case, and any node that the pipeline has created, and produces a [Score]: a
// number, a verdict and a reason. Besides "right", there are three verdicts: "wrong", "no answer" and "error". If the pipeline
// itself fails, for example because no check accepts an answer, the verdict is "no answer", which counts as 0. An unreachable
// provider or a timeout is an error: the case is retried, and if that fails it is reported and excluded from the mean.
//
// The answer to each case is a reusable leaf. With journal.Options.Reuse, a run with a different scorer reuses the answers of an
// earlier run without calling a model. The code of functions is not part of the reuse key, so reuse answers of a Go pipeline only
// as long as its code is unchanged.
//
// # Reports
//
// The [Report] is the last node of the evaluation. For every scorer, it contains the mean with an interval for the uncertainty
// between questions and, with several trials, pass@k and pass^k. A [Baseline] is compared case by case, and a [Gate] judges the
// report.
//
// # Tuning
//
// A [Tuning] chooses the order and the threshold of a cascade within a given cost per case. It is a pipeline, too.
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
