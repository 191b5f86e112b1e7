package eval

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stonelayer/stone/llm"
)

// A toolCall is an actual or an expected tool call. Expected calls are given as a list of names, or of objects with name and
// input.
type toolCall struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// called returns the tool calls of an agent, in order. It reads them from the node with the given type or, if node is "", from
// the only node that contains a conversation.
func (c Case) called(node string) (calls []toolCall, err error) {
	found := false
	for _, name := range sortedKeys(c.Nodes) {
		var content struct {
			Conversation []llm.Message `json:"conversation"`
		}
		if node != "" && node != name || json.Unmarshal(c.Nodes[name], &content) != nil || content.Conversation == nil {
			continue
		}
		if found {
			return nil, errors.New("several nodes have a conversation: name one in the scorer's field node")
		}
		found = true
		for _, m := range content.Conversation {
			for _, call := range m.ToolCalls {
				calls = append(calls, toolCall{call.Name, call.Input})
			}
		}
	}
	if !found {
		return nil, errors.New("no node has a conversation: only the tool calls of agents can be scored")
	}
	return calls, nil
}

func expectedCalls(want json.RawMessage) (calls []toolCall, err error) {
	var items []json.RawMessage
	if err := json.Unmarshal(want, &items); err != nil {
		return nil, errors.New("the expectation is not a list of tool calls")
	}
	for _, item := range items {
		var c toolCall
		if name, ok := asString(item); ok {
			c.Name = name
		} else if err := json.Unmarshal(item, &c); err != nil || c.Name == "" {
			return nil, fmt.Errorf("the expected tool call %s has no name", shown(item))
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// toolMeasures maps names to functions that return a value in [0, 1]; 1 means that all calls are as expected.
var toolMeasures = map[string]func(got, want []toolCall) float64{"order": inOrder, "set": asSet, "arguments": withArguments}

// inOrder returns the length of the longest common subsequence of the tool names, divided by the length of the longer list.
func inOrder(got, want []toolCall) float64 {
	row := make([]int, len(want)+1)
	for _, g := range got {
		diagonal := 0
		for j, w := range want {
			above := row[j+1]
			if g.Name == w.Name {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j], above)
			}
			diagonal = above
		}
	}
	return share(float64(row[len(want)]), max(len(got), len(want)))
}

// asSet returns the F1 of the tool names. Each name counts as often as it occurs.
func asSet(got, want []toolCall) float64 {
	left := map[string]int{}
	for _, w := range want {
		left[w.Name]++
	}
	hits := 0
	for _, g := range got {
		if left[g.Name] > 0 {
			left[g.Name]--
			hits++
		}
	}
	return share(2*float64(hits), len(got)+len(want))
}

// withArguments compares each expected call with the call of the same tool whose arguments match best. It returns the sum of the
// agreements, divided by the length of the longer list.
func withArguments(got, want []toolCall) float64 {
	taken := make([]bool, len(got))
	var sum float64
	for _, w := range want {
		best, value := -1, -1.0
		for i, g := range got {
			if v := agreement(g, w); !taken[i] && g.Name == w.Name && v > value {
				best, value = i, v
			}
		}
		if best >= 0 {
			taken[best] = true
			sum += value
		}
	}
	return share(sum, max(len(got), len(want)))
}

// agreement returns the share of the expected arguments that a call contains.
func agreement(got, want toolCall) float64 {
	var have, need map[string]json.RawMessage
	if want.Input == nil || json.Unmarshal(want.Input, &need) != nil || len(need) == 0 {
		return 1
	}
	if json.Unmarshal(got.Input, &have) != nil {
		return 0
	}
	hits := 0
	for name, value := range need {
		if h, ok := have[name]; ok {
			if same, err := equal(h, value); err == nil && same {
				hits++
			}
		}
	}
	return share(float64(hits), len(need))
}

// share returns part divided by n, or 1 if n is 0.
func share(part float64, n int) float64 {
	if n == 0 {
		return 1
	}
	return part / float64(n)
}

func scoreTools(mode, node string) func(c Case, want json.RawMessage) (Score, error) {
	return func(c Case, want json.RawMessage) (Score, error) {
		got, err := c.called(node)
		if err != nil {
			return Score{}, err
		}
		expected, err := expectedCalls(want)
		if err != nil {
			return Score{}, err
		}
		s := Score{Value: toolMeasures[mode](got, expected)}
		if s.Value < 1 {
			s.Reason = fmt.Sprintf("called %s, want %s", names(got), names(expected))
		}
		return s, nil
	}
}

func names(calls []toolCall) string {
	all := make([]string, len(calls))
	for i, c := range calls {
		all[i] = c.Name
	}
	data, _ := json.Marshal(all) // cannot fail: strings always have a JSON form
	return shown(data)
}
