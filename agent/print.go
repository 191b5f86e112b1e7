package agent

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/llm"
)

// printed holds everything that can change an agent's answer, apart from the agent's name, types and queries. Its judges are
// children of the leaf, which the root package includes in the fingerprint.
type printed struct {
	Model      llm.Info     `json:"model"`
	Override   string       `json:"override"`
	Use        []printedUse `json:"use"`
	MaxTurns   int          `json:"max-turns"`
	MaxTokens  int          `json:"max-tokens"`
	MaxHealing int          `json:"max-healing"`
	Finalize   bool         `json:"finalize"`
	Draft      string       `json:"draft,omitempty"` // the schema of answers, if it differs from the result's
}

type printedUse struct {
	Name string    `json:"name"`
	Tool *llm.Tool `json:"tool,omitempty"`
}

// fingerprint returns the agent's part of its leaf's fingerprint: the identity of the model, limits, and the names and tools of
// middlewares. Prompts are not included, because they are recorded as values; see opening.
func (a *agent) fingerprint() []byte {
	p := printed{
		Override: a.cfg.Model, MaxTurns: a.cfg.MaxTurns, MaxTokens: a.cfg.MaxTokens, MaxHealing: a.maxHealing,
		Finalize: a.cfg.Finalize.run != nil,
	}
	if a.draft.typ.Name() != a.out.Name() {
		p.Draft = string(a.draft.typ.Schema().JSON())
	}
	if m, ok := a.model.(llm.Informer); ok {
		p.Model = m.Info()
		p.Model.Endpoint = "" // another endpoint may serve the same model
	}
	for _, m := range a.cfg.Use {
		use := printedUse{Name: m.Name}
		if m.Tool != nil {
			use.Tool = &m.Tool.Tool
		}
		p.Use = append(p.Use, use)
	}
	data, err := json.Marshal(p)
	if err != nil { // the schema is not JSON; Check reports it
		return fmt.Appendf(nil, "%+v", p)
	}
	return data
}

// instructions returns the texts of the constant and the adjustable prompts.
func (a *agent) instructions() string {
	var said []string
	for _, p := range []dag.Reader[string]{a.cfg.System, a.cfg.User} {
		if _, own := p.(adjustable); p == nil || len(p.Queries()) > 0 && !own {
			continue
		}
		if text, err := prompt(p, dag.DAG{}); err == nil {
			said = append(said, text)
		}
	}
	return strings.Join(said, "\n\n")
}

// renders returns the prompts, their media and the conversation so far for the leaf's reuse key. Reuse keys cover nodes without
// their conversations.
func (a *agent) renders(d dag.DAG) ([]byte, error) {
	system, err := prompt(a.cfg.System, d)
	if err != nil {
		return nil, err
	}
	user, err := prompt(a.cfg.User, d)
	if err != nil {
		return nil, err
	}
	text := []byte(strconv.Itoa(len(system)) + ":" + system + user)
	said, err := read(a.cfg.Conversation, d)
	if err != nil {
		return nil, err
	}
	media, err := read(a.cfg.Media, d)
	if err != nil || len(said)+len(media) == 0 {
		return text, err
	}
	text = []byte(strconv.Itoa(len(text)) + ":" + string(text))
	if len(media) > 0 {
		if text, err = canon.Append(text, media); err != nil {
			return nil, err
		}
	}
	return canon.Append(text, said)
}
