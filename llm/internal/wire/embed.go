package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/transport"
	"github.com/stonelayer/stone/llm"
)

// An Embedder contains the code shared by the embedders of all providers.
type Embedder struct {
	model  Model
	body   func(req *llm.EmbedRequest) map[string]any
	client func() *Client // returns a client for the endpoint
	read   func(data []byte) (Vectors, error)
	most   atomic.Int32 // maximum number of texts that the server accepts; 0 means unknown
}

// Vectors is a provider's answer to an embedding request.
type Vectors struct {
	Vectors [][]float32
	Model   string
	Tokens  *int // number of input tokens; nil if the server does not report it
}

// NewEmbedder returns an Embedder for a Setup whose Defaults have been set. The function body builds the body of a request, read
// reads the answer, and below returns the client of the method. If below is nil, the endpoint itself is used.
func NewEmbedder(s Setup, keyed []string, body func(*llm.EmbedRequest) map[string]any, read func([]byte) (Vectors, error), below func(*Client) *Client) *Embedder {
	e := &Embedder{body: body, read: read}
	if s.Model == "" {
		s.Fault = errors.Join(s.Fault, errors.New("no Model: name one"))
	}
	e.model.Init(s, map[string]string{"Accept": "application/json"}, keyed, nil)
	e.client = func() *Client {
		if below != nil {
			return below(e.model.Client)
		}
		return e.model.Client
	}
	return e
}

// Embed implements llm.Embedder. Servers accept 10, 32 or 2,048 texts at once, and a limited number of bytes. If a request is
// rejected, Embed therefore splits it in half, and remembers the accepted number of texts.
func (e *Embedder) Embed(ctx context.Context, req *llm.EmbedRequest) (*llm.Embedding, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", e.model.setup.Provider, err)
	}
	sum := &llm.Embedding{}
	err := e.all(ctx, req, req.Texts, sum)
	if err == nil {
		err = sum.Check(len(req.Texts))
	}
	if err != nil {
		spent, _ := budget.CostOf(err)
		return nil, budget.Costly(err, sum.Usage.Add(spent))
	}
	return sum, nil
}

// all embeds part of the texts in a request, and adds the vectors and the usage to sum.
func (e *Embedder) all(ctx context.Context, req *llm.EmbedRequest, texts []string, sum *llm.Embedding) error {
	for len(texts) > 0 {
		n := len(texts)
		if most := int(e.most.Load()); most > 0 {
			n = min(n, most)
		}
		one, err := e.once(ctx, &llm.EmbedRequest{Texts: texts[:n], Query: req.Query})
		switch half := (n + 1) / 2; {
		case err == nil:
			sum.Vectors, sum.Usage = append(sum.Vectors, one.Vectors...), sum.Usage.Add(one.Usage)
			sum.Model, sum.RequestID = one.Model, one.RequestID
		case !tooMany(err):
			return err
		case n == 1:
			return fmt.Errorf("text %d of %d: %w", len(sum.Vectors)+1, len(req.Texts), err)
		default:
			for _, part := range [][]string{texts[:half], texts[half:n]} {
				if err := e.all(ctx, req, part, sum); err != nil {
					return err
				}
			}
			if most := e.most.Load(); most == 0 || most > int32(half) { // the server has accepted both halves
				e.most.Store(int32(half))
			}
		}
		texts = texts[n:]
	}
	return nil
}

// tooMany reports whether err may mean that the server rejected a request because of the number or length of its texts.
func tooMany(err error) bool {
	refused, ok := errors.AsType[*llm.HTTPError](err)
	return ok && slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, refused.Status)
}

// once sends one request.
func (e *Embedder) once(ctx context.Context, req *llm.EmbedRequest) (*llm.Embedding, error) {
	provider := e.model.setup.Provider
	body := e.body(req)
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("%s: the request is not JSON: %w", provider, err)
	}
	ctx = transport.Embeds(ctx, e.Info().Endpoint, req.Query)
	spec := llm.SpecOfEmbedder(ctx, e)
	if spec.Limiter != nil {
		ctx = context.WithValue(ctx, limiterKey{}, spec.Limiter)
	}
	tokens, _ := req.AsRequest().Tokens()
	meter := llm.NewEmbedMeter(ctx, e, req)
	var got *vectorDecoder // the decoder of the last attempt
	var failure error
	var part *llm.Reply
	reply := e.client().Stream(ctx, Body{data, tokens, body, false}, func(id string) Decoder {
		got = &vectorDecoder{read: e.read, n: len(req.Texts), reply: llm.Reply{RequestID: id}}
		return got
	}, func(d llm.Delta, err error) bool {
		meter.Hear(&d)
		failure, part = err, d.Reply
		return err == nil
	})
	if reply == nil {
		return nil, budget.Costly(failure, meter.Spent(part, failure))
	}
	return &llm.Embedding{Vectors: got.got.Vectors, Model: got.got.Model, RequestID: reply.RequestID, Usage: meter.Spent(reply, nil)}, nil
}

// vectorDecoder reads an answer, which is one document.
type vectorDecoder struct {
	read  func([]byte) (Vectors, error)
	n     int // the number of texts
	got   Vectors
	reply llm.Reply
}

var errNoVectors = "the answer is no document of JSON with vectors; check the URL"

func (d *vectorDecoder) protocol(reason string) error {
	return &llm.ProtocolError{Reason: reason, RequestID: d.reply.RequestID}
}

func (d *vectorDecoder) Event(out []llm.Delta, _ string, _ []byte) ([]llm.Delta, bool, error) {
	return out, false, d.protocol(errNoVectors)
}

func (d *vectorDecoder) Whole(out []llm.Delta, data []byte) (_ []llm.Delta, err error) {
	if d.got, err = d.read(data); err != nil {
		return out, d.protocol(err.Error())
	}
	d.reply.Usage.InputTokens = d.got.Tokens
	if err := (&llm.Embedding{Vectors: d.got.Vectors}).Check(d.n); err != nil {
		return out, d.protocol(err.Error())
	}
	return out, nil
}

func (d *vectorDecoder) End(out []llm.Delta) ([]llm.Delta, error) {
	if d.got.Vectors == nil {
		return out, d.protocol(errNoVectors)
	}
	return out, nil
}

func (d *vectorDecoder) Reply() *llm.Reply { return &d.reply }

// Check returns an error that lists all faults of the configuration on one line, or nil if there are none.
func (e *Embedder) Check() error { return e.model.Check() }

// Info returns the model's Info.
func (e *Embedder) Info() llm.Info { return e.model.Info() }

// String returns the name and the address of the model.
func (e *Embedder) String() string {
	info := e.Info()
	return fmt.Sprintf("%s.Embedder(%s at %s)", info.Provider, info.Model, info.Endpoint)
}

// Format keeps %+v and %#v from printing the configuration.
func (e *Embedder) Format(f fmt.State, _ rune) { fmt.Fprint(f, e.String()) }

// LogValue returns the same as String, for log/slog.
func (e *Embedder) LogValue() slog.Value { return slog.StringValue(e.String()) }
