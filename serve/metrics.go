package serve

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/internal/metrics"
	"github.com/stonelayer/stone/step"
)

// meters count the work of this server. Labels contain only values of which there are few, such as the names of pipelines, routes
// and states. They never contain the names of callers, runs or questions.
type meters struct {
	set      metrics.Set
	requests metrics.Counter
	seconds  metrics.Histogram
	stopped  metrics.Counter
	steps    metrics.Counter
	tokens   metrics.Counter
	usd      metrics.Counter
	possible metrics.Counter
	waits    metrics.Histogram
	journal  metrics.Histogram
	webhooks metrics.Counter

	active, unfinished, questions, streams metrics.Gauge
	budgets                                metrics.Gauge

	mu      sync.Mutex
	counted time.Time // time at which the journal was last read for the gauges
}

// buckets are the upper bounds of the duration histograms, in seconds.
var buckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

func newMeters() *meters {
	m := &meters{}
	m.requests = m.set.Counter("stone_http_requests_total", "Requests, by route and status.", "route", "status")
	m.seconds = m.set.Histogram("stone_http_request_duration_seconds", "Duration of requests; clients choose how long streams and waits last.", buckets, "route")
	m.streams = m.set.Gauge("stone_event_streams", "Open streams of events of runs.")
	m.active = m.set.Gauge("stone_runs_active", "Runs that this process runs.", "pipeline")
	m.unfinished = m.set.Gauge("stone_runs_unfinished", "Unfinished runs in the journal that do not run; at most 15 s old.", "pipeline", "state")
	m.questions = m.set.Gauge("stone_questions_open", "Unfinished runs that do not run and have an open question.", "pipeline")
	m.budgets = m.set.Gauge("stone_budget", "Budgets over several runs in their present period: per is day, month or ever, kind is used, in-flight or limit, unit is usd, tokens or roundtrips.", "budget", "per", "kind", "unit")
	m.stopped = m.set.Counter("stone_runs_stopped_total", "Runs that stopped in this process, by their state then.", "pipeline", "state")
	m.steps = m.set.Counter("stone_steps_total", "Steps that ended; result is ok, failed or replayed.", "pipeline", "result")
	m.usd = m.set.Counter("stone_usd_total", "Cost of models and capabilities in USD, counted when a run stops.", "pipeline")
	m.possible = m.set.Counter("stone_usd_possible_total", "Estimated cost in USD of attempts that may have been billed, since they have no result, counted when a run stops.", "pipeline")
	m.tokens = m.set.Counter("stone_tokens_total", "Tokens of models, counted when a run stops.", "pipeline", "direction")
	m.waits = m.set.Histogram("stone_limit_wait_seconds", "Time that requests to models and capabilities wait for limits.", buckets)
	m.journal = m.set.Histogram("stone_journal_seconds", "Duration of journal operations; do is recording a step, without its work.", buckets, "operation")
	m.webhooks = m.set.Counter("stone_webhooks_total", "Attempts to deliver webhooks; result is ok, failed or dropped.", "result")
	return m
}

// getMetrics writes the metrics in Prometheus's text format. They cover all tenants, so a caller with a tenant may not read them.
func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request, who Principal) error {
	if who.Tenant != "" {
		return noRoute(r)
	}
	s.gauge(r.Context())
	w.Header().Set("Content-Type", metrics.ContentType)
	_, _ = w.Write(s.meters.set.Text()) // an error means that the client is gone
	return nil
}

// gauge updates the gauges. While the journal cannot be read, its gauges have no values; the counters, which are most needed at
// such a time, remain available.
func (s *Server) gauge(ctx context.Context) {
	m := s.meters
	m.mu.Lock()
	defer m.mu.Unlock()
	s.mu.Lock()
	m.streams.Set(metrics.Reading{Value: float64(s.streams)})
	var active []metrics.Reading
	for _, run := range s.active {
		active = append(active, metrics.Reading{Value: 1, Labels: []string{run.pipeline}})
	}
	s.mu.Unlock()
	m.active.Set(active...)
	const patience = 5 * time.Second // half of Prometheus's timeout
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if s.gaugeJournal(ctx) == nil {
		return
	}
	m.counted = time.Time{}
	for _, g := range []metrics.Gauge{m.budgets, m.unfinished, m.questions} {
		g.Set()
	}
}

// gaugeJournal updates the gauges that the journal provides. The caller holds m.mu.
func (s *Server) gaugeJournal(ctx context.Context) error {
	m := s.meters
	var budgets []metrics.Reading
	for _, b := range shared(s.cfg.Budgets) {
		bal, err := s.cfg.Journal.Balance(ctx, b, time.Now())
		if err != nil {
			return err
		}
		budgets = append(budgets, readings(bal)...)
	}
	m.budgets.Set(budgets...)
	const fresh = 15 * time.Second
	if time.Since(m.counted) < fresh {
		return nil
	}
	var unfinished, questions []metrics.Reading
	for _, q := range []journal.Query{ // several queries, so that the journal need not read the questions of every run
		{States: []journal.State{journal.Waiting, journal.Refused}, Asking: true},
		{States: []journal.State{journal.Answered}},
		{States: []journal.State{journal.Drained, journal.Interrupted, journal.Refused}},
	} {
		counts, err := s.cfg.Journal.Counts(ctx, q)
		if err != nil {
			return err
		}
		for _, c := range counts {
			if q.Asking {
				questions = append(questions, metrics.Reading{Value: float64(c.Runs), Labels: []string{c.Pipeline}})
			}
			if q.Asking == (c.State == journal.Waiting) { // a refused run stops repeatedly
				unfinished = append(unfinished, metrics.Reading{Value: float64(c.Runs), Labels: []string{c.Pipeline, string(c.State)}})
			}
		}
	}
	m.unfinished.Set(unfinished...)
	m.questions.Set(questions...)
	m.counted = time.Now()
	return nil
}

// readings returns the state of a budget, one reading for each unit that it limits.
func readings(b budget.Balance) (all []metrics.Reading) {
	add := func(unit string, limit, used, held float64) {
		for kind, value := range map[string]float64{"limit": max(limit, 0), "used": used, "in-flight": held} {
			all = append(all, metrics.Reading{Value: value, Labels: []string{b.Name, cmp.Or(string(b.Per), "ever"), kind, unit}})
		}
	}
	if l := b.Limits.USD; l != nil {
		add("usd", *l, b.Used.USD, b.Held.USD)
	}
	if l := b.Limits.Tokens; l != nil {
		add("tokens", float64(*l), float64(b.Used.Tokens), float64(b.Held.Tokens))
	}
	if l := b.Limits.Roundtrips; l != nil {
		add("roundtrips", float64(*l), float64(b.Used.Roundtrips), float64(b.Held.Roundtrips))
	}
	return all
}

// step counts a step that has ended.
func (m *meters) step(pipeline string, rec step.Record) {
	switch {
	case rec.Replayed:
		m.steps.Add(1, pipeline, "replayed")
	case rec.Failure != nil:
		m.steps.Add(1, pipeline, "failed")
	default:
		m.steps.Add(1, pipeline, "ok")
	}
}

// ran counts a run that has stopped, and the cost that was added since it last stopped.
func (m *meters) ran(t *task, info journal.RunInfo) {
	pipeline, before, after := t.Name, t.before.Usage, info.Usage
	m.stopped.Add(1, pipeline, string(info.State))
	m.possible.Add(max(after.Possible.USD-before.Possible.USD, 0), pipeline) // can decrease: a step's result may be found later
	m.usd.Add(after.USD-before.USD, pipeline)
	m.tokens.Add(float64(after.InputTokens-before.InputTokens), pipeline, "input")
	m.tokens.Add(float64(after.OutputTokens-before.OutputTokens), pipeline, "output")
}

// context returns a context in which time spent waiting for rate limits is counted.
func (m *meters) context(ctx context.Context) context.Context {
	return limit.Watch(ctx, func(wait time.Duration) { m.waits.Observe(wait.Seconds()) })
}

// count counts the requests of a route.
func (m *meters) count(pattern string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		start := time.Now()
		defer func() {
			m.requests.Add(1, pattern, strconv.Itoa(status.status))
			m.seconds.Observe(time.Since(start).Seconds(), pattern)
		}()
		next(status, r)
	}
}

// A statusWriter records the status of a reply.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (s *statusWriter) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController find the underlying writer.
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
