package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/journal"
)

// Children returns a value for journal.Elsewhere that starts child runs on the server, as runs of a published pipeline. The
// client's token needs the roles read, start and answer and, for parents with a grant, the role grant. Removing a parent does not
// remove its child runs on the server.
func (c *Client) Children(pipeline string) journal.Starter { return &children{c, pipeline} }

type children struct {
	client   *Client
	pipeline string
}

// Start implements [journal.Starter].
func (s *children) Start(ctx context.Context, c journal.Child) error {
	req := Start{Pipeline: s.pipeline, Input: c.Input, Labels: c.Labels, Grant: c.Grant}
	if l := c.Limits; l != (budget.Limits{}) {
		if req.Budget = (&Budget{USD: l.USD, Tokens: l.Tokens, Roundtrips: l.Roundtrips}); l.Latency != nil {
			req.Budget.Seconds = new(l.Latency.Seconds())
		}
	}
	run, err := s.client.Start(ctx, c.ID, req)
	if err != nil || run.State != journal.Failed && run.State != journal.Canceled {
		return err
	}
	_, err = s.client.Resume(ctx, c.ID, Resume{})
	return err
}

// Wait implements [journal.Starter].
func (s *children) Wait(ctx context.Context, c journal.Child) (st journal.ChildState, err error) {
	run, err := s.client.Result(ctx, c.ID)
	st = journal.ChildState{State: run.State, Failure: run.Failure, Usage: run.Usage}
	if err != nil || run.State != journal.Waiting {
		if run.Result != nil {
			st.Result = run.Result.Content
		}
		return st, err
	}
	all, err := s.client.Questions(ctx, c.ID)
	for _, q := range all {
		if q.Answered.IsZero() {
			st.Questions = append(st.Questions, journal.Question{Run: q.Run, Path: q.Path, Name: q.Name, Text: q.Text, Choices: q.Choices,
				Schema: q.Schema, Problem: q.Problem, Asked: q.Asked, Version: q.Version, Call: q.Call})
		}
	}
	return st, err
}

// Answer implements [journal.Starter].
func (s *children) Answer(ctx context.Context, c journal.Child, path string, a ask.Answer) error {
	_, err := s.client.Answer(ctx, c.ID, Answer{Question: path, Response: a.Response, Cancel: a.Response == ""})
	return unless(err, http.StatusConflict)
}

// Cancel implements [journal.Starter].
func (s *children) Cancel(ctx context.Context, id string) error {
	_, err := s.client.Cancel(ctx, id)
	return unless(err, http.StatusConflict, http.StatusNotFound)
}

// unless returns nil if err is a problem whose status is one of the given statuses; otherwise it returns err.
func unless(err error, statuses ...int) error {
	var p *Problem
	for _, status := range statuses {
		if errors.As(err, &p) && p.Status == status {
			return nil
		}
	}
	return err
}
