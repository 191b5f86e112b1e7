package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/llm"
)

// modelFlags holds the values of model call's flags.
type modelFlags struct {
	provider  string
	url       string
	model     string
	system    string
	tools     []string
	schema    string
	extra     string
	maxTokens int
	raw       bool
}

func (a *app) modelCall(c *cobra.Command) {
	var flags modelFlags
	c.RunE = func(c *cobra.Command, args []string) error {
		prompt, err := a.prompt(args[0])
		if err != nil {
			return err
		}
		req, extra, err := flags.request(prompt)
		if err != nil {
			return err
		}
		var shown bytes.Buffer
		var client *http.Client
		if flags.raw {
			t := http.DefaultTransport.(*http.Transport).Clone()
			t.DisableCompression = true // show the bytes as sent
			t.DisableKeepAlives = true  // only one request is made
			client = &http.Client{Transport: copier{t, &shown}}
		}
		defer a.closeCalls()
		model, err := a.client(flags, config.Connection{Model: flags.model, Extra: extra, HTTPClient: client, Once: true})
		if err == nil {
			err = model.(llm.Checker).Check()
		}
		if err != nil {
			return err
		}
		if a.screen() != nil {
			model = &watched{model, flags.model, unshielded(a.Stderr)}
		}
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // after this, a second signal ends the process
		reply, failure := llm.Collect(ctx, model, req)
		if !flags.raw {
			if err := printJSON(&shown, shownReply(ctx, reply, failure)); err != nil {
				return output(err)
			}
		}
		if _, err := io.WriteString(a.Stdout, a.secrets.Clean(shown.String())); err != nil {
			return output(err)
		}
		if failure != nil {
			return failed("%w", failure)
		}
		return nil
	}
	f := c.Flags()
	a.configFlag(f)
	a.trustFlag(f)
	f.StringVar(&flags.provider, "provider", "", "`NAME` of a configured provider, or the protocol of the server: "+strings.Join(config.Protocols, ", "))
	f.StringVar(&flags.url, "url", "", "`URL` of the server, with or without the path of the endpoint, in place of the configured one")
	f.StringVar(&flags.model, "model", "", "call the model `NAME`, or the model of the capability `NAME`")
	f.StringVar(&flags.system, "system", "", "the system prompt `TEXT`")
	f.StringArrayVar(&flags.tools, "tool", nil, "offer the tool, or list of tools, in `FILE`: JSON with name, description, schema")
	f.StringVar(&flags.schema, "schema", "", "request JSON that fits the JSON Schema in `FILE`")
	f.StringVar(&flags.extra, "extra", "", "add the fields of a `JSON` object to the request; null removes one")
	f.Var(count(&flags.maxTokens), "max-tokens", "limit the answer to `N` tokens")
	f.BoolVar(&flags.raw, "raw", false, "print the response as received")
}

// client returns the same model client as a run would use: a client for the configured provider, or for the default model's
// server. With --url, the configuration is ignored.
func (a *app) client(flags modelFlags, c config.Connection) (llm.Model, error) {
	var known []string
	if flags.url == "" {
		conf, err := a.configured()
		if err != nil {
			return nil, err
		}
		if m := conf.Client(flags.provider, c); m != nil {
			return m, a.consentToConfig()
		}
		s, err := settings()
		if err != nil {
			return nil, err
		}
		if c.Model == "" {
			c.Model = s.Model
		}
		if c.Model != "" && (flags.provider == "" || flags.provider == cmp.Or(s.Provider, "openai")) {
			f, err := foundSettings()
			if err == nil {
				err = a.consent(f)
			}
			if err != nil {
				return nil, err
			}
			return connect(s, c)
		}
		known = conf.Providers()
	}
	protocol := cmp.Or(flags.provider, "openai")
	if known = append(known, config.Protocols...); !slices.Contains(known, protocol) {
		return nil, fmt.Errorf("--provider %s: want one of %s%s", protocol, strings.Join(known, ", "), suggest.Hint(protocol, slices.Values(known)))
	}
	if c.Model == "" {
		return nil, errors.New("--model is missing: name a model, or a capability that calls one")
	}
	c.URL, c.Key = flags.url, llm.Secret(os.Getenv(config.KeyEnv(protocol)))
	return config.Connect(protocol, c), nil
}

// prompt returns arg or, if arg is "-", the text of standard input without its final line break.
func (a *app) prompt(arg string) (string, error) {
	if arg == "-" {
		data, err := io.ReadAll(a.Stdin)
		if err != nil {
			return "", fmt.Errorf("read the prompt from standard input: %w", err)
		}
		arg = strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	}
	if strings.TrimSpace(arg) == "" {
		return "", errors.New("PROMPT is empty: give the text to send to the model")
	}
	return arg, nil
}

// request returns the request that the flags describe, and additional fields for its body.
func (flags modelFlags) request(prompt string) (req *llm.Request, extra map[string]any, err error) {
	req = &llm.Request{System: flags.system, Messages: []llm.Message{llm.User(prompt)}, MaxTokens: flags.maxTokens}
	for _, file := range flags.tools {
		tools, err := readTools(file)
		if err != nil {
			return nil, nil, fmt.Errorf("--tool %s: %w", file, err)
		}
		req.Tools = append(req.Tools, tools...)
	}
	if flags.schema != "" {
		data, err := os.ReadFile(flags.schema)
		if err == nil {
			err = checkObject(data)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("--schema %s: %w", flags.schema, err)
		}
		req.ResponseFormat = &llm.Format{Schema: data}
	}
	if flags.extra != "" {
		if err := checkObject([]byte(flags.extra)); err != nil {
			return nil, nil, fmt.Errorf("--extra: %w", err)
		}
		dec := json.NewDecoder(strings.NewReader(flags.extra))
		dec.UseNumber() // numbers are sent as written
		if err := dec.Decode(&extra); err != nil {
			return nil, nil, fmt.Errorf("--extra: %w", err)
		}
	}
	return req, extra, nil
}

// readTools reads a file that contains one tool or a list of tools.
func readTools(file string) ([]llm.Tool, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	list := []json.RawMessage{data}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
	}
	tools := make([]llm.Tool, len(list))
	for i, raw := range list {
		if tools[i], err = readTool(raw); err != nil {
			return nil, fmt.Errorf("tool %d: %w", i+1, err)
		}
	}
	return tools, nil
}

// readTool reads a tool in the API format of any provider.
func readTool(raw json.RawMessage) (llm.Tool, error) {
	if err := checkObject(raw); err != nil {
		return llm.Tool{}, err
	}
	var d struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"schema"`
		InputSchema json.RawMessage `json:"input_schema"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields() // a dropped field would go unnoticed
	if err := dec.Decode(&d); err != nil {
		return llm.Tool{}, fmt.Errorf("%w: want name, description, and schema (or input_schema, or parameters)", err)
	}
	if d.Name == "" {
		return llm.Tool{}, errors.New("it has no name")
	}
	t := llm.Tool{Name: d.Name, Description: d.Description}
	for _, s := range []json.RawMessage{d.Schema, d.InputSchema, d.Parameters} {
		if s == nil {
			continue
		}
		if t.Schema != nil {
			return t, errors.New("it has two schemas: want one of schema, input_schema and parameters")
		}
		if err := checkObject(s); err != nil {
			return t, fmt.Errorf("its schema: %w", err)
		}
		t.Schema = s
	}
	return t, nil
}

// checkObject returns an error if the data is not a JSON object.
func checkObject(data []byte) error {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(data, &fields)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); other || err == nil && fields == nil {
		return fmt.Errorf("%s is not a JSON object", text.Cut(text.Line(string(data)), 40))
	}
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return nil
}
