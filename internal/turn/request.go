package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/serve/api"
)

// A Request is a client's request in a conversation. It starts a new turn, or continues a turn that has asked a question.
type Request struct {
	Chat    string     // ID of the conversation
	Join    bool       // there is no message; the client requests the conversation so far
	Message string     // ID of the user's new message; empty if there is none
	Content []llm.Part // content of the message
	Again   bool       // answer the message again
	Edited  bool       // the message replaces an earlier one
	Replies []string   // IDs of earlier replies, newest first; for replies of this server, Run returns the run
	Answers []Answer   // answers to questions
	Results []Answer   // results of calls that the client has executed, with the IDs of the calls
	Tools   []llm.Tool // tools of the client; see CheckTools
	Seen    Seen       // parts of the continued turn that the client already has
	Reply   string     // ID of the reply that is continued; empty for a new reply
	Notice  string     // notice from the server about the request
}

// An Answer is a client's answer to a question.
type Answer struct {
	ID       string // as returned by QuestionID
	Response string
	Approved *bool // for an approval; used instead of Response
	Cancel   bool  // used instead of Response; a message in the same request is the reason (see Instead)
}

// Of returns the response to a question. An error explains what kind of answer the question needs.
func (a Answer) Of(q journal.Question) (string, error) {
	if a.Approved == nil {
		return a.Response, nil
	}
	word := "no"
	if *a.Approved {
		word = "yes"
	}
	if with := word + ": " + a.Response; a.Response != "" && ask.Chosen(q.Choices, with) {
		return with, nil
	}
	if len(q.Choices) > 0 && !ask.Chosen(q.Choices, word) {
		return "", fmt.Errorf("the question %q is not an approval: answer it with one of %s", q.Name, strings.Join(q.Choices, ", "))
	}
	return word, nil
}

// notRun begins the result of a client's call if a message is sent instead of running the call.
const notRun = "The call was not run. The user wrote instead: "

// Said returns the text of the message with which a question was answered. It is the inverse of Instead.
func Said(q journal.Question) string {
	if q.Call == nil {
		return q.Response
	}
	return strings.TrimPrefix(strings.TrimPrefix(q.Response, notRun), "no: ")
}

// Instead returns the response to a question that is answered with a message. If a call is waiting for approval, the message
// refuses the call and is the reason.
func Instead(q journal.Question, message string) string {
	switch {
	case q.Call == nil || ask.Chosen(q.Choices, message):
		return message
	case q.Call.Client:
		return notRun + message
	}
	if no, err := (Answer{Response: message, Approved: new(bool)}).Of(q); err == nil {
		return no
	}
	return message
}

// inMessage separates the name of the person who answered a question from the ID of the message with the answer.
const inMessage = " in message "

// By combines the name of the person who answers and the ID of the message, in at most ask.MaxBy bytes.
func By(who, message string) string {
	in := inMessage + short(message)
	return strings.ToValidUTF8(who[:min(len(who), ask.MaxBy-len(in))], "") + in
}

// In reports whether by, a result of By, contains the ID of the message. If it does, the message was sent again.
func In(by, message string) bool { return strings.HasSuffix(by, inMessage+short(message)) }

// MessageOf returns the ID of the message in a result of By, or "" if there is none.
func MessageOf(by string) string {
	if i := strings.LastIndex(by, inMessage); i >= 0 {
		return by[i+len(inMessage):]
	}
	return ""
}

// short returns an ID, or a digest if the ID is long or ambiguous.
func short(id string) string {
	if len(id) <= ask.MaxBy/2 && !strings.Contains(id, inMessage) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

// Text returns the text of the user's message.
func (r *Request) Text() string { return (&llm.Message{Content: r.Content}).Text() }

// maxTools is the maximum number of tools per client.
const maxTools = 128

// toolName matches the tool names that every provider accepts.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// CheckTools checks the tools of a client. It sets an empty schema for tools without arguments.
func CheckTools(tools []llm.Tool) error {
	if len(tools) > maxTools {
		return fmt.Errorf("tools: got %d, want at most %d", len(tools), maxTools)
	}
	names := map[string]bool{}
	for i := range tools {
		t := &tools[i]
		if len(t.Schema) == 0 || string(t.Schema) == "null" {
			t.Schema = json.RawMessage(`{"type":"object"}`)
		}
		var object map[string]json.RawMessage
		_, _, err := schema.ParseForeign(t.Schema)
		switch {
		case !toolName.MatchString(t.Name):
			return fmt.Errorf("tools: the name %.100q: want 1 to 64 of a-z, A-Z, 0-9, \"_\" and \"-\"", t.Name)
		case names[t.Name]:
			return fmt.Errorf("tools: two have the name %q", t.Name)
		case err != nil:
			return fmt.Errorf("tools: the parameters of %s: %w", t.Name, err)
		case json.Unmarshal(t.Schema, &object) != nil:
			return fmt.Errorf("tools: the parameters of %s: want the JSON Schema of an object", t.Name)
		}
		names[t.Name] = true
	}
	return nil
}

type listenKey struct{}

// Listen returns a context for requests within a server's process. A run that is started with it keeps its parts while it is
// running. A request that waits for the result of a run calls tell with all parts so far each time there are new ones.
func Listen(ctx context.Context, tell func([]Part)) context.Context {
	return context.WithValue(ctx, listenKey{}, tell)
}

// Listener returns the function given to Listen, or nil if there is none.
func Listener(ctx context.Context) func([]Part) {
	tell, _ := ctx.Value(listenKey{}).(func([]Part))
	return tell
}

// ErrNothing is the error for a request without a message or an answer.
var ErrNothing = errors.New("the request has no new message: end it with a user message, or answer the open questions")

// mark separates the ID of a run from the rest of an ID. No run ID contains it.
const mark = "~"

// ID returns the ID that clients of conversations see for something at an address in a run.
func ID(run, address string) string { return run + mark + address }

// Run returns the run in an ID that was created by ID.
func Run(id string) string {
	run, _, _ := strings.Cut(id, mark)
	return run
}

// CallID returns the ID of the call that a question is about.
func CallID(run string, q *journal.Question) string { return ID(run, q.Path) }

// QuestionID returns the ID of a question. It includes the version, so that an answer cannot apply to a different version.
func QuestionID(run string, q *journal.Question) string { return ID(run, q.Path) + "#" + q.Version }

// Question returns the run, path and version in a QuestionID.
func Question(id string) (run, path, version string, ok bool) {
	run, rest, ok := strings.Cut(id, mark)
	i := strings.LastIndexByte(rest, '#')
	if !ok || i < 0 || i == len(rest)-1 {
		return "", "", "", false
	}
	return run, rest[:i], rest[i+1:], true
}

// Progress records how much of each part a viewer has sent. It identifies parts by their IDs, so it is valid for every Log of the
// run.
type Progress[T any] struct{ by map[string]*progress[T] }

type progress[T any] struct {
	at   T
	void bool
	text string // text of a void part
}

// Each calls fn with every part and its progress, except for calls that must not be shown yet. (Clients treat a call without a
// result as a question to the client, and continue when there is no such call.) The record of a turn contains only the last text
// of the turn, with the ID of the first one. If the first text was retracted, Each changes the ID of the recorded text to the
// next ID, which the Log of the running process has used for this text.
func (s *Progress[T]) Each(parts []Part, fn func(p *Part, at *T)) {
	if s.by == nil {
		s.by = map[string]*progress[T]{}
	}
	times := map[string]int{}
	held := waiting(parts)
	for i, p := range parts {
		at := s.of(&p, times)
		for p.Kind <= Reasoning && p.State != Void && at.void && at.text != p.Text {
			p.ID = next(p.ID)
			at = s.of(&p, times)
		}
		if p.State == Void {
			at.void, at.text = true, p.Text
		}
		if !held[i] {
			fn(&p, &at.at)
		}
	}
}

// waiting returns the indexes of calls that cannot have started, because they follow an open call of the same turn.
func waiting(parts []Part) map[int]bool {
	asked, open, held := map[string]bool{}, map[string]bool{}, map[int]bool{}
	for _, p := range parts {
		asked[p.ID] = asked[p.ID] || p.Kind == Ask
	}
	for i, p := range parts {
		if p.Kind == Tool && p.State != Void && p.Output == nil {
			held[i] = open[p.Turn] && !p.Started && !asked[p.ID]
			open[p.Turn] = true
		}
	}
	return held
}

// next returns the ID of the text that follows the text with the given ID in its turn.
func next(id string) string {
	cut := strings.LastIndexByte(id, '/') + 1
	kind, n, _ := strings.Cut(id[cut:], "~")
	i, _ := strconv.Atoi(n)
	return fmt.Sprintf("%s%s~%d", id[:cut], kind, max(i, 1)+1)
}

// of returns the progress of a part.
func (s *Progress[T]) of(p *Part, times map[string]int) *progress[T] {
	key := string(rune('0'+p.Kind)) + p.ID
	if times[key]++; times[key] > 1 { // a repeated call
		key += fmt.Sprint("#", times[key])
	}
	if p.Kind == Ask {
		key += p.Question.Version
	}
	if s.by[key] == nil {
		s.by[key] = &progress[T]{}
	}
	return s.by[key]
}

// Seen contains the IDs of the parts that a client has. The texts of a turn are complete before its calls start, so a client that
// has one text of the turn has all of them.
type Seen map[string]bool

// AddQuestion adds an open question, or a call that the client was asked to execute.
func (s Seen) AddQuestion(id string) { s[id+"/asked"] = true }

// HasQuestion reports whether the client has a question.
func (s Seen) HasQuestion(run string, q *journal.Question) bool {
	return s[QuestionID(run, q)+"/asked"] || q.Call != nil && q.Call.Client && s[CallID(run, q)+"/asked"]
}

// AddResult adds the result of a call.
func (s Seen) AddResult(call string) { s[call+"/result"] = true }

// HasResult reports whether the client has the result of a call.
func (s Seen) HasResult(run string, p *Part) bool { return s[ID(run, p.ID)+"/result"] }

// Add adds the ID of a part.
func (s Seen) Add(id string) {
	s[id] = true
	if i := strings.LastIndexByte(id, '/'); i >= 0 && (strings.HasPrefix(id[i:], "/text") || strings.HasPrefix(id[i:], "/reasoning")) {
		s[id[:i]+"/"] = true
	}
}

// Has reports whether the client has a part of a run.
func (s Seen) Has(run string, p *Part) bool {
	return s[ID(run, p.ID)] || p.Kind <= Reasoning && s[ID(run, p.Turn)+"/"]
}

// Why explains to people why a run has no result.
func Why(run api.Run) string {
	if run.Failure != nil {
		return fmt.Sprintf("%s: %s", run.Failure.Kind, run.Failure.Reason)
	}
	return fmt.Sprintf("the run is %s", run.State)
}

// Result returns the result of a run as text, or as an object or a list.
func Result(n *api.Node) (text string, value any) {
	if n == nil || json.Unmarshal(n.Content, &text) == nil {
		return text, nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(n.Content, &object) != nil || object == nil {
		return "", n.Content
	}
	delete(object, "conversation") // contained in an agent's result
	if json.Unmarshal(object["text"], &text) == nil && len(object) == 1 {
		return text, nil
	}
	return "", object
}

// An Exchange is a user's message and the reply to it, as recorded in the journal. A run has several exchanges if its questions
// were answered with messages.
type Exchange struct {
	Message string     // ID of the user's message
	Content []llm.Part // content of the message
	Reply   string     // ID of the reply; empty while the reply is being written
	Run     api.Run    // the run as it was at the end of the reply
	Parts   []Part     // parts of the reply
}

// Size estimates how many bytes the exchange needs when it is sent to a client.
func (e *Exchange) Size() (n int) {
	for _, c := range e.Content {
		if n += len(c.Text); c.Media != nil {
			n += len(c.Media.Data) * 4 / 3
		}
	}
	for i := range e.Parts {
		p := &e.Parts[i]
		if n += len(p.ID) + len(p.Text) + len(p.Input); p.Output != nil {
			n += len(*p.Output)
		}
	}
	if _, value := Result(e.Run.Result); value != nil {
		n += len(e.Run.Result.Content)
	}
	return n
}
