package otlp

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/telemetry"
)

// Part lets a program send the spans of runs in progress, and adds the option --as otlp of the command export and the
// configuration section telemetry; see cli.Part.
var Part = &telemetry.Exporter{
	Kind:   kinds.Kind{Name: sectionName, Section: sectionName, ReadSection: readSection},
	Watch:  watch,
	Export: exportFile,
}

const sectionName = "telemetry"

// A section configures the destination of spans.
type section struct {
	Config
	headers kinds.Secret
}

func readSection(r *kinds.Reader, m *form.Map) {
	v, ok := m.Field(sectionName)
	if !ok {
		return
	}
	var s section
	secrets := r.Of(sectionName, func() {
		v.Map(func(m *form.Map) {
			m.Need("url")
			r.Address(m, "url", &s.URL)
			kinds.SomeText(m, "service", &s.Service)
			m.At("messages").Bool(&s.Messages)
			s.headers = r.Secret(m, "headers")
		})
	})
	if s.URL == "" {
		return
	}
	what := "the events of runs"
	if s.Messages {
		what += ", with the texts of models,"
	}
	r.Contact(sectionName, "telemetry sends "+what+" to", s.URL, secrets)
	r.Parts[sectionName] = s
}

// read returns the Config with the current headers, whose values are secrets.
func (s section) read() (cfg Config, secrets []string, err error) {
	cfg = s.Config
	if s.headers == (kinds.Secret{}) {
		return cfg, nil, nil
	}
	text, err := s.headers.Read()
	if err == nil {
		cfg.Header, err = parseHeaders(string(text))
	}
	if err != nil {
		return cfg, nil, fmt.Errorf("the headers of :telemetry: %w", err)
	}
	for _, values := range cfg.Header {
		secrets = append(secrets, values...)
	}
	return cfg, secrets, nil
}

func watch(configured func() (*kinds.Reader, error), note func(...string), say func(string)) (telemetry.Watcher, error) {
	cfg, err := FromEnv(os.Getenv)
	if err == nil && cfg.URL == "" {
		var r *kinds.Reader
		if r, err = configured(); err != nil || r == nil {
			return nil, err
		}
		s, _ := r.Parts[sectionName].(section)
		var secrets []string
		cfg, secrets, err = s.read()
		note(secrets...)
	}
	if err != nil || cfg.URL == "" {
		return nil, err
	}
	live, err := NewLive(cfg, say)
	if err != nil {
		return nil, err // nil itself, not a Watcher that contains a nil *Live
	}
	return live, nil
}

func exportFile(file, to string, say func(string)) (func(context.Context) (int, error), error) {
	if to == "" {
		return nil, errors.New("--to is missing: want the URL of a collector, such as http://127.0.0.1:4318")
	}
	cfg, err := FromEnv(os.Getenv)
	if err != nil {
		return nil, err
	}
	cfg.URL, cfg.Exact = to, false
	cfg.Skipped = func(err error) {
		line := err.Error()
		if bad := (*event.LineError)(nil); errors.As(err, &bad) {
			line = fmt.Sprintf("%s:%d: %s; line skipped", file, bad.Line, bad.Reason)
		}
		say(line)
	}
	return func(ctx context.Context) (int, error) {
		f, err := os.Open(file)
		if err != nil {
			return 0, fmt.Errorf("trace file cannot be read: %w", err)
		}
		defer f.Close()
		report, err := Export(ctx, f, cfg)
		if err != nil && report.Sent > 0 {
			err = fmt.Errorf("%w (%d spans were sent; to export again sends them under the same ids)", err, report.Sent)
		}
		return report.Sent, err
	}, nil
}
