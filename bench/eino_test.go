package bench

import (
	"context"
	"strconv"

	"github.com/cloudwego/eino/compose"
)

func einoChain[T content[T]](names []string) (compose.Runnable[*T, *T], error) {
	chain := compose.NewChain[*T, *T]()
	for _, name := range names {
		chain.AppendLambda(compose.InvokableLambda(func(_ context.Context, v *T) (*T, error) {
			next := (*v).next()
			return &next, nil
		}), compose.WithNodeName(name))
	}
	return chain.Compile(context.Background())
}

func einoSequence[T content[T]](steps int, first T) (func() (T, error), error) {
	chain, err := einoChain[T](stepNames(steps))
	return func() (v T, err error) {
		last, err := chain.Invoke(context.Background(), &first)
		if err != nil {
			return v, err
		}
		return *last, nil
	}, err
}

func einoBuild(names []string) error {
	_, err := einoChain[small](names)
	return err
}

// einoFanOut is static: the lanes are the nodes of a Parallel.
func einoFanOut(lanes int) (func() (int, error), error) {
	p := compose.NewParallel()
	for i := range lanes {
		p.AddLambda(strconv.Itoa(i), compose.InvokableLambda(func(context.Context, int) (*result, error) {
			r := item{N: i}.work()
			return &r, nil
		}))
	}
	run, err := compose.NewChain[int, map[string]any]().AppendParallel(p).Compile(context.Background())
	return func() (int, error) {
		out, err := run.Invoke(context.Background(), 0)
		return len(out), err
	}, err
}
