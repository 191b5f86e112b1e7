package serve

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/talk"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// sessionLabels are the labels that protocols give to runs that are turns of one session and share a person's standing answers.
var sessionLabels = []string{turn.ChatLabel, "acp-session"} // chats and editors

// inSession sets the session of a run.
func inSession(_ context.Context, t *task) error {
	t.run.Conversation = t.keep.Labels[turn.ChatLabel]
	for _, name := range sessionLabels {
		if t.keep.Session = []string{name, tenantLabel}; t.keep.Labels[name] != "" {
			break
		}
	}
	return nil
}

// shownLabels returns a run's labels except those that order the turns of a conversation.
func shownLabels(info journal.RunInfo) map[string]string {
	if info.Labels[turn.ChatLabel] == "" || info.Labels[turn.NumberLabel] == "" {
		return info.Labels
	}
	labels := maps.Clone(info.Labels)
	for _, name := range []string{turn.NumberLabel, turn.AfterLabel, turn.MessageLabel} {
		delete(labels, name)
	}
	return labels
}

// told marks a run as one whose answers clients will watch.
func told(ctx context.Context, t *task) error {
	t.source.Chat = t.start.Chat || turn.Listener(ctx) != nil
	return nil
}

// tells returns a watcher that collects the answers of a run marked by told.
func (s *Server) tells(ctx context.Context, t *task) event.Watcher {
	roles := s.roles[t.Name]
	if !t.source.Chat || roles == nil {
		return nil
	}
	return &turn.Log{Roles: roles(), Recorded: s.recorded(ctx, t.run.RunID, new(error))}
}

// recorded returns the values that a run's steps have recorded.
func (s *Server) recorded(ctx context.Context, run string, failed *error) func(path string) json.RawMessage {
	return func(path string) json.RawMessage {
		record, err := s.cfg.Journal.Record(ctx, run, path, "step")
		if err != nil && !errors.Is(err, journal.ErrNoStep) { // the step was interrupted
			*failed = err
		}
		return record.Content
	}
}

// parts rebuilds a turn's log from the journal, replaying every step of the run.
func (s *Server) parts(ctx context.Context, p *Pipeline, info journal.RunInfo) (*turn.Log, []turn.Cut, error) {
	var failed error
	var cuts []turn.Cut
	log := &turn.Log{Roles: s.roles[p.Name](), Recorded: s.recorded(ctx, info.ID, &failed)}
	told := map[string]bool{}
	tell := func(path, name string, d event.Data) {
		log.Watch(ctx, event.Event{Path: path, Name: name, Data: d})
	}
	var answers []journal.Question // answers that were given in messages
	for q, err := range s.cfg.Journal.EachQuestion(ctx, journal.QuestionQuery{Run: info.ID}) {
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
	broken := map[string]string{} // reasons why leaves failed, by path
	for row, err := range s.cfg.Journal.Follow(ctx, info.ID, 0) {
		if row.Kind == "leaf" && row.Failure != "" {
			broken[row.Path] = row.Reason
		} else if row.Kind == "leaf" {
			delete(broken, row.Path)
		}
		if i := slices.IndexFunc(answers, func(q journal.Question) bool { return q.Path == row.Path }); i >= 0 && row.Ended {
			parts, _ := log.Now()
			if at := slices.IndexFunc(parts, func(p turn.Part) bool { return p.Kind == turn.Tool && p.ID == row.Path }); at >= 0 { // no call after this one had started
				parts = parts[:at+1]
			}
			cuts = append(cuts, turn.Cut{Question: answers[i], Parts: len(parts)})
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
			told[row.Path] = true // an interrupted step has an end, too
			tell(row.Path, row.Name, event.StepReplayed{Kind: row.Kind})
		}
		if row.Seq >= last { // its step may still be running
			break
		}
	}
	for path, why := range broken {
		log.Failed(path, why)
	}
	log.End()
	parts, _ := log.Now()
	for _, q := range answers { // answers recorded since then
		cuts = append(cuts, turn.Cut{Question: q, Parts: len(parts)})
	}
	return log, cuts, failed
}

// maxRecords is the maximum number of steps that parts reads from a run.
const maxRecords = 8192

// ends reports whether the last text among the parts is the given text.
func ends(parts []turn.Part, text string) bool {
	for _, p := range slices.Backward(parts) {
		if p.Kind == turn.Text && p.State != turn.Void {
			return p.Text == text
		}
	}
	return false
}

// roles returns the role in a conversation of each leaf's answers.
func roles(p *Pipeline) map[string]turn.Role {
	result := p.Result
	if t := p.Ashlar.Result(); result == "" && t != nil && t.Err() == nil {
		result = t.Name()
	}
	all := map[string]turn.Role{}
	var walk func(stone.Ashlar)
	walk = func(a stone.Ashlar) {
		if t := a.Produces(); talk.Speaks(t) {
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

// hear calls tell with all parts of a run whenever there are new parts, until the run stops. It returns the run with all its
// parts. The function wait waits for news; if it returns false, hear returns protocol.ErrLeft.
func (s *Server) hear(ctx context.Context, who Principal, info journal.RunInfo, wait func(news <-chan struct{}) bool, tell func([]turn.Part)) (ended api.Run, parts []turn.Part, err error) {
	var log *turn.Log
	var live []turn.Part // parts last sent before they were recorded
	for {
		if log == nil {
			log = watcherOf[*turn.Log](s, info.ID)
		}
		if log == nil {
			if info, err = s.exactly(ctx, info.ID); err == nil && (goesOn(info.State) || s.runs(info.ID)) {
				if s.closing() || !wait(after(pollEvery)) {
					return ended, nil, protocol.ErrLeft
				}
				continue
			}
			if err != nil {
				return ended, nil, err
			}
			leave, err := s.read(ctx, who.Tenant)
			if err != nil {
				return ended, nil, err
			}
			defer leave()
			ended, parts, _, err = s.heard(ctx, who, info, live)
			return ended, parts, err
		}
		parts, news := log.Now()
		live = parts
		if tell(parts); news == nil {
			log = nil // the whole log was sent before it was recorded
		} else if !wait(news) {
			return ended, nil, protocol.ErrLeft
		}
	}
}

// heard returns a run with its answers and the messages that answered its questions. A waiting run also has its open questions,
// and a completed one its answer if no model has written it. Live holds the parts that were sent while the run was running; they
// contain texts that are not in the record. The caller of heard has a reading place.
func (s *Server) heard(ctx context.Context, who Principal, info journal.RunInfo, live []turn.Part) (out api.Run, parts []turn.Part, cuts []turn.Cut, err error) {
	log, cuts, err := s.parts(ctx, s.pipelines[info.Pipeline], info)
	if err != nil {
		return out, nil, nil, err
	}
	out = run(who, info)
	switch parts, _ = log.Now(); info.State {
	case journal.Waiting:
		// Further questions are asked once these have been answered.
		open, _, err := view.Page(s.cfg.Journal.EachQuestion(ctx, journal.QuestionQuery{Run: info.ID, Open: true}), maxPage, pageBytes)
		if err != nil {
			return out, nil, nil, err
		}
		for _, q := range open {
			parts = append(parts, turn.Part{Kind: turn.Ask, ID: q.Path, Question: &q})
		}
	case journal.Done:
		if out.Result, err = s.result(ctx, who, info); err != nil {
			return out, nil, nil, err
		}
		if text, _ := turn.Result(out.Result); text != "" && !ends(parts, text) && !ends(live, text) {
			parts = append(parts, turn.Part{Kind: turn.Text, State: turn.Done, ID: "answer/text", Turn: "answer", Text: text})
		}
	}
	return out, parts, cuts, nil
}

// listen is like await, for a client that receives the run's answers through tell; see turn.Listen.
func (s *Server) listen(ctx context.Context, who Principal, info journal.RunInfo, tell func([]turn.Part)) (api.Run, error) {
	if s.pipelines[info.Pipeline] == nil {
		return s.await(ctx, who, info)
	}
	whole := context.WithoutCancel(ctx)
	ended, parts, err := s.hear(whole, who, info, func(news <-chan struct{}) bool { return waitFor(ctx, news) == nil }, tell)
	switch {
	case errors.Is(err, protocol.ErrLeft):
		if info, err = s.exactly(whole, info.ID); err == nil {
			if ended = run(who, info); info.State == journal.Done { // the run ended meanwhile
				ended.Result, err = s.result(whole, who, info)
			}
		}
	case err == nil:
		tell(parts)
	}
	return ended, err
}
