package api

import (
	"context"
	"crypto/rand"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/journal"
)

// Start starts a run with the id, or returns the run if an identical request has already started it. A different request with the
// same id returns a problem of type Conflict. If the id is empty, the client generates one.
func (c *Client) Start(ctx context.Context, id string, s Start) (run Run, err error) {
	if id == "" {
		id = strings.ToLower(rand.Text())
	}
	err = c.call(ctx, request{method: http.MethodPut, path: path("runs", id), body: s, repeat: true}, &run)
	return run, err
}

// Run returns the run with the id, without its result.
func (c *Client) Run(ctx context.Context, id string) (run Run, err error) {
	err = c.get(ctx, &run, nil, "runs", id)
	return run, err
}

// Runs yields the runs that q selects, newest first. It requests pages of q.Limit runs until there are no more or the caller
// stops. After an error, the iteration ends.
func (c *Client) Runs(ctx context.Context, q journal.Query) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		for values := selection(q); ; {
			var page Runs
			if err := c.get(ctx, &page, values, "runs"); err != nil {
				yield(Run{}, err)
				return
			}
			for _, run := range page.Runs {
				if !yield(run, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			values.Set("before", page.Next)
		}
	}
}

// Threads yields the conversations of a pipeline, or of all pipelines if pipeline is empty, sorted by their newest turn, newest
// first. An error ends the iteration.
func (c *Client) Threads(ctx context.Context, pipeline string) iter.Seq2[Thread, error] {
	return func(yield func(Thread, error) bool) {
		for values := selection(journal.Query{Pipeline: pipeline}); ; {
			var page Threads
			if err := c.get(ctx, &page, values, "threads"); err != nil {
				yield(Thread{}, err)
				return
			}
			for _, t := range page.Threads {
				if !yield(t, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			values.Set("before", page.Next)
		}
	}
}

// selection returns the query parameters for a list of runs.
func selection(q journal.Query) url.Values {
	values := url.Values{}
	for _, s := range q.States {
		values.Add("state", string(s))
	}
	set := func(name, value string, is bool) {
		if is {
			values.Set(name, value)
		}
	}
	set("pipeline", q.Pipeline, q.Pipeline != "")
	set("text", q.Text, q.Text != "")
	set("min-usd", strconv.FormatFloat(q.MinCost, 'g', -1, 64), q.MinCost != 0)
	set("since", q.Since.Format(time.RFC3339Nano), !q.Since.IsZero())
	set("until", q.Until.Format(time.RFC3339Nano), !q.Until.IsZero())
	set("ended-since", q.Ended.Format(time.RFC3339Nano), !q.Ended.IsZero())
	set("before", q.Before, q.Before != "")
	set("limit", strconv.Itoa(q.Limit), q.Limit != 0)
	for name, value := range q.Labels {
		values.Set("label."+name, value)
	}
	return values
}

// pollTime is the server's maximum wait in one request for a result.
const pollTime = 30 * time.Second

// Result waits until the run stops and returns the run. If the run is done, Run.Result is set. A run that waits for an answer has
// stopped too, but is not over; see Run.Over. If the run was refused because its pipeline has changed, the error is a problem of
// type Refused that contains the run.
func (c *Client) Result(ctx context.Context, id string) (run Run, err error) {
	wait := url.Values{"wait": {pollTime.String()}}
	for w := forever(); ; {
		run = Run{}
		if err := c.get(ctx, &run, wait, "runs", id, "result"); err != nil {
			return run, err
		}
		if run.Over() || run.State == journal.Waiting {
			return run, nil
		}
		// pollTime has passed, or the server is closing.
		if err := w.wait(ctx, unavailable{}); err != nil {
			return run, err
		}
	}
}

// Node returns a node of a run.
func (c *Client) Node(ctx context.Context, run, id string) (n Node, err error) {
	err = c.get(ctx, &n, nil, "runs", run, "nodes", id)
	return n, err
}

// Questions returns all questions of the run with the id run or, if run is empty, the open questions of all runs.
func (c *Client) Questions(ctx context.Context, run string) ([]Question, error) {
	parts := []string{"questions"}
	if run != "" {
		parts = []string{"runs", run, "questions"}
	}
	var all []Question
	for values, again := (url.Values{}), false; ; {
		var page Questions
		err := c.get(ctx, &page, values, parts...)
		if values.Has("from") && !again && err != nil && unless(err, http.StatusConflict) == nil { // the run of the last question was removed
			all, values, again = nil, url.Values{}, true
			continue
		}
		if all = append(all, page.Questions...); err != nil || page.Next == "" {
			return all, err
		}
		values.Set("from", page.Next)
	}
}

// Answer answers a question of a run, and the run then continues. If the question has already been answered, the error is a
// problem of type Conflict. If the answer does not match the question, it is a problem of type Invalid.
func (c *Client) Answer(ctx context.Context, run string, a Answer) (out Run, err error) {
	err = c.call(ctx, request{method: http.MethodPost, path: path("runs", run, "answers"), body: a}, &out)
	return out, err
}

// Cancel cancels a run.
func (c *Client) Cancel(ctx context.Context, id string) (run Run, err error) {
	err = c.call(ctx, request{method: http.MethodPost, path: path("runs", id, "cancel")}, &run)
	return run, err
}

// Resume resumes a run that has stopped. If the run has failed, the failed step is retried. If the run's pipeline has changed and
// how.Force is not set, the error is a problem of type Refused.
func (c *Client) Resume(ctx context.Context, id string, how Resume) (run Run, err error) {
	err = c.call(ctx, request{method: http.MethodPost, path: path("runs", id, "resume"), body: how}, &run)
	return run, err
}

// Remove removes a run and its records from the server's journal.
func (c *Client) Remove(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("runs", id)}, nil)
}

// Pipelines returns the published pipelines, sorted by name.
func (c *Client) Pipelines(ctx context.Context) ([]Pipeline, error) {
	var all Pipelines
	err := c.get(ctx, &all, nil, "pipelines")
	return all.Pipelines, err
}

// Caps returns the server's capabilities, which Act can call.
func (c *Client) Caps(ctx context.Context) ([]Capability, error) {
	var all Capabilities
	err := c.get(ctx, &all, nil, "caps")
	return all.Capabilities, err
}

// Search returns the passages that a capability finds in its documents, best first.
func (c *Client) Search(ctx context.Context, s Search) (found Found, err error) {
	err = c.call(ctx, request{method: http.MethodPost, path: path("search"), body: s}, &found)
	return found, err
}

// Budgets returns the shared budgets that the caller may see and the state of the caller's daily limit.
func (c *Client) Budgets(ctx context.Context) ([]SharedBudget, error) {
	var all Budgets
	err := c.get(ctx, &all, nil, "budgets")
	return all.Budgets, err
}

func (c *Client) get(ctx context.Context, to any, query url.Values, parts ...string) error {
	return c.call(ctx, request{method: http.MethodGet, path: path(parts...), query: query, repeat: true}, to)
}
