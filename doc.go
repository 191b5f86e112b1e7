// Package stone composes work that language models do with work that ordinary
// code does, as one kind of thing.
//
// # Ashlars
//
// Every step is an [Ashlar]: a function from DAG to DAG that carries what it
// reads and what it produces. A parser, a call to a model, an agent of twelve
// turns, a question to a person and a composition of all of these are ashlars,
// and compose in the same way. Steps never call each other. They agree on types:
//
//	var (
//		Ticket = dag.NewType[TicketDoc]("ticket")
//		Triage = dag.NewType[TriageDoc]("triage")
//		Reply  = dag.NewType[ReplyDoc]("reply")
//	)
//
// A leaf reads nodes of some types and returns the content of one node. A type
// reads the nearest node; [dag.All], [dag.Maybe] and other readers read in other
// ways. The queries of the leaf are those of its readers:
//
//	triage := stone.Func("triage", Ticket, Triage, func(ctx context.Context, t TicketDoc) (TriageDoc, error) {
//		…
//	})
//
// A body that reads in other ways is given the DAG, and declares what it reads.
// What is not declared cannot be read:
//
//	stone.New("summary", Summary, func(ctx context.Context, d dag.DAG) (SummaryDoc, error) {
//		replies, err := dag.All(Reply).From(d)
//		…
//	}, stone.Queries(dag.All(Reply)))
//
// # Composition
//
//	stone.Seq("support",
//		read,                                        // produces Ticket
//		triage,                                      // Ticket → Triage
//		stone.Match("route", stone.Lens("area"),     // look into the latest node
//			stone.Case("billing", billing),
//			stone.Case("bug", stone.Loop("until-reproduced", reproduce,
//				stone.Until(Report, Report.Conclusive), 3)),
//		),
//	)
//
// [Seq] runs steps in order. [Flow] leaves the same as Seq, but lets steps go on
// at the same time that do not read from each other. [Loop] repeats a body until a condition holds, at
// most Max times. [Match] takes the one branch that a value selects. [Map] runs
// a body for each item of a list and [Parallel] runs several bodies, each in a
// lane of its own that sees nothing of the others; [Reduce] marks the step that
// brings lanes together. [Rescue] is the one place where a failure stops. [Ask]
// asks a person. [Scoped] makes composites of other shapes.
//
// Composition is data. What runs it is one interpreter, which hands leaves,
// decisions and fan-outs to a [step.Executor] and passes each through a [step.Recorder],
// so that the same pipeline runs in a test, on a laptop and elsewhere.
//
// # What is made during a run
//
// A body can run an ashlar that did not exist when the run began, such as a plan
// that a model wrote: [Body.RunDynamic] validates it, holds it to a grant of effects,
// and runs it as part of the run. [Body.Keep] leaves its nodes in the DAG, beside the
// node of the leaf, and in a Flow [Body.Await] brings what it reads:
//
//	d, err := stone.In(ctx).Await(d)
//	…
//	out := stone.In(ctx).RunDynamic(compiled, d, []string{"fs/read"})
//	if out.Failed() {
//		return none, out.Cause()
//	}
//	d, err = stone.In(ctx).Keep(d, out)
//
// # Validation
//
// Because ashlars carry what they read and produce, [Validate] finds what is
// wrong before anything runs: a type that nobody produces, or only some
// branches, a fan-out that nobody reduces, a field that a lens will not find, a
// branch that no value selects. It returns all findings at once, each with its
// place in the tree and what to do. [Run] refuses a pipeline that has errors.
//
// # Running
//
//	res, err := stone.Run(ctx, Pipeline(), stone.Config{Watch: event.Log(handler)})
//	reply, err := Reply.From(res.DAG)
//
// The DAG is the record of the run: every result, who it came from, and every
// failure, each under an id that is a hash of what it is and of all that came
// before. The order of nodes and their ids do not depend on which lane finished
// first.
//
// # Failures
//
// A body fails by returning an error; [Fail] gives it a kind of its own. Inside
// a run the failure travels in flight, beside the nodes: a Seq stops, a Loop
// stops, a fan-out drops the lane and goes on with the others (unless AllLanes
// or Quorum say otherwise), a Rescue records it. At the edge Run returns a
// [*Failure] with kind, reason and place, which unwraps to the error of the
// body. A panic is a failure like any other. Package kind names the kinds. What an
// error says in a method FailureMeta() map[string]string is noted beside the node
// of the failure.
//
// # Watching
//
// A run sends its events to the slog.Handler in its [Config] and nowhere else.
// Inside a body, [Body.Event] sends one of the body's own, with the ids of run and
// span that tie all events together. With no handler an event costs nothing.
package stone
