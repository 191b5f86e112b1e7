package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/transport"
)

// secrets holds the secrets of a request and its run.
type secrets struct {
	own *redact.Set
	run *redact.Set // nil if there are none
}

func newSecrets(ctx context.Context) *secrets {
	s := &secrets{own: new(redact.Set), run: redact.From(ctx)}
	s.run.Join(s.own)
	return s
}

// clean returns the text with all secrets replaced.
func (s *secrets) clean(text string) string { return s.run.Text(s.own.Text(text)) }

// header returns the configured header with the current values of the secrets in it.
func (c Config) header(own *secrets) (http.Header, error) {
	values := map[string]kinds.Value{}
	for name, v := range c.Header {
		values[name] = kinds.Value{Text: v.Text, Secret: kinds.Secret{Env: v.Env, File: v.File}}
	}
	read, err := kinds.Open(values)
	if err != nil {
		return nil, fmt.Errorf("header %w", err)
	}
	out := http.Header{}
	for name, v := range read {
		if strings.ContainsFunc(string(v), unicode.IsControl) {
			return nil, fmt.Errorf("header %s: the value is not one line of text", name)
		}
		if out.Set(name, string(v)); values[name].Text == "" {
			own.own.NoteHeader(string(v))
		}
	}
	own.run.Join(own.own)
	return out, nil
}

// http returns the HTTP client for a request. It sends the header only to the server named by URL, stays within the scope, and
// limits the size of response bodies.
func (c Config) http(ctx context.Context, header http.Header) *http.Client {
	client := &http.Client{}
	if c.Client != nil {
		*client = *c.Client
	}
	first, _ := url.Parse(c.URL) // Check has already parsed it
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		const most = 5
		if len(via) > most {
			return fmt.Errorf("more than %d redirects", most)
		}
		return c.Scope.Net.Follow(via[0].URL, r.URL)
	}
	client = transport.Client(ctx, client)
	out := *client
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	out.Transport = &door{next, first, c.Scope.Net, header, int64(c.MaxBody)}
	return &out
}

// A door is the transport of a request. It checks every address.
type door struct {
	next   http.RoundTripper
	first  *url.URL
	scope  call.Net
	header http.Header
	most   int64
}

func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := d.scope.Follow(d.first, r.URL); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	if r.URL.Host == d.first.Host && r.URL.Scheme == d.first.Scheme {
		for name, values := range d.header {
			r.Header[name] = values
		}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	over := time.AfterFunc(replyTime, func() { cancel(errSilent) })
	b := &bounded{left: d.most, most: d.most, ctx: ctx, cancel: cancel, over: over}
	resp, err := d.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, b.end(err)
	}
	b.ReadCloser = resp.Body
	if b.streams = strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"); b.streams {
		over.Reset(silence)
	}
	resp.Body = b
	if b.streams {
		return resp, nil
	}
	body, err := io.ReadAll(b)
	b.Close()
	if err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(wrapData(body))), -1
	return resp, nil
}

// Variables, so that tests can shorten them.
var (
	// replyTime is the time limit of a request that is not streamed. It is long because an agent may do all of its work before it
	// replies.
	replyTime = 5 * time.Minute
	// silence is the time after which a stream that sends nothing, not even keep-alive comments, counts as broken.
	silence = time.Minute
)

var errSilent = errors.New("the agent has been silent for too long")

// bounded is a body that returns an error if it is too long or takes too long.
type bounded struct {
	io.ReadCloser
	left, most int64
	streams    bool
	ctx        context.Context
	cancel     context.CancelCauseFunc
	over       *time.Timer // cancels the request
}

// end releases the resources of the request and returns err, or the reason why the request was ended.
func (b *bounded) end(err error) error {
	if context.Cause(b.ctx) == errSilent {
		err = errSilent
	}
	b.over.Stop()
	b.cancel(nil)
	return err
}

func (b *bounded) Close() error {
	err := b.ReadCloser.Close()
	_ = b.end(nil)
	return err
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the agent's answer has more than %d bytes", b.most)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case err != nil && err != io.EOF && context.Cause(b.ctx) == errSilent:
		err = errSilent
	case n > 0 && b.streams:
		b.over.Reset(silence)
	}
	return n, err
}

// connect reads the card of the agent.
func (c Config) connect(ctx context.Context, client *http.Client) (*a2aclient.Client, *sdk.AgentCard, error) {
	base, options := c.URL, []agentcard.ResolveOption(nil)
	if strings.HasSuffix(base, ".json") {
		options = append(options, agentcard.WithPath(""))
	}
	card, err := (&agentcard.Resolver{Client: client, CardParser: readCard}).Resolve(ctx, base, options...)
	if err != nil {
		return nil, nil, err
	}
	first, _ := url.Parse(c.URL) // Check has already parsed it
	var reached []*sdk.AgentInterface
	var refused error
	for _, i := range card.SupportedInterfaces {
		u, err := url.Parse(i.URL)
		if err == nil {
			err = c.Scope.Net.Follow(first, u)
		}
		if err != nil {
			refused = errors.Join(refused, err)
			continue
		}
		reached = append(reached, i)
	}
	if len(reached) == 0 && refused != nil {
		return nil, nil, fmt.Errorf("the card names no interface that may be used: %w", refused)
	}
	card.SupportedInterfaces = reached
	const before a2aVersion = "0.3"
	agent, err := a2aclient.NewFromCard(ctx, card,
		a2aclient.WithJSONRPCTransport(client), a2aclient.WithRESTTransport(client),
		a2aclient.WithCompatTransport(before, sdk.TransportProtocolJSONRPC, a2av0.NewJSONRPCTransportFactory(a2av0.JSONRPCTransportConfig{Client: client})),
		a2aclient.WithCompatTransport(before, sdk.TransportProtocolHTTPJSON, a2av0.NewRESTTransportFactory(a2av0.RESTTransportConfig{Client: client})),
	)
	return agent, card, err
}

type a2aVersion = sdk.ProtocolVersion

// readCard reads a card of any version. A 0.3 card without a transport means JSON-RPC, the only transport of version 0.2. Several
// transports may share an address.
func readCard(raw []byte) (*sdk.AgentCard, error) {
	card, err := a2av0.NewAgentCardParser()(raw)
	if err != nil {
		return card, err
	}
	var old struct {
		URL        string                `json:"url"`
		Preferred  sdk.TransportProtocol `json:"preferredTransport"`
		Current    []json.RawMessage     `json:"supportedInterfaces"`
		Additional []struct {
			Transport sdk.TransportProtocol `json:"transport"`
			URL       string                `json:"url"`
		} `json:"additionalInterfaces"`
	}
	if json.Unmarshal(raw, &old) != nil || old.URL == "" || len(old.Current) > 0 {
		return card, nil
	}
	at := []*sdk.AgentInterface{{URL: old.URL, ProtocolBinding: cmp.Or(old.Preferred, sdk.TransportProtocolJSONRPC), ProtocolVersion: a2av0.Version}}
	for _, i := range old.Additional {
		if i.URL != old.URL || i.Transport != at[0].ProtocolBinding {
			at = append(at, &sdk.AgentInterface{URL: i.URL, ProtocolBinding: i.Transport, ProtocolVersion: a2av0.Version})
		}
	}
	card.SupportedInterfaces = at
	return card, nil
}

// wrapData converts the data of an error to a list of objects. Before version 1.0, the data could have any form, but the library
// reads only lists and would otherwise lose the error's code.
func wrapData(body []byte) []byte {
	var reply, failure map[string]json.RawMessage
	if json.Unmarshal(body, &reply) != nil || json.Unmarshal(reply["error"], &failure) != nil {
		return body
	}
	var list []map[string]any
	data := failure["data"]
	if len(data) == 0 || json.Unmarshal(data, &list) == nil && !slices.ContainsFunc(list, func(one map[string]any) bool { return one == nil }) {
		return body
	}
	if data[0] != '{' {
		data = fmt.Appendf(nil, `{"details":%s}`, data)
	}
	failure["data"] = fmt.Appendf(nil, "[%s]", data)
	var err error
	if reply["error"], err = json.Marshal(failure); err == nil {
		if wrapped, err := json.Marshal(reply); err == nil {
			return wrapped
		}
	}
	return body
}
