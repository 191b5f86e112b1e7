// Package terms defines names shared by Stone's packages: node types, names of schemas and intents, and keys of the notes beside
// a recorded step.
package terms

// Emit is the type of the node that a plan emits.
const Emit = "stone/emit"

// Schemas of calls.
const (
	AnyRequest  = "req/any"  // anything
	AnyAnswer   = "res/any"  // anything
	TextRequest = "req/text" // an object with non-blank text in "prompt", "text" or "content"
	TextAnswer  = "res/text" // an object with non-blank text in "text" or "content"
	EvalRequest = "req/eval" // the input of a judge: "rubric", "intent", "input", "out", "done"
	EvalAnswer  = "res/eval" // the answer of a judge: a "score" within 0..1, and "reasons"
)

// Intents of judges.
const (
	Check = "eval/check" // passes or fails an answer
	Grade = "eval/grade" // scores an answer
)

// Meta keys of nodes and failures.
const (
	CallNote  = "call"        // the Record of a call
	UsageNote = "usage"       // what a step used
	FanOut    = "fan-out"     // of a lane's failure: the address of its fan-out
	Lanes     = "lanes"       // of a lane's failure: the number of lanes of its fan-out
	From      = "reused-from" // the run that a recorded step was taken from
	// As is the original id of a node that a forked run copied from another run. Steps that read the copy are identified by that
	// id, because an id covers all earlier nodes, which may differ in the fork. A DAG read from outside has no such meta.
	As      = "reused-as"
	Beside  = "beside"  // content beside the content of a node
	Request = "request" // digest of a recorded step's request
)

// Codes of warnings of a run.
const (
	PromptChanged   = "prompt-changed"   // recorded answers and conversations keep the old prompt
	PipelineChanged = "pipeline-changed" // the run continues: what changed has not started
	UnusedRecords   = "unused-records"   // a body did not use steps that it had recorded
)

// A Versioned reader states the version of its computation, see dag.Reader.
type Versioned interface{ Version() string }

// Version returns the version of a reader, or "" if it states none.
func Version(reader any) string {
	if v, ok := reader.(Versioned); ok {
		return v.Version()
	}
	return ""
}
