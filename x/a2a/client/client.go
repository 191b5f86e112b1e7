package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/rest"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/x/a2a/internal/parts"
)

// Config configures the connection to an agent. Its URL is required: without it, calls fail with "runtime/unavailable".
type Config struct {
	// URL is the address of the agent. The agent's card is at /.well-known/agent-card.json below this address; if the URL ends in
	// ".json", it is the address of the card itself. The URL must not contain a user or a query.
	URL   string
	Skill string // sent as "skill" in the metadata of messages; optional
	// Header is sent with every request to the server named by URL.
	Header map[string]rest.Value
	// Client sends the requests; nil means a client with http.DefaultTransport. Its CheckRedirect function is not used.
	Client *http.Client
	Scope  call.Scope // limits which servers the card, its interfaces and redirects may name; if its Net is nil, only the server named by URL
	// MaxBody is the maximum size of an answer in bytes. Zero means 8 MiB.
	MaxBody int
	// Poll is the interval at which a task is polled if the agent cannot stream or the stream broke. Zero means 2 s.
	Poll time.Duration
}

const (
	defaultBody = 8 << 20
	defaultPoll = 2 * time.Second
	// maxLost is the number of consecutive failed reads of a task after which the client gives up.
	maxLost = 5
	// cancelTime is the time limit of a request that cancels a task.
	cancelTime = 5 * time.Second
	// maxTasks is the maximum number of tasks that are created for a request, one after the other.
	maxTasks = 100
)

// Check returns an error if the configuration is invalid. Environment variables and files are read only when the agent is called.
func (c Config) Check() error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return errors.New("a2a: URL is not an http or https URL with a host, without user and query") // the error from url.Parse would reveal the URL
	}
	if c.MaxBody < 0 || c.Poll < 0 {
		return errors.New("a2a: MaxBody or Poll is negative: want zero for the default")
	}
	for name, v := range c.Header {
		set := 0
		for _, s := range []string{v.Text, v.Env, v.File} {
			if s != "" {
				set++
			}
		}
		if name == "" || set != 1 {
			return fmt.Errorf("a2a: header %q: want a name, and one of Text, Env and File", name)
		}
	}
	return errors.Join(c.Scope.Check(), c.Scope.Net.Check(u))
}

// New returns a capability of the kind a2a that sends its requests to the configured agent. If m.ID is empty, the id is the host
// of the URL. The capability needs the effect net.
func New(m call.Metadata, c Config) call.Capability {
	m = m.Needing(effect.Net)
	m.Kind = cmp.Or(m.Kind, "a2a")
	if m.ID == "" {
		m.ID = "a2a"
		if u, err := url.Parse(c.URL); err == nil && u.Hostname() != "" {
			m.ID = u.Hostname()
		}
	}
	c.MaxBody, c.Poll = cmp.Or(c.MaxBody, defaultBody), cmp.Or(c.Poll, defaultPoll)
	invalid := c.Check()
	return call.Capability{Metadata: m, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		if invalid != nil {
			return nil, unavailable("", invalid)
		}
		reply, err := c.invoke(ctx, m.ID, req)
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return reply, err
	}}
}

func unavailable(what string, err error) *call.Error {
	return &call.Error{Type: reasons.Unavailable, Message: what + err.Error(), Cause: err, Retryable: what != ""}
}

func failed(format string, args ...any) *call.Error {
	return &call.Error{Type: reasons.InvokeFailed, Message: fmt.Sprintf(format, args...)}
}

func (c Config) invoke(ctx context.Context, id string, req *call.Request) (*call.Reply, error) {
	if req.Turn != nil {
		return nil, &call.Error{Type: reasons.InvalidRequest, Message: "an agent is not a model: it accepts messages, but no conversation turns with tools"}
	}
	parts, err := partsOf(req)
	if err != nil {
		return nil, err
	}
	own := newSecrets(ctx)
	header, err := c.header(own)
	if err != nil {
		return nil, unavailable("", err)
	}
	client := c.http(ctx, header)
	agent, card, err := c.connect(ctx, client)
	if err != nil {
		return nil, c.failure(own, "the agent cannot be reached: ", err)
	}
	defer func() { _ = agent.Destroy() }()
	t := &talk{cfg: c, id: id, agent: agent, streams: card.Capabilities.Streaming, req: req, names: namesOf(req.Key), secrets: own, out: output{voice: req.Voice}}
	reply, err := t.run(ctx, parts)
	if err != nil && ctx.Err() != nil && !goesOn(context.Cause(ctx)) {
		t.cancel(ctx)
	}
	if err == nil {
		reply.Out = call.JSON(own.clean(string(reply.Out)))
	}
	return reply, err
}

// goesOn reports whether err means that another process will continue the run.
func goesOn(why error) bool {
	return errors.Is(why, journal.ErrDrained) || errors.Is(why, kind.Recorder)
}

// failure returns err without the URL that the errors of net/http contain.
func (c Config) failure(own *secrets, what string, err error) error {
	if errors.As(err, new(*call.Error)) {
		return err
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if failed := call.AsError(err); failed.Type == reasons.NotRecorded {
		return failed
	}
	for _, refusal := range []error{sdk.ErrInvalidParams, sdk.ErrInvalidRequest, sdk.ErrUnsupportedContentType, sdk.ErrUnsupportedOperation, sdk.ErrUnauthenticated, sdk.ErrUnauthorized} {
		if errors.Is(err, refusal) {
			return failed("the agent refuses the message: %s", own.clean(err.Error()))
		}
	}
	return unavailable(what, errors.New(own.clean(err.Error())))
}

// anyInput is the default input schema. Files are in "media", as in an answer.
var anyInput, _ = schema.For[struct {
	Media []*llm.Media `json:"media,omitempty"`
}]()

// partsOf converts an input to the parts of a message.
func partsOf(req *call.Request) (sdk.ContentParts, error) {
	input := json.RawMessage(req.Input)
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	rest, files, err := parts.Take(input, cmp.Or(req.InSchema, anyInput))
	var value any
	if err == nil && rest != nil {
		err = json.Unmarshal(rest, &value)
	}
	if err != nil {
		return nil, &call.Error{Type: reasons.InputInvalid, Message: "the input: " + err.Error(), Where: "input", Cause: err}
	}
	text, isText := value.(string)
	if object, ok := value.(map[string]any); ok && len(object) == 1 {
		for _, only := range object {
			text, isText = only.(string)
		}
	}
	switch {
	case isText && text != "":
		return append(sdk.ContentParts{sdk.NewTextPart(text)}, files...), nil
	case rest != nil:
		return append(sdk.ContentParts{sdk.NewDataPart(rest)}, files...), nil
	}
	return files, nil
}

// readKind reads a capability from the configuration.
func readKind(r *kinds.Reader, m *form.Map, at *kinds.Reached) kinds.Builder {
	c := Config{Header: map[string]rest.Value{}}
	m.Need("url")
	r.Address(m, "url", &c.URL)
	at.At = c.URL
	kinds.SomeText(m, "skill", &c.Skill)
	for name, v := range r.Values(m, "headers") {
		c.Header[name] = rest.Value{Text: v.Text, Env: v.Secret.Env, File: v.Secret.File}
	}
	m.At("max-body").Int(&c.MaxBody, 1, 1<<30)
	m.At("poll-ms").Duration(&c.Poll)
	c.Scope = r.Scope(m)
	return func(meta call.Metadata) (call.Capability, error) { return New(meta, c), c.Check() }
}

// Part adds the kind a2a to a program.
var Part = kinds.Kind{Name: "a2a", Read: readKind}
