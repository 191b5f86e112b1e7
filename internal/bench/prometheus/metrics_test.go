// Package prometheus_test reads the metrics of a server with the parser of Prometheus.
package prometheus_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

func TestMetrics(t *testing.T) {
	greeting := dag.NewType[string]("greeting")
	greet := stone.Func0("greet", greeting, func(context.Context) (string, error) { return "Hello", nil })
	s, err := serve.New(serve.Config{Journal: memdb.New(t), Pipelines: []serve.Pipeline{{Ashlar: greet}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	server := httptest.NewServer(s)
	defer server.Close()
	c := api.Client{URL: server.URL}
	for range 3 {
		run, err := c.Start(t.Context(), "", api.Start{Pipeline: "greet"})
		if err == nil {
			_, err = c.Result(t.Context(), run.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	resp, err := server.Client().Get(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if f := expfmt.ResponseFormat(resp.Header); f.FormatType() != expfmt.TypeTextPlain {
		t.Errorf("the content type is %q", f)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]dto.MetricType{
		"stone_http_requests_total": dto.MetricType_COUNTER, "stone_http_request_duration_seconds": dto.MetricType_HISTOGRAM,
		"stone_event_streams": dto.MetricType_GAUGE, "stone_journal_seconds": dto.MetricType_HISTOGRAM,
		"stone_runs_stopped_total": dto.MetricType_COUNTER, "stone_steps_total": dto.MetricType_COUNTER,
	}
	for name, kind := range kinds {
		if f := all[name]; f == nil || f.GetType() != kind || f.GetHelp() == "" {
			t.Errorf("%s: %v, want %v", name, f, kind)
		}
	}
	for name, f := range all {
		if f.GetType() == dto.MetricType_COUNTER != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %v", name, f.GetType())
		}
		for _, m := range f.GetMetric() {
			if h := m.GetHistogram(); h != nil && h.GetBucket()[len(h.GetBucket())-1].GetCumulativeCount() != h.GetSampleCount() {
				t.Errorf("%s: the buckets do not count all: %v", name, h)
			}
		}
	}
	if done := all["stone_runs_stopped_total"].GetMetric(); len(done) != 1 || done[0].GetCounter().GetValue() != 3 {
		t.Errorf("stopped runs: %v", done)
	}
}
