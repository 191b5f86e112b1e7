package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/llm"
)

// The limits of a Log. Parts that exceed them are omitted.
const (
	maxParts = 4096
	maxSteps = 256 // maximum number of parts of kind Step
	maxBytes = 8 << 20
)

// Log collects the parts of a run. It is an event.Watcher for one run, and is safe for concurrent use.
type Log struct {
	// Roles maps the names of the pipeline's leaves to their roles.
	Roles map[string]Role
	// Recorded returns the value of a recorded step, or nil. It is called for an event.StepReplayed.
	Recorded func(path string) json.RawMessage

	mu     sync.Mutex
	parts  []*part
	leaves map[string]Role // roles of the visited leaves, by path
	asked  map[string]bool // paths of open questions
	denied map[string]bool // addresses of calls that people have refused
	steps  int
	bytes  int
	over   bool
	news   chan struct{} // closed when anything changes; nil if nobody is waiting
}

type part struct {
	Part
	text    strings.Builder
	path    string // path of the events for the part
	source  string
	attempt int
	call    int
}

// Now returns the parts so far, and a channel that is closed when there are more. The channel is nil if there will be no more.
func (l *Log) Now() (parts []Part, news <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts = make([]Part, len(l.parts))
	for i, p := range l.parts {
		parts[i] = p.Part
		parts[i].Text = p.text.String()
	}
	if l.over {
		return parts, nil
	}
	if l.news == nil {
		l.news = make(chan struct{})
	}
	return parts, l.news
}

// End records that there will be no more parts.
func (l *Log) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.wake()
}

func (l *Log) wake() {
	if l.news != nil {
		close(l.news)
		l.news = nil
	}
}

// Wants implements event.Watcher. It includes level debug, because the arguments and results of tools have this level.
func (l *Log) Wants(_ context.Context, level slog.Level) bool {
	return level == event.LevelDelta || level >= slog.LevelDebug
}

// Watch implements event.Watcher.
func (l *Log) Watch(_ context.Context, e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch d := e.Data.(type) {
	case event.StepStarted:
		if d.Form == "leaf" {
			l.enter(e.Path, e.Name)
		}
	case event.StepDone:
		if d.Form == "leaf" {
			l.leave(e.Path, d.OK)
		}
	case event.Delta:
		l.delta(e.Path, d)
	case event.ModelResponse:
		if d.Reply != nil && d.Turn > 0 && !d.Replayed {
			l.called(e.Path, callsOf(d.Reply.ToolCalls))
		}
	case event.StepReplayed:
		if d.Kind == "step" {
			l.recorded(e.Path)
		}
	case event.ToolStarted:
		if p := l.find(toolAt(e.Path, d.Turn, d.Position)); p != nil {
			p.Started = true
		}
	case event.ToolDone:
		l.done(toolAt(e.Path, d.Turn, d.Position), d.Text, !d.OK)
	case event.QuestionAsked:
		if l.asked == nil {
			l.asked = map[string]bool{}
		}
		l.asked[e.Path] = true
		return
	case event.QuestionAnswered:
		delete(l.asked, e.Path)
		if l.denied == nil {
			l.denied = map[string]bool{}
		}
		l.denied[e.Path] = !d.Client && (d.Answer == "" || d.Answer == "never" || d.Answer == "no" || strings.HasPrefix(d.Answer, "no:"))
	case event.Retracted:
		l.retract(e.Path, d)
	default:
		return
	}
	l.wake()
}

// callsOf returns the calls in an event. Their type is different if a watcher has removed secrets.
func callsOf(told any) (calls []llm.ToolCall) {
	calls, ok := told.([]llm.ToolCall)
	if text, err := json.Marshal(told); !ok && err == nil {
		_ = json.Unmarshal(text, &calls) // if this fails, there are no calls
	}
	return calls
}

// split splits the address of a turn into the agent's address and the number of the turn; see package agent.
func split(path string) (agent string, turn int) {
	cut := strings.LastIndex(path, "/turn-")
	if cut < 0 {
		return path, 0
	}
	n, _, _ := strings.Cut(path[cut+len("/turn-"):], "@") // a turn may have been repeated; see agent.Compact
	turn, _ = strconv.Atoi(n)
	return path[:cut], turn
}

func toolAt(agent string, turn, position int) string {
	return fmt.Sprintf("%s/tool-%d-%d", agent, turn, position)
}

// callAt returns the address of a call, given the path of its turn and its position in the turn.
func callAt(path string, position int) string {
	agent, turn := split(path)
	return toolAt(agent, turn, position)
}

func (l *Log) enter(path, name string) {
	if l.leaves == nil {
		l.leaves = map[string]Role{}
	}
	l.leaves[path] = l.Roles[name]
	if l.steps == maxSteps || slices.ContainsFunc(l.parts, func(p *part) bool { return p.Kind == Step && p.path == path && p.State == Open }) {
		return // the leaf is already open because it has waited for an answer
	}
	l.steps++
	l.add(&part{Part: Part{Kind: Step, ID: path, Turn: path, Tool: name}, path: path})
}

// leave ends a visit to a leaf. If the leaf has a result, its open parts are accepted, except calls without a result.
func (l *Log) leave(path string, ok bool) {
	if !ok && l.waits(path) {
		return
	}
	for _, p := range l.parts {
		if p.Kind == Step && p.path == path {
			p.State, p.Failed = Done, !ok
		}
		if ok && p.State == Open && (event.Retracted{}).Covers(path, p.path, "", 0) && (p.Kind != Tool || p.Output != nil) {
			p.State = Done
		}
	}
}

// toolStep matches an address within a tool call. It requires the numbers because an agent may be named tool-x.
var toolStep = regexp.MustCompile(`/tool-[0-9]+-[0-9]+(/|$)`)

// role returns the role of the leaf to which a path belongs.
func (l *Log) role(path string) Role {
	for at := path; at != ""; at = at[:max(strings.LastIndexByte(at, '/'), 0)] {
		if role, ok := l.leaves[at]; ok {
			if toolStep.MatchString(path) { // the path belongs to an agent that is used as a tool
				return min(role, Thinks)
			}
			return role
		}
	}
	return Silent
}

// add appends a part, unless there are too many.
func (l *Log) add(p *part) *part {
	if len(l.parts) >= maxParts || l.bytes >= maxBytes {
		return nil
	}
	l.parts = append(l.parts, p)
	return p
}

// say appends a piece of text to a part.
func (l *Log) say(p *part, text string) {
	if p != nil && l.bytes < maxBytes {
		l.bytes += len(text)
		p.text.WriteString(text)
	}
}

// find returns the newest Tool part with the ID that is not void, or nil.
func (l *Log) find(id string) *part {
	for i := len(l.parts) - 1; i >= 0; i-- {
		if p := l.parts[i]; p.ID == id && p.State != Void && p.Kind == Tool {
			return p
		}
	}
	return nil
}

func (l *Log) delta(path string, d event.Delta) {
	if d.End || d.Text == "" && d.Tool == "" {
		return
	}
	kind := Text
	switch d.Kind {
	case event.Thinking:
		kind = Reasoning
	case event.Arguments:
		kind = Tool
	}
	kind, shown := l.kind(path, kind)
	if !shown {
		return
	}
	var p *part
	for i := len(l.parts) - 1; i >= 0 && p == nil; i-- {
		if at := l.parts[i]; at.path == path && at.source == d.Source && at.attempt == d.Attempt && at.Kind == kind && at.call == d.Index && at.State == Open {
			p = at
		}
	}
	if p == nil {
		p = l.open(kind, path, d.Index)
		if p == nil {
			return
		}
		p.source, p.attempt, p.Tool = d.Source, d.Attempt, d.Tool
	}
	l.say(p, d.Text)
}

// kind returns the kind of part that shows a step's text, or false if the text is not shown.
func (l *Log) kind(path string, kind Kind) (Kind, bool) {
	switch role := l.role(path); {
	case kind == Text && role == Silent:
		return kind, false
	case kind == Text && role == Thinks:
		return Reasoning, true
	}
	return kind, true
}

// open appends a part that belongs to a model's turn.
func (l *Log) open(kind Kind, path string, call int) *part {
	p := &part{Part: Part{Kind: kind, Turn: path}, path: path, call: call}
	if p.ID = callAt(path, call+1); kind != Tool {
		p.ID = fmt.Sprintf("%s/%s", path, [...]string{"text", "reasoning"}[kind])
		for _, other := range l.parts {
			if other.path == path && other.Kind == kind {
				p.ID = next(p.ID)
			}
		}
	}
	return l.add(p)
}

// called records the complete calls of a model's turn.
func (l *Log) called(path string, calls []llm.ToolCall) {
	for i, c := range calls {
		p := l.find(callAt(path, i+1))
		if p == nil {
			if p = l.open(Tool, path, i); p == nil {
				return
			}
		}
		p.Tool = cmp.Or(c.Name, p.Tool)
		if p.Input = c.Input; p.Input == nil { // the call was cut off
			p.Input, _ = json.Marshal(c.InputText)
		}
		if p.text.Len() == 0 {
			l.say(p, string(p.Input))
		}
	}
}

// reject makes the answer of the turn before a recorded one void. A turn without calls that was followed by another turn must have
// been rejected, although that is not recorded.
func (l *Log) reject(path string) {
	agent, n := split(path)
	before, called := fmt.Sprintf("%s/turn-%d", agent, n-1), false
	for _, p := range l.parts {
		called = called || p.Turn == before && p.Kind == Tool
	}
	for _, p := range l.parts {
		if p.Turn == before && p.Kind == Text && !called {
			p.State, p.Reason = Void, "rejected"
		}
	}
}

func (l *Log) done(id, text string, failed bool) {
	if p := l.find(id); p != nil {
		if l.bytes += len(text); l.bytes >= maxBytes {
			text = ""
		}
		p.Output, p.Failed, p.Denied, p.State = &text, failed, l.denied[id], Done
	}
}

// retract makes the parts of a rejected answer void. It does not apply to a leaf that fails because it is waiting for an answer:
// that leaf will produce the same parts again.
func (l *Log) retract(path string, d event.Retracted) {
	if d.Source == "" && l.waits(path) {
		return
	}
	for _, p := range l.parts {
		if p.State != Void && p.Kind != Step && d.Covers(path, p.path, p.source, p.attempt) {
			p.State, p.Reason = Void, d.Reason
		}
	}
}

// Failed retracts the texts of a failed leaf. It is needed for records, which do not contain retractions. The leaf's calls are
// kept, because they were made.
func (l *Log) Failed(leaf, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.parts {
		if p.State != Void && p.Kind <= Reasoning && strings.HasPrefix(p.path, leaf+"/") {
			p.State, p.Reason = Void, reason
		}
	}
}

// waits reports whether a question is open at a path or below it.
func (l *Log) waits(path string) bool {
	for at := range l.asked {
		if (event.Retracted{}).Covers(path, at, "", 0) {
			return true
		}
	}
	return false
}

// recorded adds the value of a recorded step: a model's answer, or the result of a call.
func (l *Log) recorded(path string) {
	step := path[strings.LastIndexByte(path, '/')+1:]
	isTurn, isTool := strings.HasPrefix(step, "turn-"), strings.HasPrefix(step, "tool-")
	if !isTurn && !isTool || l.Recorded == nil {
		return
	}
	var value struct {
		Reply  *llm.Reply
		Text   string
		Failed bool
	}
	if json.Unmarshal(l.Recorded(path), &value) != nil {
		return // the step was removed, or does not belong to an agent
	}
	if isTool {
		l.done(path, value.Text, value.Failed)
	} else if r := value.Reply; r != nil {
		l.reject(path)
		l.replay(Reasoning, path, r.Reasoning)
		l.replay(Text, path, r.Text)
		l.called(path, r.ToolCalls)
	}
}

// replay adds a text of a recorded answer as a complete part.
func (l *Log) replay(kind Kind, path, text string) {
	if kind, shown := l.kind(path, kind); shown && text != "" {
		l.say(l.open(kind, path, 0), text)
	}
}
