package tool

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/address"
)

// The answers that Ask accepts.
const (
	yes    = "yes"
	no     = "no"
	noWhy  = "no: …"
	always = "always"
	never  = "never"
)

// Ask asks a person through the run's frontend. The question shows the changes that the call would make or, if the tool has no
// preview, the call's arguments. Its name consists of the agent and the tool, as in "fix/write_file". The answers are:
//
//   - yes runs this call, and no refuses it; "no: REASON" tells the model why.
//   - always and never also answer all later calls of the tool by this agent in the run, in all its lanes and rounds, and after
//     the run is resumed. In a chat, they apply to all turns, because the journal keeps them for the session; see
//     journal.Options.Session.
//
// Canceling the question means no. If the run has a journal, the process may end before the answer arrives; the resumed run
// continues with this call and does not call the model again. If the preview differs by then, for example because the file has
// changed, the person is asked again. Without a frontend, the agent fails with kind "no-frontend".
var Ask = Approver{Approve: askPerson, Asks: true}

func askPerson(ctx context.Context, c Call) (Decision, error) {
	shown, err := c.shown(ctx)
	if err != nil {
		return Decision{}, err
	}
	about, ok := agent.CallIn(ctx)
	if !ok {
		about = ask.Call{Tool: c.Tool, Input: c.Input}
	}
	about.Request, about.Said = cut(about.Request, maxContext), cut(about.Said, maxContext)
	who := asker(ctx)
	response, err := stone.In(ctx).Ask(ask.Question{
		Name: who + "/" + c.Tool,
		Text: fmt.Sprintf("%s wants to call %s:\n%s\n%s%s(always and never decide for all later calls of %s by %s)",
			who, c.Tool, indented(shown), said("The user asked", about.Request), said("The model said", about.Said), c.Tool, who),
		Call:     &about,
		Choices:  []string{yes, no, noWhy, always, never},
		Standing: []string{always, never},
	})
	if err != nil {
		return Decision{}, err
	}
	why, _ := ask.Blank(noWhy)
	reason, given := strings.CutPrefix(response, why)
	switch {
	case response == yes, response == always:
		return Decision{Allowed: true}, nil
	case response == never:
		return Decision{Reason: "a person has refused all its calls. Continue without it."}, nil
	case given:
		return Decision{Reason: "a person refused this call: " + reason}, nil
	}
	return Decision{}, nil
}

// asker returns the name of the agent whose tool call has the context ctx.
func asker(ctx context.Context) string {
	path := stone.In(ctx).Path()
	return cmp.Or(address.Parse(address.Last(address.Parent(path))).Name, address.Parse(path).Name)
}

// said returns the text indented below a line that names its author, or "" if the text is blank.
func said(by, text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return by + ":\n" + indented(text) + "\n"
}

// shown returns the text of the call that a person has to approve: its preview or, without one, its arguments. If the preview is
// cut, the arguments follow it. Arguments are never cut, because the answer approves all of them.
func (c Call) shown(ctx context.Context) (string, error) {
	shown, err := c.Preview(ctx)
	if err != nil || c.preview == nil || len(shown) <= maxPreview {
		return shown, err
	}
	return cut(shown, maxPreview) + "\nThe arguments are:\n" + indented(arguments(c.Input)), nil
}

// arguments returns the arguments of a call as lines "name: value".
func arguments(input json.RawMessage) string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(input, &fields); err != nil {
		return string(input)
	}
	if len(fields) == 0 {
		return "(no arguments)"
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&b, "%s: %s\n", quoted(name), argument(fields[name]))
	}
	return b.String()
}

// quoted returns name, quoted unless it is a plain name.
func quoted(name string) string {
	if validName.MatchString(name) {
		return name
	}
	return fmt.Sprintf("%q", name)
}

// argument returns the value of an argument for display: a string as indented lines, any other value as JSON.
func argument(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil && string(value) != "null" {
		if strings.Contains(text, "\n") {
			return "\n" + indented(text)
		}
		return text
	}
	var b bytes.Buffer
	if err := json.Indent(&b, value, "", "  "); err != nil {
		return string(value)
	}
	return b.String()
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}

// The maximum lengths of the texts that are shown beside the arguments, in bytes.
const (
	maxPreview = 16 << 10
	maxContext = 2 << 10 // applies to the user's request and, separately, to the model's text
)

// cut returns the text or, if it is longer than most bytes, its beginning and a note with the digest of the whole text. Because
// of the digest, an answer does not apply to another call that differs only in the omitted part.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	kept := strings.ToValidUTF8(text[:most], "")
	return fmt.Sprintf("%s\n[cut: these are the first %d of %d bytes, SHA-256 %x]", kept, len(kept), len(text), sha256.Sum256([]byte(text)))
}
