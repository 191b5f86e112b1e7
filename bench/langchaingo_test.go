package bench

import (
	"context"

	"github.com/tmc/langchaingo/chains"
)

// langchainChain is a chain of transforms that hands a pointer from one key to
// the next; SimpleSequentialChain would hand on strings only.
func langchainChain[T content[T]](names []string) (*chains.SequentialChain, error) {
	steps := make([]chains.Chain, len(names))
	in := "start"
	for i, out := range names {
		from := in
		steps[i] = chains.NewTransform(func(_ context.Context, m map[string]any, _ ...chains.ChainCallOption) (map[string]any, error) {
			v := (*m[from].(*T)).next()
			return map[string]any{out: &v}, nil
		}, []string{from}, []string{out})
		in = out
	}
	return chains.NewSequentialChain(steps, []string{"start"}, []string{in})
}

func langchainSequence[T content[T]](steps int, first T) (func() (T, error), error) {
	names := stepNames(steps)
	chain, err := langchainChain[T](names)
	return func() (v T, err error) {
		out, err := chains.Call(context.Background(), chain, map[string]any{"start": &first})
		if err != nil {
			return v, err
		}
		return *out[names[steps-1]].(*T), nil
	}, err
}

func langchainBuild(names []string) error {
	_, err := langchainChain[small](names)
	return err
}

func langchainFanOut(lanes int) (func() (int, error), error) {
	lane := chains.NewTransform(func(_ context.Context, m map[string]any, _ ...chains.ChainCallOption) (map[string]any, error) {
		r := m["item"].(*item).work()
		return map[string]any{"result": &r}, nil
	}, []string{"item"}, []string{"result"})
	return func() (int, error) {
		inputs := make([]map[string]any, 0, lanes)
		for _, it := range (batch{Lanes: lanes}).items() {
			inputs = append(inputs, map[string]any{"item": &it})
		}
		out, err := chains.Apply(context.Background(), lane, inputs, 0)
		return len(out), err
	}, nil
}
