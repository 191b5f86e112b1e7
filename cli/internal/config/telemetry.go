package config

import (
	"fmt"

	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/otlp"
)

// Telemetry says where the spans of runs are sent.
type Telemetry struct {
	otlp.Config
	headers kinds.Secret
}

// Read returns the Config of an exporter, with the headers as they are now.
func (t Telemetry) Read() (cfg otlp.Config, secrets []string, err error) {
	cfg = t.Config
	if t.headers == (kinds.Secret{}) {
		return cfg, nil, nil
	}
	text, err := t.headers.Read()
	if err == nil {
		cfg.Header, err = otlp.ParseHeaders(string(text))
	}
	if err != nil {
		return cfg, nil, fmt.Errorf("the headers of :telemetry: %w", err)
	}
	for _, values := range cfg.Header {
		secrets = append(secrets, values...)
	}
	return cfg, secrets, nil
}

// Reaches describes what is sent, "" if that is nothing.
func (t Telemetry) Reaches() string {
	if t.URL == "" {
		return ""
	}
	what := "the events of runs"
	if t.Messages {
		what += ", with the texts of models,"
	}
	var secrets []kinds.Secret
	if t.headers != (kinds.Secret{}) {
		secrets = append(secrets, t.headers)
	}
	return "telemetry sends " + what + " to " + kinds.Host(t.URL) + with(secrets)
}

func (t *Telemetry) read(r *kinds.Reader, m *form.Map) {
	read := func(m *form.Map) {
		m.Need("url")
		r.Address(m, "url", &t.URL)
		kinds.SomeText(m, "service", &t.Service)
		m.At("messages").Bool(&t.Messages)
		t.headers = r.Secret(m, "headers")
	}
	r.Of("telemetry", func() { m.At("telemetry").Map(read) })
}

// ReadTelemetry reads only that part of a configuration, of the nearest directory .stone if file is "". It returns the
// file, which is "" if there is none.
func ReadTelemetry(file string) (t Telemetry, from string, err error) {
	if file == "" {
		dir, err := Find(".")
		if err != nil || dir == "" {
			return t, "", err
		}
		if file, err = fileIn(dir); err != nil || file == "" {
			return t, "", err
		}
	}
	v, err := parse(file)
	if err != nil {
		return t, file, err
	}
	dir, err := projectOf(file)
	if err != nil {
		return t, file, err
	}
	r := &kinds.Reader{Dir: dir}
	faults := form.Read(v, func(m *form.Map) {
		m.AllowRest()
		t.read(r, m)
	})
	return t, file, invalid(file, faults)
}
