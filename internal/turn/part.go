package turn

import (
	"encoding/json"

	"github.com/stonelayer/stone/journal"
)

// A Kind is the kind of a Part.
type Kind uint8

// The kinds of parts.
const (
	Text Kind = iota
	Reasoning
	Tool // a tool call
	Step // a visit to a leaf of the pipeline
	Ask  // an open question
)

// A State is the progress of a Part.
type State uint8

// The states of parts.
const (
	Open State = iota
	Done       // accepted or ended
	Void       // retracted
)

// A Part is one part of a turn's output. The order of parts never changes.
type Part struct {
	Kind   Kind
	State  State
	ID     string // address of the part in the run; a call that the model repeats has the same address
	Turn   string // address of the model's turn, or of the leaf
	Text   string // text so far; for a Tool, arguments so far
	Reason string // why the part is Void

	Tool    string          // name of the tool or leaf
	Input   json.RawMessage // arguments of the call; nil until they are complete
	Started bool            // the call has started; this is not recorded
	Output  *string         // result of the call; nil until it has ended
	Failed  bool            // the call or leaf has failed
	Denied  bool            // a person has refused the call

	Question *journal.Question // for an Ask; the part's ID identifies the call that the question is about, if any
}

// After returns the text after the first n bytes. A recorded text may be shorter than the text that was sent, because the
// arguments of calls are recorded without the white space that the model wrote between JSON tokens.
func (p *Part) After(n int) string { return p.Text[min(n, len(p.Text)):] }

// Role is the role that a leaf's answers have in the conversation.
type Role uint8

// The roles of leaves.
const (
	Silent  Role = iota // not shown, such as JSON
	Thinks              // shown as reasoning, because it is work for other steps
	Answers             // shown as the answer
)

// A Cut marks the place where a message has answered a question. The parts that follow are the reply to that message.
type Cut struct {
	journal.Question
	Parts int // number of parts before the cut
}

// Labels of turns, which are the runs of a conversation.
const (
	ChatLabel    = "chat"         // ID of the conversation
	NumberLabel  = "chat-turn"    // number of the turn, from 1
	AfterLabel   = "chat-after"   // number of the turn that the turn continues; 0 for none
	MessageLabel = "chat-message" // client's ID of the message that the turn answers
)
