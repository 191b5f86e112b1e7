package page

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/internal/answers"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// A Pipeline is a pipeline that a server publishes.
type Pipeline struct {
	api.Pipeline
	Shape []journal.Part
	Price func() view.Price // returns the maximum cost of a run
}

// pipelinePage is the page of a pipeline and its runs.
type pipelinePage struct {
	*period
	Name      string
	Days      int
	Choices   []int
	Published *Pipeline // nil if the pipeline is not published here
	Drawing   *drawing
	Start     *start // nil if the caller may not start the pipeline
	Last      runsTable
	Trend     *trend
}

// start is the form with which a run is started.
type start struct {
	URL  string
	Open bool // the form is unfolded because nothing has run yet
	Form answers.Form
	ID   string   // id of the run, so that sending the form twice starts only one run
	Cost activity // summary of the last ended runs
}

// Price describes what runs cost, or returns "" if none has ended.
func (s *start) Price() string {
	if s.Cost.Runs == 0 {
		return ""
	}
	return "A run cost " + meanCost(s.Cost) + " on average, at most " + cmp.Or(money.USD(s.Cost.most, false), "0") + " USD (" + plural(s.Cost.Runs, "run") + ")."
}

// published returns the published pipelines, by name.
func (v View) published() (map[string]*Pipeline, error) {
	if v.Pipelines == nil {
		return nil, nil
	}
	all, err := v.Pipelines()
	out := make(map[string]*Pipeline, len(all))
	for i := range all {
		out[all[i].Name] = &all[i]
	}
	return out, err
}

// pipeline shows a pipeline, its runs, and a form to start another run.
func (p *pages) pipeline(w http.ResponseWriter, r *http.Request, v View) error {
	name := r.PathValue("name")
	days, err := daysOf(r)
	if err != nil {
		return err
	}
	published, err := v.published()
	if err != nil {
		return err
	}
	q, err := p.selects(url.Values{"pipeline": {name}})
	if err != nil {
		return err
	}
	q.Pipeline, q.Limit = name, rowsOfPipeline
	runs, err := v.Journal.Runs(r.Context(), q)
	if err != nil {
		return err
	}
	body := pipelinePage{Name: name, Days: days, Choices: choices, Published: published[name]}
	if len(runs) == 0 && body.Published == nil {
		return missing("There is no pipeline %q, and no run of one.", name)
	}
	if body.period, err = since(r.Context(), v, q, days); err != nil {
		return err
	}
	if body.Last, err = tableOf(r.Context(), v, runs); err != nil {
		return err
	}
	if body.Published != nil {
		body.Drawing = draw(journal.RunInfo{Shape: body.Published.Shape}, nil)
		if v.Start != nil {
			body.Start = &start{URL: pipelineURL(name), Open: len(runs) == 0, Form: formOf(body.Published.Input), ID: strings.ToLower(rand.Text()), Cost: ended(runs)}
		}
	} else {
		latest, err := find(r.Context(), v, runs[0].ID)
		if err != nil {
			return err
		}
		body.Drawing = draw(journal.RunInfo{Shape: latest.Shape}, nil)
	}
	if body.Trend, err = trendOf(r.Context(), v, runs); err != nil {
		return err
	}
	return v.show(w, r, "pipeline", p.live(frame{Title: name, Here: "overview", Body: body}, "/runs?"+url.Values{"pipeline": {name}}.Encode()))
}

// formOf returns the form for a pipeline's input. The form is empty if the pipeline has no inputs.
func formOf(schema json.RawMessage) answers.Form {
	var in struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &in) == nil && len(in.Properties) == 0 {
		return answers.Form{}
	}
	return answers.Of(schema)
}

// rowsOfPipeline is the number of runs on the page of a pipeline.
const rowsOfPipeline = 20

// ended summarizes the runs that have a result or failed.
func ended(runs []journal.RunInfo) (out activity) {
	for _, run := range runs {
		if run.State == journal.Done || run.State == journal.Failed {
			out.add(run)
			out.most = max(out.most, run.Usage.USD+run.Usage.Possible.USD)
		}
	}
	return out
}

func meanCost(a activity) string {
	mean := a
	mean.Cost.USD /= float64(a.Runs)
	mean.Cost.Possible.USD /= float64(a.Runs)
	return costOf(mean)
}

// start starts a run from the fields of a form. The form contains the run's id, so sending it twice starts only one run.
func (p *pages) start(w http.ResponseWriter, r *http.Request, v View) error {
	if v.Start == nil {
		return &api.Problem{Type: problems.Forbidden, Title: "Forbidden", Status: http.StatusForbidden, Detail: "You may not start runs here."}
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	published, err := v.published()
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	known := published[name]
	if known == nil {
		return missing("There is no pipeline %q to start.", name)
	}
	req := api.Start{Pipeline: name}
	given := r.PostForm.Get("input")
	if given == "" {
		given = formOf(known.Input).Response(func(field string) string { return r.PostForm.Get(fieldOf + field) })
	}
	if given != "" {
		if !json.Valid([]byte(given)) {
			return unreadable("The input is not JSON. Go back and correct it.")
		}
		req.Input = json.RawMessage(given)
	}
	if limit := strings.TrimSpace(r.PostForm.Get("usd")); limit != "" {
		usd, err := strconv.ParseFloat(limit, 64)
		if err != nil || !(usd >= 0) || math.IsInf(usd, 1) {
			return unreadable("The run may spend %q USD: want 0 or more, or nothing for the limit of the pipeline. Go back and correct it.", text.Cut(limit, 40))
		}
		req.Budget = &api.Budget{USD: new(usd)}
	}
	id := r.PostForm.Get("id")
	if err := v.Start(r.Context(), id, req); err != nil {
		return err
	}
	http.Redirect(w, r, runURL(id), http.StatusSeeOther)
	return nil
}

// A trend shows the scores of evaluations over time, oldest first.
type trend struct {
	Score         string
	Width, Height int
	Points        []point
	Path          string
	Y             []tick
}

// trendOf reads the evaluations among runs, which are sorted newest first. It returns nil if there are fewer than two.
func trendOf(ctx context.Context, v View, runs []journal.RunInfo) (*trend, error) {
	t := &trend{Width: plotLeft + plotWidth + 20, Height: plotTop + plotHeight + 20}
	y := scale{1, 0}
	for _, run := range runs {
		report, err := reportOf(ctx, v, run)
		if err != nil {
			return nil, err
		}
		if report == nil || len(report.Scores) == 0 {
			continue
		}
		if t.Score == "" {
			t.Score = report.Scores[0].Name
		}
		i := slices.IndexFunc(report.Scores, func(s scored) bool { return s.Name == t.Score })
		if i < 0 {
			continue
		}
		s := report.Scores[i].Estimate
		y.low, y.high = min(y.low, s.Low), max(y.high, s.High)
		t.Points = append(t.Points, point{Name: run.ID, URL: runURL(run.ID), Estimate: s, Text: pointText(run.ID, s)})
	}
	if len(t.Points) < 2 {
		return nil, nil
	}
	slices.Reverse(t.Points)
	at := y.onto(plotTop+plotHeight, plotTop)
	for i := range t.Points {
		q := &t.Points[i]
		q.X = plotLeft + (float64(i)+0.5)/float64(len(t.Points))*plotWidth
		q.Y, q.Low, q.High = at(q.Mean), at(q.Estimate.Low), at(q.Estimate.High)
		t.Path += pathTo(t.Path, q.X, q.Y)
	}
	t.Y = y.ticks(at)
	return t, nil
}
