package wire

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
)

// serverKey is the key under which Message.Metadata contains the address of the server that sent the other metadata, followed by
// the model if only that model can read it. Another server, such as a fallback's, does not receive this metadata, because it has
// neither the keys nor the signatures.
const serverKey = "stone/server"

// fitted is a request in the form that the server accepts.
type fitted struct {
	req    *llm.Request
	server string            // server whose metadata is kept
	back   map[string]string // original names of the tools, by the names sent to the server; nil if all are equal
}

// fit returns the request with call IDs, tool names and media that the server accepts, and without fields that only another
// server understands. It does not modify req.
func (m *Model) fit(req *llm.Request) fitted {
	f := fitted{req: req}
	naming := rules.NamingOf(m.setup.Protocol, hostOf(m.setup.URL))
	if naming == nil {
		return f
	}
	if f.server = m.Client.Endpoint(); naming.OneModel {
		f.server += " " + cmp.Or(req.Model, m.setup.Model)
	}
	names := f.names(naming)
	for i := range req.Messages {
		msg := &req.Messages[i]
		var server string
		if raw := msg.Metadata[serverKey]; raw != nil && json.Unmarshal(raw, &server) == nil && server != f.server {
			f.message(i).Metadata = m.without(msg.Metadata)
		}
		for j := range msg.Content {
			if media := msg.Content[j].Media; media != nil && (msg.Role == llm.RoleUser || msg.Role == llm.RoleTool) {
				f.media(m, i, j, media)
			}
		}
		for j := range msg.ToolCalls {
			if name, ok := names[msg.ToolCalls[j].Name]; ok {
				f.calls(i)[j].Name = name
			}
			if string(msg.ToolCalls[j].Input) == "null" {
				f.calls(i)[j].Input = nil // the input was cut off before a round trip through JSON
			}
		}
	}
	f.ids(naming)
	return f
}

// without returns a copy of metadata without the fields that only the server that sent them understands.
func (m *Model) without(metadata map[string]json.RawMessage) map[string]json.RawMessage {
	kept := maps.Clone(metadata)
	for _, key := range m.setup.Kept {
		delete(kept, key)
	}
	return kept
}

// message returns a modifiable message of the request.
func (f *fitted) message(i int) *llm.Message {
	f.own()
	return &f.req.Messages[i]
}

// own copies the messages so that they can be modified.
func (f *fitted) own() {
	if f.back == nil { // marks the request as a copy
		req := *f.req
		req.Messages = slices.Clone(req.Messages)
		f.req, f.back = &req, map[string]string{}
	}
}

// calls returns the modifiable calls of a message.
func (f *fitted) calls(i int) []llm.ToolCall {
	msg := f.message(i)
	msg.ToolCalls = slices.Clone(msg.ToolCalls)
	return msg.ToolCalls
}

// names replaces tool names that the server rejects. It returns the new names, by old name.
func (f *fitted) names(n *rules.Naming) map[string]string {
	var names map[string]string
	for i := range f.req.Tools {
		name := f.req.Tools[i].Name
		if f.req.Tools[i].Provider != nil || n.Name.MatchString(name) {
			continue
		}
		if names == nil {
			f.own()
			f.req.Tools = slices.Clone(f.req.Tools)
			names = map[string]string{}
		}
		other := n.Named(name)
		for k := 2; f.taken(other); k++ {
			other = fmt.Sprintf("%.*s_%d", n.MaxName-4, n.Named(name), k)
		}
		names[name], f.back[other], f.req.Tools[i].Name = other, name, other
		if f.req.Params.ToolChoice == name {
			f.req.Params.ToolChoice = other
		}
	}
	return names
}

func (f *fitted) taken(name string) bool {
	return slices.ContainsFunc(f.req.Tools, func(t llm.Tool) bool { return t.Name == name })
}

// ids replaces call IDs that the server rejects, and repeated IDs, which occur with servers that number the calls of each answer.
// The IDs of results change with the IDs of their calls.
func (f *fitted) ids(n *rules.Naming) {
	seen := map[string]bool{}
	var turn []llm.ToolCall // calls of the last turn, unchanged
	var now []string        // current IDs of these calls
	for i := range f.req.Messages {
		msg := &f.req.Messages[i]
		switch {
		case msg.Role == llm.RoleAssistant:
			turn, now = msg.ToolCalls, nil
			for j, call := range turn {
				id := call.ID
				for k := 0; seen[id] || !n.ID.MatchString(id); k++ {
					id = fmt.Sprintf("c%x", sha256.Sum256(fmt.Appendf(nil, "%d %d %s", i, k, call.ID)))[:9]
				}
				seen[id] = true
				if now = append(now, id); id != call.ID {
					f.calls(i)[j].ID = id
				}
			}
			turn = slices.Clone(turn)
		case msg.Role == llm.RoleTool:
			at := slices.IndexFunc(turn, func(c llm.ToolCall) bool { return c.ID == msg.CallID })
			if at < 0 {
				continue
			}
			if now[at] != msg.CallID {
				f.message(i).CallID = now[at]
			}
			if again := slices.IndexFunc(turn[at+1:], func(c llm.ToolCall) bool { return c.ID == turn[at].ID }); again >= 0 {
				turn[at].ID = "\x00" // the next result belongs to the next call with this ID
			}
		}
	}
}

// media corrects the type of media according to the bytes. Pictures in a tool result that the server does not accept are replaced
// with text, because the result may be in a recorded conversation that every request repeats.
func (f *fitted) media(m *Model, i, j int, media *llm.Media) {
	role := f.req.Messages[i].Role
	right := sniffed(media)
	part := llm.Part{Media: right}
	if err := checkPicture(rules.Pictures[m.setup.Protocol], right); err != nil && role == llm.RoleTool && m.setup.Media(role, right) == nil {
		part = llm.Part{Text: fmt.Sprintf("[%s: not shown: %v]", right, err)}
	} else if right == media {
		return
	}
	msg := f.message(i)
	msg.Content = slices.Clone(msg.Content)
	msg.Content[j] = part
}

// sniffed returns the media, or a copy with the type detected from the bytes if the media are declared as a picture of another
// type.
func sniffed(media *llm.Media) *llm.Media {
	kind := media.Kind()
	if kind == "" || kind == media.Type || !strings.HasPrefix(media.Type, "image/") {
		return media
	}
	right := *media
	right.Type = kind
	return &right
}

// reply restores the caller's tool names in a reply and records to which server its metadata belongs.
func (f *fitted) reply(r *llm.Reply) *llm.Reply {
	if r == nil {
		return nil
	}
	for i, call := range r.ToolCalls {
		r.ToolCalls[i].Name = cmp.Or(f.back[call.Name], call.Name)
	}
	if len(r.Metadata) > 0 {
		r.Metadata[serverKey] = JSON(f.server)
	}
	return r
}

// delta restores the caller's tool name in a delta.
func (f *fitted) delta(d *llm.Delta) {
	if d.Kind == llm.ToolCallStart && f.back[d.Call.Name] != "" {
		d.Call = &llm.ToolCall{ID: d.Call.ID, Name: f.back[d.Call.Name]}
	}
}

// hostOf returns the host of a URL, or "" if there is none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}
