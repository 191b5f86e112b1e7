package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/llm"
)

const (
	// defaultMaxResult limits the text of a result for the model, in bytes.
	defaultMaxResult = 64 << 10
	// maxKept limits the text of one kept result, and maxAllKept limits all kept texts of an agent together, in bytes.
	maxKept    = 8 << 20
	maxAllKept = 64 << 20
	// maxHandles limits the number of handles in a message. A compaction drops the oldest handles.
	maxHandles = 100
)

// kept is the node content of a result that is longer than the part given to the model.
type kept struct {
	Tool string `json:"tool"`
	Text string `json:"text"`
}

// keptType is the node type of kept results. The meta of such a node contains the handle.
var keptType = dag.NewType[kept]("agent/result")

const handleField = "handle"

// A handle is the name of a kept result for the model. The message with the beginning of the result, or the message that replaces
// it after a compaction, has the handle in its metadata under handlesKey.
type handle struct {
	Handle string `json:"handle"`
	Tool   string `json:"tool"`
	Bytes  int    `json:"bytes"`
}

const handlesKey = "stone/results"

// fit sets the text of an outcome. If the text is too long for the model, it is kept in a node of the call. Secrets are removed
// first, because cutting the text could split a secret, and because the handle is a digest of the text.
func (j *job) fit(ctx context.Context, o *outcome, text string) error {
	o.Text = utf8Only(text)
	most := cmp.Or(j.tool.MaxResult, defaultMaxResult)
	if most < 0 || len(o.Text) <= most {
		return nil
	}
	text = redact.From(ctx).Clean(o.Text)
	if o.Text = text; len(text) <= most {
		return nil
	}
	head := strings.ToValidUTF8(text[:most], "")
	o.Text = fmt.Sprintf("%s\n[cut: these are the first %d of %d bytes]", head, len(head), len(text))
	if len(text) > maxKept || j.room.Add(-int64(len(text))) < 0 {
		o.Failed = true
		o.Text += fmt.Sprintf("\n[The call was made, but the rest of its result is lost: a kept result has at most %d bytes, and all together %d. Ask for less at once.]", maxKept, maxAllKept)
		return nil
	}
	sum := sha256.Sum256([]byte(text))
	h := handle{fmt.Sprintf("%x", sum[:6]), j.tool.Name, len(text)}
	if err := j.store(h, text); err != nil {
		return err
	}
	o.Kept = &h
	o.Text += fmt.Sprintf("\n[the whole result is kept: call %s with the handle %q]", readName, h.Handle)
	return nil
}

// store adds the node of a kept result to the nodes of the call.
func (j *job) store(h handle, text string) (err error) {
	to := j.end.WithoutFailure()
	if to.Len() == 0 {
		if to, err = j.lane(); err != nil {
			return err
		}
	}
	n, err := dag.NewNode(dag.Spec{Type: keptType.Name(), Content: kept{h.Tool, text}, Parents: to.Next(), Meta: map[string]string{handleField: h.Handle}})
	if err == nil {
		j.end, err = to.Append(n)
	}
	return err
}

// lane returns the DAG to which the call adds its nodes. The number of the lane is unique among the agent's calls.
func (j *job) lane() (dag.DAG, error) {
	return dag.Lane(j.base, (j.turn-1)*j.cfg.MaxCalls+j.position-1)
}

// handles returns the handles in the metadata of messages, oldest first.
func handles(messages []llm.Message) (all []handle) {
	for i := range messages {
		raw, ok := messages[i].Metadata[handlesKey]
		if !ok {
			continue
		}
		var found []handle
		if json.Unmarshal(raw, &found) != nil { // the conversation was not written by this package
			continue
		}
		for _, h := range found {
			if !slices.Contains(all, h) {
				all = append(all, h)
			}
		}
	}
	return all[max(0, len(all)-maxHandles):]
}

// noted returns a copy of m with handles added to its metadata.
func noted(m llm.Message, of ...handle) (llm.Message, error) {
	if len(of) == 0 {
		return m, nil
	}
	raw, err := json.Marshal(of)
	if err != nil {
		return m, err
	}
	m.Metadata = maps.Clone(m.Metadata)
	if m.Metadata == nil {
		m.Metadata = map[string]json.RawMessage{}
	}
	m.Metadata[handlesKey] = raw
	return m, nil
}

// find returns the text of the kept result with the given handle. This agent, or an agent whose conversation it continues, must
// have kept it.
func (r *run) find(name string) (string, error) {
	var nodes []*dag.Node
	for _, lane := range r.lanes {
		nodes = append(nodes, lane.Within(nil).Beyond(r.base)...)
	}
	if r.cfg.Conversation != nil {
		before, err := r.dag.All(keptType.Name())
		if err != nil {
			return "", err
		}
		nodes = append(nodes, before...)
	}
	for _, n := range nodes {
		if n.Type() == keptType.Name() && n.Meta()[handleField] == name {
			found, err := keptType.Of(n)
			return found.Text, err
		}
	}
	return "", fmt.Errorf("no result has the handle %q: copy the handle from the end of a cut result", name)
}
