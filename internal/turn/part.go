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
	Tool // a call
	Step // a leaf of the pipeline is visited
	Ask  // an open question
)

// A State is the progress of a Part.
type State uint8

// The states of parts.
const (
	Open State = iota
	Done       // accepted, or ended
	Void       // taken back
)

// A Part is a part of a turn. The order of parts never changes.
type Part struct {
	Kind   Kind
	State  State
	ID     string // its address in the run. A call that a model repeats has the same address.
	Turn   string // the address of the model's turn, or of the leaf
	Text   string // the text so far; for a Tool, its arguments so far
	Reason string // why it is Void

	Tool    string          // its name
	Input   json.RawMessage // the arguments; nil until they are complete
	Started bool            // the call; no record says so
	Output  *string         // nil until it has ended
	Failed  bool            // the call, or the leaf, failed
	Denied  bool            // a person refused it

	Question *journal.Question // of an Ask; the part's ID names the call that the question is about, if any
}

// After returns the text after its first n bytes. A recorded text may be shorter than the part that was sent: call arguments are
// recorded without the model's spaces.
func (p *Part) After(n int) string { return p.Text[min(n, len(p.Text)):] }

// Role is the role of a leaf's answers in the conversation.
type Role uint8

// The roles of leaves.
const (
	Silent  Role = iota // not to be shown, such as JSON
	Thinks              // work for other steps
	Answers             // the answer
)

// A Cut marks where a message has answered a question: the following parts reply to that message.
type Cut struct {
	journal.Question
	Parts int // before it
}

// Labels of turns, which are the runs of a conversation.
const (
	ChatLabel    = "chat"         // the id of the conversation
	NumberLabel  = "chat-turn"    // the number of the turn, from 1
	AfterLabel   = "chat-after"   // the number of the turn that it continues, 0 for none
	MessageLabel = "chat-message" // the client's id of the message that it answers
)
