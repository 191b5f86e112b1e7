// Package terms defines names that Stone's packages share: node types, names of schemas and intents, and meta keys of recorded
// steps.
package terms

// Emit is the type of the node that a plan emits.
const Emit = "stone/emit"

// Schemas of calls.
const (
	AnyRequest  = "req/any"  // any value
	AnyAnswer   = "res/any"  // any value
	TextRequest = "req/text" // an object with non-blank text in "prompt", "text" or "content"
	TextAnswer  = "res/text" // an object with non-blank text in "text" or "content"
	EvalRequest = "req/eval" // input of a judge: "rubric", "intent", "input", "out", "done"
	EvalAnswer  = "res/eval" // answer of a judge: a "score" from 0 to 1, and "reasons"
)

// Intents of calls that Stone makes itself.
const (
	Check  = "eval/check"    // lets an answer pass or fail
	Grade  = "eval/grade"    // scores an answer
	Revise = "eval/revise"   // proposes a better prompt
	Rerank = "search/rerank" // reorders passages
	Turn   = "llm/turn"      // answers a turn of an agent
)

// OwnIntents are the intents that are known although no configuration defines them.
var OwnIntents = []string{Grade, Rerank, Revise, Turn}

// Meta keys of nodes and failures.
const (
	CallNote  = "call"        // the call.Record of a call
	UsageNote = "usage"       // usage of a step
	FanOut    = "fan-out"     // for the failure of a lane: address of the fan-out
	Lanes     = "lanes"       // for the failure of a lane: number of lanes in the fan-out
	From      = "reused-from" // ID of the run that a recorded step was taken from
	// As is the original ID of a node that a forked run copied from another run. Steps that read the copy are identified by the
	// original ID, because an ID covers all earlier nodes, which may differ in the fork. A DAG from outside never contains this
	// key.
	As      = "reused-as"
	Beside  = "beside"  // additional content of a node
	Request = "request" // digest of a recorded step's request
)

// Codes of notices about a run.
const (
	PromptChanged   = "prompt-changed"   // a prompt changed; recorded answers and conversations keep the old one
	PipelineChanged = "pipeline-changed" // the pipeline changed, but only in steps that have not started, so the run continues
	UnusedRecords   = "unused-records"   // a body has not used steps that it had recorded
)

// A Versioned reader has a version of its computation; see dag.Reader.
type Versioned interface{ Version() string }

// Version returns the version of a reader, or "" if it has none.
func Version(reader any) string {
	if v, ok := reader.(Versioned); ok {
		return v.Version()
	}
	return ""
}
