package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/retryafter"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// contentOf returns the text and the media of a prompt.
func contentOf(prompt []sdk.ContentBlock) (text string, media []*llm.Media, err error) {
	var texts []string
	show := func(data, kind, name string) {
		url := "data:" + kind + ";base64," + data
		m, wrongly := llm.MediaURL(url, kind, strings.TrimPrefix(path.Base(name), "."))
		if media = append(media, m); wrongly != nil {
			err = wrong("the prompt: %v", wrongly)
		}
	}
	for _, block := range prompt {
		switch {
		case block.Text != nil:
			texts = append(texts, block.Text.Text)
		case block.Image != nil:
			show(block.Image.Data, block.Image.MimeType, "")
		case block.Audio != nil:
			show(block.Audio.Data, block.Audio.MimeType, "")
		case block.ResourceLink != nil:
			texts = append(texts, block.ResourceLink.Uri)
		case block.Resource != nil && block.Resource.Resource.TextResourceContents != nil:
			r := block.Resource.Resource.TextResourceContents
			texts = append(texts, fmt.Sprintf("\n%s:\n%s\n", r.Uri, r.Text))
		case block.Resource != nil && block.Resource.Resource.BlobResourceContents != nil:
			r := block.Resource.Resource.BlobResourceContents
			show(r.Blob, *cmp.Or(r.MimeType, sdk.Ptr("application/octet-stream")), r.Uri)
		default:
			return "", nil, wrong("the prompt has a part of no known kind: want text, pictures, sounds and files")
		}
	}
	return strings.TrimSpace(strings.Join(texts, " ")), media, err
}

// Prompt implements sdk.Agent. It runs one turn.
func (a *agent) Prompt(ctx context.Context, req sdk.PromptRequest) (sdk.PromptResponse, error) {
	a.mu.Lock()
	s := a.sessions[req.SessionId]
	a.mu.Unlock()
	if s == nil {
		return sdk.PromptResponse{}, wrong("session %q is not loaded: load it first", req.SessionId)
	}
	text, media, err := contentOf(req.Prompt)
	if err == nil && text == "" && media == nil {
		err = wrong("the prompt is empty")
	}
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	s.turn.Lock() // the editor has already cancelled the previous turn
	defer s.turn.Unlock()
	s.voice.text = ""
	reason, err := a.take(ctx, s, &s.voice, text, media)
	switch {
	case ctx.Err() == nil:
	case a.gone():
		err = context.Cause(ctx) // the turn was not cancelled, so the run continues
	default:
		reason, err = sdk.StopReasonCancelled, nil
	}
	if err != nil {
		if p, ok := errors.AsType[*api.Problem](err); ok {
			err = wrong("%s", p.Error())
		}
		return sdk.PromptResponse{}, err
	}
	return sdk.PromptResponse{StopReason: reason}, nil
}

// take waits until the session's previous turn has ended, and then starts the next turn. Other processes may start turns of the
// same session too. The id of a run contains the number of its turn, so only one process can start a turn.
func (a *agent) take(ctx context.Context, s *session, v *voice, text string, media []*llm.Media) (sdk.StopReason, error) {
	tried, until := 0, time.Time{}
	for {
		turns, err := a.turns(ctx, v.id, 1, nil)
		if err != nil {
			return "", err
		}
		number := 1
		if len(turns) > 0 {
			n, _ := strconv.Atoi(turns[0].Labels[turnLabel])
			number = n + 1
		}
		if len(turns) > 0 && !turns[0].Over() && turns[0].State != journal.Refused {
			run, err := a.stopped(ctx, v, turns[0]) // another process's turn, or a turn with a question
			if err != nil {
				return "", err
			}
			answered, err := a.answer(ctx, run, text, media)
			if err != nil {
				return "", err
			}
			reason, err := a.follow(ctx, v, run)
			if answered || err != nil || reason != sdk.StopReasonEndTurn {
				return reason, err
			}
			if run, err = a.api.Run(ctx, run.ID); err != nil || !run.Over() { // the run asks another question, which is the reply
				return reason, err
			}
		}
		run, err := a.start(ctx, s, v.id, number, text, media)
		if p, ok := errors.AsType[*api.Problem](err); ok && p.Type == problems.Conflict {
			if number != tried {
				tried, until = number, time.Now().Add(shownTime)
			}
			if time.Now().Before(until) && retryafter.Sleep(ctx, shownTime/100) == nil {
				continue // start the turn after the one that another process has started
			}
		}
		if err != nil {
			return "", err
		}
		return a.follow(ctx, v, run)
	}
}

// shownTime is how long to wait for a run that another process has started to appear in the list of runs.
const shownTime = 5 * time.Second

// start starts the run of a turn.
func (a *agent) start(ctx context.Context, s *session, id sdk.SessionId, number int, text string, media []*llm.Media) (api.Run, error) {
	a.mu.Lock()
	mode, folder := s.mode, s.folder
	a.mu.Unlock()
	for _, p := range a.pipelines {
		if p.Name != mode {
			continue
		}
		input, err := p.Show(text, media)
		if err != nil {
			return api.Run{}, wrong("the pipeline %s: %v", mode, err)
		}
		after := ""
		if p.Continues {
			newest, err := a.turns(ctx, id, 1, url.Values{"pipeline": {mode}})
			if err != nil {
				return api.Run{}, err
			}
			for _, run := range newest {
				after = run.ID
			}
		}
		nth := strconv.Itoa(number)
		labels := map[string]string{sessionLabel: string(id), turnLabel: nth, editorLabel: a.name, folderLabel: bounds.Cut(folder, maxPrompt), promptLabel: bounds.Cut(text, maxPrompt)}
		ctx = turn.Listen(context.WithoutCancel(ctx), func([]turn.Part) {})
		return a.api.Put(ctx, fmt.Sprintf("acp-%s-turn-%s", id, nth), api.Start{Pipeline: mode, Input: input, After: after, Labels: labels, Interactive: true})
	}
	return api.Run{}, wrong("there is no mode %q", mode)
}

// follow streams a run to the editor and asks the run's questions, until the run ends or needs an answer from the next prompt. It
// returns the stop reason of the turn.
func (a *agent) follow(ctx context.Context, v *voice, run api.Run) (sdk.StopReason, error) {
	for {
		run, err := a.stopped(ctx, v, run)
		if err != nil {
			return "", err
		}
		if run.State != journal.Waiting {
			v.end(ctx, run)
			return reasonOf(run), nil
		}
		open, err := a.api.Questions(ctx, run.ID)
		if err != nil {
			return "", err
		}
		if len(open) == 0 { // the run waits for something else, or was answered just now
			_ = retryafter.Sleep(ctx, askEvery)
		}
		for _, q := range open {
			asked, err := a.permit(ctx, v, run, q)
			if err != nil {
				return "", err
			}
			if !asked {
				v.paragraph(ctx, messageOf(q))
				return sdk.StopReasonEndTurn, nil // the next prompt answers the question
			}
		}
	}
}

func reasonOf(run api.Run) sdk.StopReason {
	if run.State == journal.Canceled {
		return sdk.StopReasonCancelled
	}
	return sdk.StopReasonEndTurn
}

// stopped sends the updates of a run and returns the run once it has stopped. The run is cancelled if the editor cancels the
// turn, but not if the editor disconnects.
func (a *agent) stopped(ctx context.Context, v *voice, run api.Run) (api.Run, error) {
	listening := turn.Listen(ctx, func(parts []turn.Part) { v.tell(ctx, run.ID, parts) })
	for {
		now, err := a.api.Result(listening, run.ID, time.Minute)
		switch {
		case ctx.Err() != nil:
			a.abandon(ctx, run.ID)
			return run, context.Cause(ctx)
		case err != nil:
			return run, err
		case now.Over(), now.State == journal.Waiting, now.State == journal.Refused:
			return now, nil
		}
	}
}

// abandon cancels the run after the editor has cancelled its turn.
func (a *agent) abandon(ctx context.Context, run string) {
	if a.gone() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, _ = a.api.Cancel(ctx, run) // an error means that the run has ended or the server is closing
}

// gone reports whether the connection has ended. The connection ends before the contexts of its requests.
func (a *agent) gone() bool {
	select {
	case <-a.editor.Done():
		return true
	default:
		return false
	}
}

// permit asks the editor's user a question, if it has choices, and records the answer. It returns false if the question cannot be
// asked in this way.
func (a *agent) permit(ctx context.Context, v *voice, run api.Run, q api.Question) (bool, error) {
	options, responses := choices(q)
	if len(options) == 0 {
		return false, nil
	}
	call := sdk.ToolCallUpdate{ToolCallId: sdk.ToolCallId(turn.ID(run.ID, q.Path)), Title: sdk.Ptr(messageOf(q)), Status: sdk.Ptr(sdk.ToolCallStatusPending), Kind: sdk.Ptr(sdk.ToolKindOther)}
	if q.Call != nil {
		call.RawInput = json.RawMessage(q.Call.Input)
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	go a.withdraw(asking, stop, run.ID, q)
	res, err := a.editor.RequestPermission(asking, sdk.RequestPermissionRequest{SessionId: v.id, ToolCall: call, Options: options})
	if asking.Err() != nil && ctx.Err() == nil {
		return true, nil
	}
	if err != nil || ctx.Err() != nil {
		if ctx.Err() != nil {
			a.abandon(ctx, run.ID)
		}
		return true, errors.Join(err, context.Cause(ctx))
	}
	if res.Outcome.Selected == nil { // the question was cancelled together with the turn
		_, err := a.api.Cancel(context.WithoutCancel(ctx), run.ID)
		return true, err
	}
	err = a.api.Answer(ctx, run.ID, api.Answer{Question: q.Path, Response: responses[res.Outcome.Selected.OptionId], Version: q.Version})
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Type == problems.Conflict {
		err = nil // someone else has already answered
	}
	return true, err
}

// withdraw calls stop once someone else has answered a question, for example on a page or in another editor.
func (a *agent) withdraw(ctx context.Context, stop func(), run string, q api.Question) {
	for retryafter.Sleep(ctx, askEvery) == nil {
		open, err := a.api.Questions(ctx, run)
		if err == nil && !slices.ContainsFunc(open, func(o api.Question) bool { return o.Path == q.Path && o.Version == q.Version }) {
			stop()
		}
	}
}

// askEvery is the interval at which withdraw checks a question.
const askEvery = 500 * time.Millisecond

// choices returns the options for a question, and the answer for which each option stands. A choice with a blank is omitted,
// because an option has no text field. The kind of an option is determined by the first word of its choice.
func choices(q api.Question) (options []sdk.PermissionOption, responses map[sdk.PermissionOptionId]string) {
	responses = map[sdk.PermissionOptionId]string{}
	for i, choice := range q.Choices {
		if _, blank := ask.Blank(choice); blank {
			continue
		}
		id := sdk.PermissionOptionId(fmt.Sprint(i + 1))
		kind := sdk.PermissionOptionKindAllowOnce
		word := strings.ToLower(choice)
		if end := strings.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
			word = word[:end]
		}
		switch word {
		case "always":
			kind = sdk.PermissionOptionKindAllowAlways
		case "never":
			kind = sdk.PermissionOptionKindRejectAlways
		case "no":
			kind = sdk.PermissionOptionKindRejectOnce
		}
		options = append(options, sdk.PermissionOption{OptionId: id, Name: choice, Kind: kind})
		responses[id] = choice
	}
	return options, responses
}

func messageOf(q api.Question) string {
	if q.Problem != "" {
		return q.Text + "\n\nThe previous answer was not accepted: " + q.Problem
	}
	return q.Text
}

// answer answers the question that the previous turn's reply has asked, if any, with the text of the prompt.
func (a *agent) answer(ctx context.Context, run api.Run, text string, media []*llm.Media) (answered bool, err error) {
	if run.State != journal.Waiting {
		return false, nil
	}
	open, err := a.api.Questions(ctx, run.ID)
	if err != nil {
		return false, err
	}
	for _, q := range open {
		if options, _ := choices(q); len(options) == 0 {
			if media != nil {
				return true, wrong("an answer to a question has no pictures or files: want text")
			}
			return true, a.api.Answer(ctx, run.ID, api.Answer{Question: q.Path, Response: text, Version: q.Version})
		}
	}
	return false, nil
}
