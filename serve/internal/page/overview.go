package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/filter"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// An activity summarizes several runs.
type activity struct {
	Runs, Failed, Waiting int
	kinds                 map[string]int // number of failures by kind
	Cost                  budget.Total
	most                  float64         // cost of the most expensive run in USD, if counted
	lasted                []time.Duration // durations of the runs with a result
}

func (a *activity) add(run journal.RunInfo) {
	a.Runs++
	a.Cost = a.Cost.Add(run.Usage)
	switch run.State {
	case journal.Failed, journal.Refused, journal.Damaged:
		a.Failed++
		if a.kinds == nil {
			a.kinds = map[string]int{}
		}
		kind := string(run.State)
		if run.Failure != nil && run.Failure.Kind != "" {
			kind = run.Failure.Kind
		}
		a.kinds[kind]++
	case journal.Waiting:
		a.Waiting++
	case journal.Done:
		a.lasted = append(a.lasted, run.Ended.Sub(run.Started))
	}
}

// Lasted returns the p-th percentile, by nearest rank, of the durations of runs with a result, or "" if there are none.
func (a *activity) Lasted(p int) string {
	if len(a.lasted) == 0 {
		return ""
	}
	return progress.Duration(a.lastedP(p))
}

func (a *activity) lastedP(p int) time.Duration {
	if len(a.lasted) == 0 {
		return 0
	}
	slices.Sort(a.lasted)
	return percentile(a.lasted, p)
}

// A period holds the figures of the last days up to today, in UTC.
type period struct {
	From time.Time // 00:00 of the first day
	All  activity
	days []activity
	by   map[string]*period // periods by pipeline; nil in the period of a pipeline
	Cut  int                // number of runs read, if there are more in the period

	Others int // number of runs of pipelines that are not listed

	paid []journal.RunInfo // the newest runs with a cost, up to a limit
	need []journal.RunInfo // the newest runs that need a person
}

// choices are the lengths of periods, in days, that a page offers, shortest first.
var choices = []int{7, 30, 90}

const (
	mostOfPeriod = 5000 // maximum number of runs read for an overview
	pageOfPeriod = 500

	mostPipelines = 200 // maximum number of pipelines in an overview; others count only in the totals
)

// needs reports whether a run in this state needs a person before it can continue.
func needs(s journal.State) bool {
	return s != journal.Done && s != journal.Running && s != journal.Canceled
}

// Limits on the runs that an overview reads individually.
const (
	mostPaid    = 100
	stepsOfPaid = 2000
	mostNeed    = 8
	mostModels  = 12
	mostKinds   = 8
)

// spenders returns the total cost of the newest runs for each model, for at most mostModels models.
func (p *period) spenders(ctx context.Context, v View) (all []view.Spender, err error) {
	for _, run := range p.paid {
		steps, err := v.Journal.Steps(ctx, run.ID)
		if err != nil {
			return nil, err
		}
		of, err := view.Spenders(ctx, v.Journal, run.ID, steps)
		if err != nil {
			return nil, err
		}
		all = view.AddSpenders(all, of)
	}
	return all[:min(len(all), mostModels)], nil
}

// Paid returns the number of runs that spenders reads.
func (p *period) Paid() int { return len(p.paid) }

// A failureKind is a kind of failure with the number of runs that failed in this way.
type failureKind struct {
	Kind  string
	Runs  int
	Chart chart
}

// Kinds returns the most frequent kinds of failures in the period, at most mostKinds, most frequent first.
func (p *period) Kinds() (all []failureKind) {
	for kind, n := range p.All.kinds {
		m := measure{kind, func(a activity) float64 { return float64(a.kinds[kind]) }, func(a activity) string { return plural(a.kinds[kind], "run") }, false}
		all = append(all, failureKind{kind, n, p.chart(m, "", 120, 20)})
	}
	slices.SortFunc(all, func(a, b failureKind) int { return cmp.Or(b.Runs-a.Runs, cmp.Compare(a.Kind, b.Kind)) })
	return all[:min(len(all), mostKinds)]
}

func newPeriod(from time.Time, days int) *period {
	return &period{From: from, days: make([]activity, days)}
}

func (p *period) add(run journal.RunInfo) {
	if day := int(run.Started.Sub(p.From) / (24 * time.Hour)); day >= 0 && day < len(p.days) {
		p.All.add(run)
		p.days[day].add(run)
		if run.Usage.USD > 0 && len(p.paid) < mostPaid && run.Steps <= stepsOfPaid {
			p.paid = append(p.paid, run)
		}
		if needs(run.State) && len(p.need) < mostNeed {
			p.need = append(p.need, run)
		}
	}
}

// since reads the runs of the last days, newest first, up to mostOfPeriod.
func since(ctx context.Context, v View, q journal.Query, days int) (*period, error) {
	const day = 24 * time.Hour
	from := time.Now().UTC().Truncate(day).Add(-time.Duration(days-1) * day)
	p := newPeriod(from, days)
	p.by = map[string]*period{}
	read := 0
	for q.Since, q.Limit = from, pageOfPeriod; ; {
		runs, err := v.Journal.Runs(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			p.add(run)
			one := p.by[run.Pipeline]
			if one == nil && len(p.by) < mostPipelines {
				one = newPeriod(from, days)
				p.by[run.Pipeline] = one
			}
			if one == nil {
				p.Others++
				continue
			}
			one.add(run)
		}
		read += len(runs)
		if len(runs) < q.Limit {
			return p, nil
		}
		if read >= mostOfPeriod {
			p.Cut = read
			return p, nil
		}
		q.Before = runs[len(runs)-1].ID
	}
}

// A chart has a column for each day.
type chart struct {
	Name          string
	Width, Height int
	Columns       []column
	Most          string    // the value of the highest column
	From, To      time.Time // the first and the last day
}

// A column represents a day, drawn upward from the bottom of its chart.
type column struct {
	X, Y, W, H int
	BadY, BadH int // the part of the column that represents failed runs
	Text       string
	URL        string // address of the list of that day's runs
}

// A measure is the daily figure that a chart shows.
type measure struct {
	name  string
	value func(activity) float64
	words func(activity) string
	bad   bool // highlight the failed runs
}

var (
	runsADay = measure{"Runs", func(a activity) float64 { return float64(a.Runs) }, runsOf, true}
	usdADay  = measure{"USD", func(a activity) float64 { return a.Cost.USD }, costOf, false}
	timeADay = measure{"Duration (p95)", func(a activity) float64 { return a.lastedP(95).Seconds() }, func(a activity) string { return progress.Duration(a.lastedP(95)) }, false}
)

// widest is the maximum width of a chart's columns.
const widest = 52

// chart draws a chart of the period's days.
func (p *period) chart(m measure, pipeline string, width, height int) chart {
	c := chart{Name: m.name, Width: width, Height: height, From: p.From, To: p.From.AddDate(0, 0, len(p.days)-1)}
	most := 0.0
	for _, day := range p.days {
		if v := m.value(day); v > most {
			most, c.Most = v, m.words(day)
		}
	}
	step := min(width/len(p.days), widest)
	c.Width = step * len(p.days)
	for i, day := range p.days {
		if day.Runs == 0 || m.value(day) == 0 {
			continue
		}
		date := p.From.AddDate(0, 0, i).Format(time.DateOnly)
		k := column{X: i * step, W: max(step-2, 1), Text: date + ": " + m.words(day), URL: filter.ListURL("pipeline", pipeline, "since", date, "until", date)}
		if most > 0 {
			k.H = max(int(m.value(day)/most*float64(height)), 1)
		}
		if k.Y = height - k.H; m.bad {
			k.BadH = k.H * day.Failed / day.Runs
		}
		k.BadY = height - k.BadH
		c.Columns = append(c.Columns, k)
	}
	return c
}

func runsOf(a activity) string {
	if a.Failed > 0 {
		return fmt.Sprintf("%s, %d failed", plural(a.Runs, "run"), a.Failed)
	}
	return plural(a.Runs, "run")
}

func costOf(a activity) string {
	return cmp.Or(money.Cost(a.Cost.USD, a.Cost.Estimated, a.Cost.Possible.USD), "0") + " USD"
}

// Since returns the first day of the period in the form that a filter expects.
func (p *period) Since() string { return p.From.Format(time.DateOnly) }

// Costs reports whether any of the runs has cost something.
func (p *period) Costs() bool { return p.All.Cost.USD > 0 }

// RunsChart and CostChart draw charts with the number of runs per day and their cost per day.
func (p *period) RunsChart(pipeline string) chart { return p.chart(runsADay, pipeline, 540, 90) }

func (p *period) CostChart(pipeline string) chart { return p.chart(usdADay, pipeline, 540, 90) }

func (p *period) TimeChart(pipeline string) chart { return p.chart(timeADay, pipeline, 540, 90) }

// overview is the page that shows recent figures.
type overview struct {
	*period
	Days      int
	Choices   []int // possible values of Days
	Pipelines []summary
	Need      runsTable // the newest runs that need a person
	Spent     []view.Spender
	Purse     *Purse
	Budgets   []view.Budget
}

// A summary is a pipeline's entry in the overview.
type summary struct {
	Name        string
	Description string
	activity
	Chart chart
}

// overview shows the number of runs, failures, costs and durations by day and by pipeline.
func (p *pages) overview(w http.ResponseWriter, r *http.Request, v View) error {
	days, err := daysOf(r)
	if err != nil {
		return err
	}
	q, err := p.selects(nil)
	if err != nil {
		return err
	}
	body := overview{Days: days, Choices: choices}
	if body.period, err = since(r.Context(), v, q, days); err != nil {
		return err
	}
	published, err := v.published()
	if err != nil {
		return err
	}
	names := slices.Collect(maps.Keys(body.by))
	for name := range published {
		if body.by[name] == nil {
			names = append(names, name)
			body.by[name] = newPeriod(body.From, days)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		one := summary{Name: name, activity: body.by[name].All}
		one.Chart = body.by[name].chart(runsADay, name, 120, 20)
		if p := published[name]; p != nil {
			one.Description = p.Description
		}
		body.Pipelines = append(body.Pipelines, one)
	}
	if body.Spent, err = body.spenders(r.Context(), v); err != nil {
		return err
	}
	if body.Need, err = tableOf(r.Context(), v, body.need); err != nil {
		return err
	}
	if v.Purse != nil {
		if body.Purse, err = v.Purse(r.Context()); err != nil {
			return err
		}
	}
	if v.Budgets != nil {
		if body.Budgets, err = v.Budgets(r.Context()); err != nil {
			return err
		}
	}
	return v.show(w, r, "overview", p.live(frame{Title: "Overview", Here: "overview", Body: body}, "/runs?"))
}

// daysOf returns the number of days that a page covers, from the request.
func daysOf(r *http.Request) (int, error) {
	given := r.URL.Query().Get("days")
	if given == "" {
		return choices[0], nil
	}
	days, err := strconv.Atoi(given)
	if most := choices[len(choices)-1]; err != nil || days < 1 || days > most {
		return 0, unreadable("days is %q: want 1 to %d", given, most)
	}
	return days, nil
}

// selects returns the query for a list of runs.
func (p *pages) selects(filter url.Values) (q journal.Query, err error) {
	if p.Select != nil {
		return p.Select(filter)
	}
	return q, nil
}

// A Purse is the caller's daily limit and the amount spent today (UTC).
type Purse struct{ Spent, Limit float64 }

// Left returns the amount that may still be spent.
func (p *Purse) Left() float64 { return max(p.Limit-p.Spent, 0) }

// Filled returns the spent share of the limit as a width in drawing units, from 0 to barWidth.
func (p *Purse) Filled() int {
	if p.Spent >= p.Limit {
		return barWidth
	}
	return int(p.Spent / p.Limit * barWidth)
}
