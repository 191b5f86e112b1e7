// Package stone composes language models and ordinary code into pipelines that are checked before they run and recorded while
// they run.
//
// # Ashlars
//
// Every step is an [Ashlar]: a function from DAG to DAG that declares what it reads and what it produces. A parser, a call to a
// model, an agent, a question to a person and a composition of these are all ashlars. Steps never call each other. They
// communicate through typed nodes:
//
//	var (
//		Letter = dag.NewType[LetterDoc]("letter")
//		Sorted = dag.NewType[SortedDoc]("sorted")
//		Draft  = dag.NewType[string]("draft")
//	)
//
// [Func] makes a leaf from a Go function. The function receives the nearest node of the type that the leaf reads, and its result
// becomes a node of the type that it produces:
//
//	sort := stone.Func("sort", Letter, Sorted, func(_ context.Context, l LetterDoc) (SortedDoc, error) {
//		if strings.Contains(l.Text, "invoice") {
//			return SortedDoc{Area: "billing"}, nil
//		}
//		return SortedDoc{Area: "bug"}, nil
//	})
//
// A type is a [dag.Reader], and there are others. [dag.All] reads all nodes of a type, [dag.Maybe] makes a read optional, and
// [dag.Derive] applies a function:
//
//	draft := stone.Func2("draft", Letter, dag.Maybe(Sorted), Draft,
//		func(_ context.Context, l LetterDoc, s *SortedDoc) (string, error) {
//			if s == nil {
//				return "", stone.Fail("unsorted", "the letter %.20q has no area", l.Text)
//			}
//			return "About " + s.Area + ": thank you.", nil
//		})
//
// A leaf sees only the nodes that it declares. [New] and [Leaf] make leaves whose bodies read the DAG themselves; they declare
// their reads with [Queries].
//
// Package agent makes leaves in which a model works in turns and calls tools. Package call makes leaves whose capability is
// selected at run time, by contract and quality.
//
// # Composition
//
// Compositions are ashlars too:
//
//	p := stone.Seq("answer",
//		sort,
//		stone.Match("route", stone.Lens("area"),
//			stone.Case("billing", billing),
//			stone.Case("bug", draft),
//		),
//	)
//
// The forms:
//
//   - [Seq] runs steps in order. [Flow] produces the same nodes, but starts each step as
//     soon as every earlier step that could produce its input has finished.
//   - [Match] runs the branch that a value selects. [Lens] takes the value from a field of
//     the latest node, [On] computes it.
//   - [Loop] repeats a step until a condition holds, at most a given number of times.
//   - [Map] runs a step for each item of a list, and [Parallel] runs several steps, each in a lane that does not see other lanes.
//     [Reduce] marks the step that joins the lanes.
//   - [Rescue] handles failures: it runs another step if the first one fails.
//   - [Ask] asks a person.
//   - [Scoped] makes composites of other shapes.
//
// A fan-out and its reducer:
//
//	words := dag.Derive(Letter, func(l LetterDoc) []string { return strings.Fields(l.Text) })
//	loud := stone.Func("loud", Word, Shout, func(_ context.Context, w string) (string, error) {
//		return strings.ToUpper(w), nil
//	})
//	all := stone.Seq("shout",
//		stone.Map("each-word", words, Word, loud, stone.AllLanes()),
//		stone.Reduce(stone.Func("join", dag.Lanes(Shout), Short, func(_ context.Context, said []string) (string, error) {
//			return strings.Join(said, " "), nil
//		})),
//	)
//
// A lane that fails is dropped, unless [AllLanes] or [Quorum] requires it. At least one must succeed. Result.Lost lists the lanes
// that were dropped.
//
// # Validation
//
// [Validate] finds mistakes before anything runs: a type that no step, or only some branches, produce; a fan-out without a
// reducer; a field that a lens cannot find; a value without a branch. It returns all findings at once, each with its place in the
// tree and what to do. [Run] refuses a pipeline that has errors. Package finding lists the codes.
//
// # Running
//
// [Run] runs a pipeline and returns the DAG, which is the record of the run. [Produce]
// returns the value of a reader:
//
//	reply, err := stone.Produce(ctx, p, Draft, stone.Config{
//		Input: dag.Of(Letter.With(LetterDoc{Text: "My invoice is missing."})),
//	})
//
// The id of a node is a hash of its content, its type and its parents. Ids and order of
// nodes do not depend on which lane finished first.
//
// A recorder makes a run durable, and a watcher receives its events:
//
//	res, err := stone.Run(ctx, p, stone.Config{
//		RunID:    "letter-17",
//		Input:    input,
//		Recorder: journal.Keep(db, journal.Options{}),
//		Watch:    event.Log(handler),
//	})
//
// Running it again with the same RunID resumes it: no process repeats a recorded step. See package journal. Package event defines
// the stream of events; without a watcher, events cost nothing. Package budget limits what a run may spend.
//
// # Failures
//
// A body fails by returning an error or by panicking. Within a run, the failure travels with the DAG: a Seq and a Loop stop, a
// fan-out drops the lane, a Rescue records the failure and handles it. Run returns a [*Failure] with kind, reason and place. It
// unwraps to the error of the body, and errors.Is finds its kind:
//
//	_, err := stone.Run(ctx, p, stone.Config{Input: input})
//	if errors.Is(err, kind.Timeout) {
//		return "try again later"
//	}
//
// [Fail] makes an error with a kind of its own. [Retry] and [Timeout] are options of a leaf. An error with a method FailureMeta()
// map[string]string adds to the meta of the failure's node.
//
// # Inside a body
//
// [Step] records a part of a body's work, so that a resumed run does not repeat it. [In] returns the place of a body in its run,
// a [Body] with further methods: [Body.Event] sends an event; [Body.RunChild] runs a child; [Body.RunDynamic] validates and runs
// an ashlar that was made during the run, such as a plan that a model wrote, within a grant of effects; [Body.Keep] leaves its
// nodes in the DAG; and [Body.Await] waits, in a Flow, for all earlier steps.
//
// # Recorders
//
// One interpreter runs every pipeline, and records leaves, decisions and steps with a [step.Recorder]. Package journal provides
// the durable one.
//
// A recorder that opens and resumes whole runs, such as the one that journal.Keep returns, is a [RunRecorder]. A [RunRecord] is a
// run that it has opened.
//
// # Options
//
// Most constructors take options after the parts that they need. A leaf takes a [LeafOption], a fan-out a [FanOption] such as
// [AllowEmpty], and [Ask] an [AskOption]. Each lane or option of [Parallel] is a [FanPart]. [Match] takes an [Extractor], from
// [Lens] or [On], and a [Branch] for each value. [Func2] and [Func3] make leaves of functions with several inputs.
package stone
