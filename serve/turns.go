package serve

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/serve/internal/openai"
)

// told marks a run whose clients watch what it says.
func told(ctx context.Context, t *task) error {
	t.source.Chat = t.how.chat || turn.Listener(ctx) != nil
	return nil
}

// tells collects what such a run says.
func (s *Server) tells(ctx context.Context, t *task) event.Watcher {
	roles := s.roles[t.Name]
	if !t.source.Chat || roles == nil {
		return nil
	}
	return &turn.Log{Roles: roles(), Recorded: s.recorded(ctx, t.run.RunID, new(error))}
}

// recorded returns the values of the recorded steps of a run.
func (s *Server) recorded(ctx context.Context, run string, failed *error) func(path string) json.RawMessage {
	return func(path string) json.RawMessage {
		record, err := s.cfg.Journal.Record(ctx, run, path, "step")
		if err != nil && !errors.Is(err, journal.ErrNoStep) { // a step that was cut off
			*failed = err
		}
		return record.Content
	}
}

// A cut is where a message has answered a question: what follows is the reply to that message.
type cut struct {
	journal.Question
	parts int // before it
}

// parts returns what the journal has of a run. To the Log, it is a run in which everything is replayed.
func (s *Server) parts(ctx context.Context, p *Pipeline, info journal.RunInfo) (*turn.Log, []cut, error) {
	var failed error
	var cuts []cut
	log := &turn.Log{Roles: s.roles[p.Name](), Recorded: s.recorded(ctx, info.ID, &failed)}
	told := map[string]bool{}
	tell := func(path, name string, d event.Data) {
		log.Watch(ctx, event.Event{Path: path, Name: name, Data: d})
	}
	var answers []journal.Question // in messages
	for q, err := range journal.EachQuestion(ctx, s.cfg.Journal, journal.QuestionQuery{Run: info.ID}) {
		if err != nil {
			return nil, nil, err
		}
		if !q.Open() {
			tell(q.Path, q.Name, event.QuestionAnswered{Answer: q.Response, Client: q.Call != nil && q.Call.Client})
			if turn.MessageOf(q.By) != "" {
				answers = append(answers, q)
			}
		}
	}
	last, err := s.cfg.Journal.Last(ctx, info.ID)
	if err != nil {
		return nil, nil, err
	}
	broken := map[string]string{} // why leaves have failed, by their paths
	for row, err := range s.cfg.Journal.Follow(ctx, info.ID, 0) {
		if row.Kind == "leaf" && row.Failure != "" {
			broken[row.Path] = row.Reason
		} else if row.Kind == "leaf" {
			delete(broken, row.Path)
		}
		if i := slices.IndexFunc(answers, func(q journal.Question) bool { return q.Path == row.Path }); i >= 0 && row.Ended {
			parts, _ := log.Now()
			if at := slices.IndexFunc(parts, func(p turn.Part) bool { return p.Kind == turn.Tool && p.ID == row.Path }); at >= 0 { // no later call had started
				parts = parts[:at+1]
			}
			cuts = append(cuts, cut{answers[i], len(parts)})
			answers = slices.Delete(answers, i, i+1)
		}
		switch {
		case err != nil:
			return nil, nil, err
		case failed != nil:
			return nil, nil, failed
		case row.Kind == "leaf" && !row.Ended:
			tell(row.Path, row.Name, event.StepStarted{Form: "leaf"})
		case row.Kind == "leaf":
			tell(row.Path, row.Name, event.StepDone{Form: "leaf", OK: row.Failure == ""})
		case row.Kind == "step" && row.Ended && !told[row.Path] && len(told) < maxRecords:
			told[row.Path] = true // one that was cut off has an end too
			tell(row.Path, row.Name, event.StepReplayed{Kind: row.Kind})
		}
		if row.Seq >= last { // it may be running
			break
		}
	}
	for path, why := range broken {
		log.Failed(path, why)
	}
	log.End()
	parts, _ := log.Now()
	for _, q := range answers { // just now
		cuts = append(cuts, cut{q, len(parts)})
	}
	return log, cuts, failed
}

// maxRecords bounds the steps of a run that are read to tell of it.
const maxRecords = 8192

// ending returns the parts that a run has only when it has stopped: its open questions, or its answer if
// no model has written it. Live has the parts that the client was told while the run was running: they have texts of calls,
// and the record has none.
func (c conversation) ending(info journal.RunInfo, parts, live []turn.Part) (api.Run, []turn.Part, error) {
	out := run(c.who, info)
	if info.State == journal.Waiting {
		// Further ones are asked when these have their answers.
		open, _, err := view.Page(journal.EachQuestion(c.ctx, c.cfg.Journal, journal.QuestionQuery{Run: info.ID, Open: true}), maxPage, pageBytes)
		if err != nil {
			return out, nil, err
		}
		for _, q := range open {
			parts = append(parts, turn.Part{Kind: turn.Ask, ID: q.Path, Question: &q})
		}
	}
	if info.State != journal.Done {
		return out, parts, nil
	}
	var err error
	if out.Result, err = c.result(c.ctx, info); err != nil {
		return out, nil, err
	}
	if text, _ := turn.Result(out.Result); text != "" && !ends(parts, text) && !ends(live, text) {
		parts = append(parts, turn.Part{Kind: turn.Text, State: turn.Done, ID: "answer/text", Turn: "answer", Text: text})
	}
	return out, parts, nil
}

// ends reports whether a text is the last that was said.
func ends(parts []turn.Part, text string) bool {
	for _, p := range slices.Backward(parts) {
		if p.Kind == turn.Text && p.State != turn.Void {
			return p.Text == text
		}
	}
	return false
}

// roles finds what the answers of each leaf of a pipeline are to a conversation.
func roles(p *Pipeline) map[string]turn.Role {
	result := p.Result
	if t := p.Ashlar.Result(); result == "" && t != nil && t.Err() == nil {
		result = t.Name()
	}
	all := map[string]turn.Role{}
	var walk func(stone.Ashlar)
	walk = func(a stone.Ashlar) {
		if t := a.Produces(); openai.Speaks(t) {
			if all[a.Name()] = turn.Thinks; t.Name() == result {
				all[a.Name()] = turn.Answers
			}
		}
		for _, c := range a.Children() {
			walk(c)
		}
	}
	walk(p.Ashlar)
	return all
}
