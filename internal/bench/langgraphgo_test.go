//go:build !alone

package bench

import (
	"context"
	"strconv"

	"github.com/smallnest/langgraphgo/graph"
	"github.com/smallnest/langgraphgo/prebuilt"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/tools"
)

// langgraphLine is a line of nodes. Its edges are conditional ones that know the next
// node: plain edges are found by a linear search, which makes a long line quadratic.
func langgraphLine[T content[T]](names []string) (*graph.StateRunnable[*T], error) {
	g := graph.NewStateGraph[*T]()
	for i, name := range names {
		g.AddNode(name, "", func(_ context.Context, v *T) (*T, error) {
			next := (*v).next()
			return &next, nil
		})
		to := graph.END
		if i+1 < len(names) {
			to = names[i+1]
		}
		g.AddConditionalEdge(name, func(context.Context, *T) string { return to })
	}
	g.SetEntryPoint(names[0])
	return g.Compile()
}

func langgraphSequence[T content[T]](steps int, first T) (func() (T, error), error) {
	line, err := langgraphLine[T](stepNames(steps))
	return func() (v T, err error) {
		last, err := line.Invoke(context.Background(), &first)
		if err != nil {
			return v, err
		}
		return *last, nil
	}, err
}

// langgraphBuild uses plain edges, which are the cheapest to build.
func langgraphBuild(names []string) error {
	g := graph.NewStateGraph[*small]()
	for i, name := range names {
		g.AddNode(name, "", func(_ context.Context, v *small) (*small, error) { return v, nil })
		if i > 0 {
			g.AddEdge(names[i-1], name)
		}
	}
	g.AddEdge(names[len(names)-1], graph.END)
	g.SetEntryPoint(names[0])
	_, err := g.Compile()
	return err
}

// langgraphFanOut is static: the lanes are nodes of a parallel group. Their state is a
// slice: of one result in a lane, of all results afterwards.
func langgraphFanOut(lanes int) (func() (int, error), error) {
	type state = []result
	nodes := make(map[string]func(context.Context, state) (state, error), lanes)
	for i := range lanes {
		nodes[strconv.Itoa(i)] = func(context.Context, state) (state, error) {
			return state{item{N: i}.work()}, nil
		}
	}
	g := graph.NewStateGraph[state]()
	g.AddParallelNodes("lanes", nodes, func(each []state) state {
		var all state
		for _, s := range each {
			all = append(all, s...)
		}
		return all
	})
	g.AddEdge("lanes", graph.END)
	g.SetEntryPoint("lanes")
	run, err := g.Compile()
	return func() (int, error) {
		all, err := run.Invoke(context.Background(), nil)
		return len(all), err
	}, err
}

// langgraphTurns has a state of its own type, which is cheaper than a map.
func langgraphTurns(s *script) (func() (string, error), error) {
	type state struct {
		messages []llms.MessageContent
		turns    int
	}
	a, err := prebuilt.CreateReactAgent(newLangchainModel(s), []tools.Tool{langchainTool{s}},
		func(st *state) []llms.MessageContent { return st.messages },
		func(st *state, m []llms.MessageContent) *state { st.messages = m; return st },
		func(st *state) int { return st.turns },
		func(st *state, n int) *state { st.turns = n; return st },
		s.calls+1)
	return func() (string, error) {
		out, err := a.Invoke(context.Background(), &state{messages: []llms.MessageContent{
			llms.TextParts(llms.ChatMessageTypeSystem, systemText), llms.TextParts(llms.ChatMessageTypeHuman, userText),
		}})
		if err != nil {
			return "", err
		}
		last := out.messages[len(out.messages)-1]
		text, _ := last.Parts[0].(llms.TextContent)
		return text.Text, nil
	}, err
}
