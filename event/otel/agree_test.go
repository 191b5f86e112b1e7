package otel_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/event/otel"
	"github.com/stonelayer/stone/trace"
	"github.com/stonelayer/stone/trace/otlp"
)

// TestAgrees checks that a run has the same spans, live and from its trace file: their
// names, kinds, parents, attributes, states and events. The file lacks stone.lost of a lane
// and stone.replayed of a step, which this run does not have.
func TestAgrees(t *testing.T) {
	rec := tracetest.NewSpanRecorder()
	var file bytes.Buffer
	_, err := stone.Run(t.Context(), pipeline(), stone.Config{Watch: event.All(
		otel.Watch(sdk.NewTracerProvider(sdk.WithSpanProcessor(rec))),
		event.Log(trace.NewHandler(&file, slog.LevelDebug)))})
	if err != nil {
		t.Fatal(err)
	}
	live, filed := liveSpans(rec.Ended()), filedSpans(t, &file)
	for _, s := range live {
		if i := slices.Index(filed, s); i < 0 {
			t.Errorf("only live:\n%s", s)
		} else {
			filed = slices.Delete(filed, i, i+1)
		}
	}
	for _, s := range filed {
		t.Errorf("only from the file:\n%s", s)
	}
}

func liveSpans(spans []sdk.ReadOnlySpan) (all []string) {
	names := map[string]string{}
	for _, s := range spans {
		names[s.SpanContext().SpanID().String()] = s.Name()
	}
	for _, s := range spans {
		var events []string
		for _, e := range s.Events() {
			events = append(events, e.Name+" "+printed(e.Attributes))
		}
		all = append(all, fmt.Sprintf("%s in %q, kind %d, status %q\n\t%s\n\t%s", s.Name(), names[s.Parent().SpanID().String()],
			s.SpanKind(), s.Status().Description, printed(s.Attributes()), strings.Join(events, "\n\t")))
	}
	return all
}

// printed prints attributes by their names.
func printed(attrs []attribute.KeyValue) string {
	var all []string
	for _, a := range attrs {
		if a.Key != "stone.lost" {
			all = append(all, string(a.Key)+"="+a.Value.Emit())
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func filedSpans(t *testing.T, file io.Reader) (all []string) {
	var spans []filedSpan
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		var request struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []filedSpan } }
		}
		if err := json.NewDecoder(z).Decode(&request); err != nil {
			t.Error(err)
			return
		}
		spans = append(spans, request.ResourceSpans[0].ScopeSpans[0].Spans...)
	}))
	defer server.Close()
	if _, err := otlp.Export(t.Context(), file, otlp.Config{URL: server.URL}); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, s := range spans {
		names[s.SpanID] = s.Name
	}
	for _, s := range spans {
		var events []string
		for _, e := range s.Events {
			events = append(events, e.Name+" "+printed(e.keyValues()))
		}
		all = append(all, fmt.Sprintf("%s in %q, kind %d, status %q\n\t%s\n\t%s", s.Name, names[s.ParentSpanID],
			s.Kind, s.Status.Message, printed(s.keyValues()), strings.Join(events, "\n\t")))
	}
	return all
}

type filedSpan struct {
	SpanID, ParentSpanID string
	Kind                 int
	Status               struct{ Message string }
	filedEvent
	Events []filedEvent
}

type filedEvent struct {
	Name       string
	Attributes []struct {
		Key   string
		Value struct {
			StringValue *string
			BoolValue   *bool
			IntValue    *string
			DoubleValue *float64
			ArrayValue  *struct {
				Values []struct{ StringValue string }
			}
		}
	}
}

func (e filedEvent) keyValues() (attrs []attribute.KeyValue) {
	for _, a := range e.Attributes {
		v := a.Value
		switch {
		case v.StringValue != nil:
			attrs = append(attrs, attribute.String(a.Key, *v.StringValue))
		case v.BoolValue != nil:
			attrs = append(attrs, attribute.Bool(a.Key, *v.BoolValue))
		case v.IntValue != nil:
			attrs = append(attrs, attribute.String(a.Key, *v.IntValue))
		case v.DoubleValue != nil:
			attrs = append(attrs, attribute.Float64(a.Key, *v.DoubleValue))
		case v.ArrayValue != nil:
			var list []string
			for _, s := range v.ArrayValue.Values {
				list = append(list, s.StringValue)
			}
			attrs = append(attrs, attribute.StringSlice(a.Key, list))
		}
	}
	return attrs
}
