package marks_test

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/x/marks"
)

func Example() {
	page, note, sent := dag.NewType[string]("page"), dag.NewType[string]("note"), dag.NewType[string]("sent")
	fetch := stone.Func0("fetch", page, func(context.Context) (string, error) { return "News", nil }, stone.Effects(effect.Net))
	shorten := stone.Func("shorten", page, note, func(_ context.Context, p string) (string, error) { return p[:2], nil })
	send := stone.Func("send", note, sent, func(context.Context, string) (string, error) { return "sent", nil }, stone.Effects("mail/send"))

	policy := marks.Policy{"web": {From: []string{effect.Net}, May: []string{effect.FSRead}}}
	cfg := stone.Config{Policy: policy}
	fmt.Println(stone.Validate(stone.Seq("digest", fetch, shorten, send), cfg.Given()).Err())

	policy["web"] = marks.Mark{From: []string{effect.Net}, May: []string{effect.FSRead}, Lift: []string{"shorten"}}
	fmt.Println(stone.Validate(stone.Seq("digest", fetch, shorten, send), cfg.Given()).Err())
	// Output:
	// pipeline is invalid: [marked-text] send: text with the mark web reaches the effect "mail/send": fetch → shorten → send; let a person or a check lift the mark before, or add the effect to what the text may reach (at digest/send)
	// <nil>
}
