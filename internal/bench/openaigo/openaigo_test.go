// Package openaigo_test has OpenAI's client for Go use the gateway, in its default settings.
package openaigo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/gateway"
)

const name = "stone/chat/answer"

// witness tells what it was sent, and calls each tool twice.
func witness(_ int, req *llm.Request) script.Answer {
	last := req.Messages[len(req.Messages)-1]
	switch text := last.Text(); {
	case last.Role == llm.RoleTool:
		return script.Text("saw " + req.Messages[len(req.Messages)-2].Text() + " and " + text)
	case text == "tools":
		at := func(n int) llm.ToolCall {
			return llm.ToolCall{ID: fmt.Sprint("call_", n), Name: req.Tools[0].Name, Input: json.RawMessage(fmt.Sprintf(`{"at":"%d"}`, n))}
		}
		return script.Calls(at(0), at(1))
	case req.ResponseFormat != nil:
		return script.Text(`{"name":"slate"}`)
	case len(last.Media()) > 0:
		return script.Text("a " + last.Media()[0].Type)
	case text == "fail":
		return script.Fail(errors.New("no answer"))
	default:
		in, out := 10, 5
		return script.Answer{Reply: llm.Reply{Text: fmt.Sprintf("%s, after %d", text, len(req.Messages)-1), Usage: llm.Usage{InputTokens: &in, OutputTokens: &out}}}
	}
}

func TestOpenAIGo(t *testing.T) {
	asked := script.Func(witness)
	app := &call.Applicator{
		Registry: call.NewRegistry(model.New(call.Metadata{ID: "model/a", Intents: []string{"chat/answer"}}, model.Config{Model: asked})),
		Intents:  map[string]call.Intent{"chat/answer": {}},
	}
	s, err := serve.New(serve.Config{Journal: memdb.New(t), Applicator: app, Protocols: []serve.Protocol{gateway.Part}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := httptest.NewServer(s)
	defer at.Close()
	client := openai.NewClient(option.WithBaseURL(at.URL+"/v1"), option.WithAPIKey("none"))
	ctx := t.Context()
	ask := func(text string, edit ...func(*responses.ResponseNewParams)) (*responses.Response, error) {
		p := responses.ResponseNewParams{Model: name, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
		for _, e := range edit {
			e(&p)
		}
		return client.Responses.New(ctx, p)
	}
	tools := func(p *responses.ResponseNewParams) {
		p.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("look", map[string]any{"type": "object", "properties": map[string]any{"at": map[string]any{"type": "string"}}}, false)}
	}
	text := func(r *responses.Response, err error) (string, error) {
		if err != nil {
			return "", err
		}
		return r.OutputText(), nil
	}
	for _, c := range []struct {
		name string
		want string
		ask  func() (string, error)
	}{
		{"models", name, func() (string, error) {
			page, err := client.Models.List(ctx)
			if err != nil {
				return "", err
			}
			return page.Data[0].ID, nil
		}},
		{"a response", "marble, after 0", func() (string, error) { return text(ask("marble")) }},
		{"a second turn", "again, after 2", func() (string, error) {
			first, err := ask("marble")
			if err != nil {
				return "", err
			}
			return text(ask("again", func(p *responses.ResponseNewParams) { p.PreviousResponseID = openai.String(first.ID) }))
		}},
		{"a stream", "marble, after 0", func() (string, error) {
			stream := client.Responses.NewStreaming(ctx, responses.ResponseNewParams{Model: name, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("marble")}})
			var said strings.Builder
			for stream.Next() {
				said.WriteString(stream.Current().AsResponseOutputTextDelta().Delta)
			}
			return said.String(), stream.Err()
		}},
		{"a typed answer", `{"name":"slate"}`, func() (string, error) {
			return text(ask("type", func(p *responses.ResponseNewParams) {
				p.Text.Format = responses.ResponseFormatTextConfigParamOfJSONSchema("stone", map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}, "required": []string{"name"}})
			}))
		}},
		{"two tools", "saw found 0 and found 1", func() (string, error) {
			first, err := ask("tools", tools)
			if err != nil {
				return "", err
			}
			var results responses.ResponseInputParam
			for n, item := range first.Output {
				result := responses.ResponseInputItemParamOfFunctionCallOutput(fmt.Sprint("found ", n))
				result.OfFunctionCallOutput.CallID = openai.String(item.CallID)
				results = append(results, result)
			}
			return text(ask("", tools, func(p *responses.ResponseNewParams) {
				p.PreviousResponseID, p.Input = openai.String(first.ID), responses.ResponseNewParamsInputUnion{OfInputItemList: results}
			}))
		}},
		{"a document by its address", "a application/pdf", func() (string, error) {
			file := responses.ResponseInputContentUnionParam{OfInputFile: &responses.ResponseInputFileParam{FileURL: openai.String("https://a.example/x.pdf")}}
			item := responses.ResponseInputItemParamOfMessage(responses.ResponseInputMessageContentListParam{file}, responses.EasyInputMessageRoleUser)
			return text(ask("", func(p *responses.ResponseNewParams) {
				p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{item}}
			}))
		}},
		{"a chat", "marble, after 0", func() (string, error) {
			r, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: name, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("marble")}})
			if err != nil {
				return "", err
			}
			return r.Choices[0].Message.Content, nil
		}},
		{"a stream of a chat", "marble, after 0, 15 tokens", func() (string, error) {
			stream := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: name, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("marble")}, StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)}})
			all := openai.ChatCompletionAccumulator{}
			for stream.Next() {
				all.AddChunk(stream.Current())
			}
			said := all.Choices[0].Message.Content
			return fmt.Sprintf("%s, %d tokens", said, all.Usage.TotalTokens), stream.Err()
		}},
		{"a model that is not there", "404 invalid_request_error model_not_found", func() (string, error) {
			_, err := client.Responses.New(ctx, responses.ResponseNewParams{Model: "none", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("x")}})
			var e *openai.Error
			if !errors.As(err, &e) {
				return "", err
			}
			return fmt.Sprint(e.StatusCode, " ", e.Type, " ", e.Code), nil
		}},
		{"a failure, paid once", "422, asked 1", func() (string, error) {
			before := len(asked.Requests())
			_, err := ask("fail", func(p *responses.ResponseNewParams) { p.Model = shared.ResponsesModel(name) })
			var e *openai.Error
			if !errors.As(err, &e) {
				return "", err
			}
			return fmt.Sprintf("%d, asked %d", e.StatusCode, len(asked.Requests())-before), nil
		}},
		{"giving up", "context canceled", func() (string, error) {
			gone, cancel := context.WithCancel(ctx)
			cancel()
			_, err := client.Responses.New(gone, responses.ResponseNewParams{Model: name})
			if errors.Is(err, context.Canceled) {
				return "context canceled", nil
			}
			return "", err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := c.ask(); err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}
