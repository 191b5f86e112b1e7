package otlp

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// FromEnv returns a Config based on OpenTelemetry's environment variables for the endpoint, headers and protocol of the exporter
// (with or without TRACES_ in their names) and for the service name. The URL of the Config is empty if the variables specify no
// collector or disable exporters.
func FromEnv(getenv func(string) string) (cfg Config, err error) {
	either := func(name string) (value, from string) {
		for _, from := range []string{"OTEL_EXPORTER_OTLP_TRACES_" + name, "OTEL_EXPORTER_OTLP_" + name} {
			if value := getenv(from); value != "" {
				return value, from
			}
		}
		return "", ""
	}
	headers, from := either("HEADERS")
	if cfg.Header, err = parseHeaders(headers); err != nil {
		return Config{}, fmt.Errorf("%s: %w", from, err)
	}
	cfg.Service = getenv("OTEL_SERVICE_NAME")
	for pair := range strings.SplitSeq(getenv("OTEL_RESOURCE_ATTRIBUTES"), ",") {
		if name, ok := strings.CutPrefix(strings.TrimSpace(pair), "service.name="); ok && cfg.Service == "" {
			cfg.Service, _ = url.PathUnescape(name) // "" means the default
		}
	}
	cfg.Messages = strings.EqualFold(getenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"), "true")
	switch protocol, from := either("PROTOCOL"); protocol {
	case "", "http/protobuf":
	case "http/json":
		cfg.JSON = true
	default:
		return Config{}, fmt.Errorf("%s is %q: want http/protobuf or http/json", from, protocol)
	}
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return cfg, nil
	}
	cfg.URL, from = either("ENDPOINT")
	cfg.Exact = strings.Contains(from, "_TRACES_")
	return cfg, nil
}

// parseHeaders parses headers in the format of OTEL_EXPORTER_OTLP_HEADERS: comma-separated key=value pairs, with values escaped as
// in a URL. An error contains the invalid key, but no value.
func parseHeaders(s string) (http.Header, error) {
	h := http.Header{}
	for i, pair := range strings.Split(s, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, escaped, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			return nil, fmt.Errorf("header %d: want key=value, with a comma before the next", i+1)
		}
		value, err := url.PathUnescape(strings.TrimSpace(escaped))
		if err != nil || strings.ContainsAny(value, "\r\n\x00") {
			return nil, fmt.Errorf("the value of header %q is not escaped as in a URL: write %%25 for a percent sign", key)
		}
		h.Add(key, value)
	}
	return h, nil
}
