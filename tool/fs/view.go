package fs

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/tool"
)

type viewInput struct {
	Path string `json:"path" jsonschema:"the file, relative to the working directory"`
}

func (in viewInput) file() string { return in.Path }

// View makes the tool view_file, which shows the model a picture, a PDF document, a sound or a
// video of at most llm.MaxMedia. It is a tool of its own and not a part of read_file, because only
// some models see and hear. A model is told if its protocol has no form for the file.
func View(r Root) agent.Middleware {
	return tool.Func("view_file", "Shows a file that is not text: a picture, a PDF document, a sound or a video.",
		with(r.at, func(ctx context.Context, p *place, in viewInput) (agent.Result, error) {
			f, info, err := p.open()
			if err != nil {
				return agent.Result{}, err
			}
			defer f.Close()
			if info.Size() > llm.MaxMedia {
				return agent.Result{}, fmt.Errorf("%s has %d bytes, but at most %d can be shown", p.shown, info.Size(), llm.MaxMedia)
			}
			data, err := io.ReadAll(io.LimitReader(f, llm.MaxMedia+1))
			if err != nil {
				return agent.Result{}, explain(p.shown, err)
			}
			m, err := llm.NewMedia(p.shown, data)
			if err != nil || strings.HasPrefix(m.Type, "text/") || m.Type == "application/json" {
				return agent.Result{}, fmt.Errorf("%s is not a picture, PDF document, sound or video; if it is text, read it with read_file", p.shown)
			}
			res := p.result(m.String(), map[string]any{"bytes": len(data)})
			res.Media = []*llm.Media{m}
			return res, nil
		}), tool.Parallel(), tool.Effects("fs/read"))
}
