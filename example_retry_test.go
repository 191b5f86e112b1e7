package stone_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

// A step that fails with one of the listed kinds is retried, with growing pauses.
func ExampleRetry() {
	page := dag.NewType[string]("page")
	attempts := 0
	fetch := stone.Func0("fetch", page, func(context.Context) (string, error) {
		if attempts++; attempts < 3 {
			return "", stone.Fail("busy", "try again")
		}
		return "the page", nil
	}, stone.Retry{Attempts: 3, Kinds: []kind.Kind{"busy"}, Backoff: time.Millisecond})
	text, err := stone.Produce(context.Background(), fetch, page, stone.Config{})
	fmt.Println(text, attempts, err)
	// Output: the page 3 <nil>
}

// After the timeout, the body's context is cancelled and the step fails with its own kind.
func ExampleTimeout() {
	page := dag.NewType[string]("page")
	fetch := stone.Func0("fetch", page, func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, stone.Timeout(time.Millisecond))
	_, err := stone.Run(context.Background(), fetch, stone.Config{})
	var failure *stone.Failure
	fmt.Println(errors.As(err, &failure), failure.Kind)
	// Output: true timeout
}

// The healing step reads the failure of the failed step.
func ExampleRescue() {
	price := dag.NewType[int]("price")
	p := stone.Rescue("price",
		stone.Func0("ask-shop", price, func(context.Context) (int, error) { return 0, stone.Fail("closed", "the shop is closed") }),
		stone.Func("estimate", dag.Failure, price, func(_ context.Context, f dag.FailureContent) (int, error) {
			fmt.Println("healing:", f.Reason)
			return 40, nil
		}))
	result, err := stone.Run(context.Background(), p, stone.Config{})
	fmt.Println(result.Node.Text(), err)
	// Output:
	// healing: the shop is closed
	// 40 <nil>
}

// The error of a run unwraps to a Failure, which has the kind and the place.
func ExampleFail() {
	p := stone.Loop("until-green",
		stone.Func0("try", Reply, func(context.Context) (ReplyDoc, error) {
			return ReplyDoc{}, stone.Fail("no-compiler", "cannot find go in the path")
		}),
		stone.Until(Reply, func(ReplyDoc) bool { return true }), 3)
	_, err := stone.Run(context.Background(), p, stone.Config{})

	var failure *stone.Failure
	if errors.As(err, &failure) && failure.Kind != kind.LoopExhausted {
		fmt.Println(failure.Kind, failure.Path)
	}
	// Output: no-compiler until-green[0]/try
}
